"""Is the process alive, can it work, and what is it doing."""

import asyncio
from datetime import timedelta
from typing import Literal

from aiohttp import web
from pydantic import BaseModel
from sqlalchemy import text
from temporalio.client import Client

from adapters.backlog import Backlog, read_backlog
from adapters.database import Database
from adapters.temporal import TemporalUnavailable, answering_within
from api.deps import deps
from api.operations import Operation, json_response
from api.problems import FieldError, unavailable
from domain.errors import DatabaseUnavailable

#: A probe that asks every few seconds must not wait longer.
CHECK_SECONDS = 3


class Health(BaseModel):
    """All is well."""

    status: Literal["ok"] = "ok"


async def get_livez(_: web.Request) -> web.Response:
    """The process answers."""
    return json_response(Health())


async def get_readyz(request: web.Request) -> web.Response:
    """Database and Temporal answer. Without Temporal orders are still taken in: only a part is missing then."""
    needs = deps(request)
    answers = await asyncio.gather(_database_answers(needs.database), _temporal_answers(needs.client))
    missing = [name for name, answer in zip(("database", "temporal"), answers, strict=True) if not answer]
    if missing:
        errors = [FieldError(field=name, detail="does not answer") for name in missing]
        raise unavailable("not-ready", f"missing: {', '.join(missing)}", errors)
    return json_response(Health())


async def _database_answers(database: Database) -> bool:
    try:
        async with asyncio.timeout(CHECK_SECONDS), database.begin() as connection:
            await connection.execute(text("SELECT 1"))
    except (DatabaseUnavailable, TimeoutError):
        return False
    return True


async def _temporal_answers(client: Client) -> bool:
    try:
        async with answering_within(CHECK_SECONDS):
            return await client.service_client.check_health(timeout=timedelta(seconds=CHECK_SECONDS))
    except TemporalUnavailable:
        return False


async def get_metrics(request: web.Request) -> web.Response:
    """Counters of this process and gauges of the database; without a database, the counters alone."""
    needs = deps(request)
    backlog: Backlog | None = None
    try:
        async with asyncio.timeout(CHECK_SECONDS):
            backlog = await read_backlog(needs.database)
    except (DatabaseUnavailable, TimeoutError):
        backlog = None
    return needs.metrics.exposition(backlog)


OPERATIONS = (
    Operation("GET", "/livez", get_livez, "Is the process alive", {200: Health}),
    Operation("GET", "/readyz", get_readyz, "Can it work", {200: Health}, (503,)),
)
METRICS = Operation("GET", "/metrics", get_metrics, "Prometheus metrics", {200: None}, media_type="text/plain")
