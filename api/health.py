"""Is the process alive, can it work, and what is it doing.

Ready means that the database answers: then orders are accepted and webhooks stored, and what they need of Temporal is
done when it is back. An outage of Temporal is told and alerted on, and takes no API out of a load balancer; nor does a
hold, of the intake neither: replays are answered, webhooks stored and orders shown and cancelled meanwhile.
"""

import asyncio
from datetime import timedelta
from typing import Literal

from aiohttp import web
from pydantic import BaseModel
from temporalio.client import Client

from adapters.backlog import Backlog, read_backlog
from adapters.database import Database
from adapters.holds import held_parties
from adapters.temporal import TemporalUnavailable, answering_within
from api.deps import deps
from api.operations import Operation, json_response
from api.problems import FieldError, unavailable
from domain.errors import DatabaseUnavailable
from domain.holds import Held

#: A probe that asks every few seconds must not wait longer.
CHECK_SECONDS = 3


class Health(BaseModel):
    """All is well."""

    status: Literal["ok"] = "ok"


class Readiness(Health):
    """Orders are accepted and webhooks stored. `temporal` is `down` while they are not worked on.

    `holds`: where an operator lets nothing new begin. New orders get 503 while `intake` is among them.
    """

    temporal: Literal["ok", "down"]
    holds: list[Held]


async def get_livez(_: web.Request) -> web.Response:
    """The process answers."""
    return json_response(Health())


async def get_readyz(request: web.Request) -> web.Response:
    """Whether the database answers, and what is known of Temporal: without it orders are taken in all the same."""
    needs = deps(request)
    holds, temporal = await asyncio.gather(_holds(needs.database), _temporal_answers(needs.client))
    if holds is None:
        wrong = FieldError(field="database", detail="does not answer")
        raise unavailable("not-ready", "the database does not answer", [wrong])
    return json_response(Readiness(temporal="ok" if temporal else "down", holds=holds))


async def _holds(database: Database) -> list[Held] | None:
    """What is held; None when the database does not answer."""
    try:
        async with asyncio.timeout(CHECK_SECONDS), database.begin() as connection:
            return sorted(await held_parties(connection))
    except (DatabaseUnavailable, TimeoutError):
        return None


async def _temporal_answers(client: Client) -> bool:
    try:
        async with answering_within(CHECK_SECONDS):
            return await client.service_client.check_health(timeout=timedelta(seconds=CHECK_SECONDS))
    except TemporalUnavailable:
        return False


async def get_metrics(request: web.Request) -> web.Response:
    """Counters of this process, whether its servers answer, and gauges of the database while that does."""
    needs = deps(request)
    reading = needs.metrics.read(lambda: _backlog(needs.database))
    _, temporal = await asyncio.gather(reading, _temporal_answers(needs.client))
    return needs.metrics.exposition(temporal_up=temporal)


async def _backlog(database: Database) -> Backlog | None:
    try:
        async with asyncio.timeout(CHECK_SECONDS):
            return await read_backlog(database)
    except (DatabaseUnavailable, TimeoutError):
        return None


OPERATIONS = (
    Operation("GET", "/livez", get_livez, "Is the process alive", {200: Health}),
    Operation("GET", "/readyz", get_readyz, "Can it work", {200: Readiness}, (503,)),
)
METRICS = Operation("GET", "/metrics", get_metrics, "Prometheus metrics", {200: None}, media_type="text/plain")
