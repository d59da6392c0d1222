"""What the HTTP simulators share: a call is read, written down, met by faults, carried out and answered.

An operation is a plain function without awaits, so that its effect, its answer under the key and the events it causes
are one transaction. A lost answer, a delay or a held call happen around it, never within.
"""

import asyncio
import json
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from simulators.clock import Clock
from simulators.faults import Fault, FaultTable
from simulators.store import Store

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

DROPPED = "dropped"
HUNG = "hung"


@dataclass
class Answer:
    """What goes back. `lost`: the effect stands, but the connection ends without a word."""

    status: int
    body: Any
    headers: dict[str, str] = field(default_factory=dict)
    lost: bool = False


@dataclass
class Call:
    """One request to a provider. `subject` is the object that it is about; `key` its idempotency key or reference.

    `claimed`: its key is in flight until it is over. `key_kept`: its answer stays under the key.
    """

    op: str
    operation: Callable[["Call"], Answer]
    params: dict[str, Any]
    subject: str | None
    key: str | None = None
    order_id: str | None = None
    fingerprint: str = ""
    claimed: bool = False
    key_kept: bool = True
    pending: bool = False
    held: bool = False
    row: int = 0


@dataclass(frozen=True)
class Route:
    """One public route of a provider."""

    method: str
    path: str
    op: str
    operation: Callable[[Call], Answer]


class Party(ABC):
    """A provider that answers over HTTP."""

    name: str

    def __init__(self, store: Store, clock: Clock) -> None:
        self.store = store
        self.clock = clock
        #: The HTTP server no longer knows a call whose client has gone; whoever stops the process ends it here.
        self.underway: set[asyncio.Task[Any]] = set()

    @property
    @abstractmethod
    def routes(self) -> list[Route]:
        """The public routes."""

    @abstractmethod
    async def read(self, request: web.Request, route: Route) -> Call:
        """The call in a request: its parameters, key and order."""

    @abstractmethod
    def problem(self, status: int, code: str) -> dict[str, Any]:
        """The provider's own document for an error that a fault makes up."""

    @abstractmethod
    def execute(self, call: Call) -> Answer:
        """Runs the call's operation. Awaits nothing."""

    def struck(self, call: Call, answer: Answer) -> None:
        """A fault has answered instead of the operation."""
        return

    def over(self, call: Call) -> None:
        """The call has been answered, or its connection is gone."""
        return

    def calls(self, order: str | None = None) -> list[dict[str, Any]]:
        """The ledger of calls, oldest first; `at` in seconds since the epoch by the simulators' clock."""
        query = (
            "SELECT op, key, at, status, order_id, subject FROM calls WHERE party = ? AND (? IS NULL OR order_id = ?)"
        )
        names = ("op", "key", "at", "status", "order_id", "subject")
        rows = self.store.rows(f"{query} ORDER BY seq", self.name, order, order)
        return [dict(zip(names, row, strict=True)) for row in rows]


def add_provider(app: web.Application, party: Party, faults: FaultTable) -> None:
    """Puts the party's public routes on an application."""

    def handler_of(route: Route) -> Handler:
        async def serve(request: web.Request) -> web.StreamResponse:
            task = asyncio.current_task()
            assert task is not None
            party.underway.add(task)
            try:
                return await _serve(party, faults, route, request)
            finally:
                party.underway.discard(task)

        return serve

    for route in party.routes:
        app.router.add_route(route.method, route.path, handler_of(route))


async def _serve(party: Party, faults: FaultTable, route: Route, request: web.Request) -> web.StreamResponse:
    call = await party.read(request, route)
    call.row = party.store.write(
        "INSERT INTO calls (party, op, key, at, order_id, subject) VALUES (?, ?, ?, ?, ?, ?)",
        *(party.name, call.op, call.key, round(party.clock.now(), 3), call.order_id, call.subject),
    )
    try:
        answer = await _through_faults(party, faults, call)
        gone = request.transport is None or request.transport.is_closing()
        if answer.lost and request.transport is not None:
            request.transport.close()
        _note(party, call, DROPPED if answer.lost else HUNG if gone and call.held else answer.status)
    finally:
        party.over(call)
    return _response(answer)


async def _through_faults(party: Party, faults: FaultTable, call: Call) -> Answer:
    fault = faults.take(party.name, call.op, call.order_id)
    if fault is None:
        return party.execute(call)
    if fault.mode in {"error", "rate", "conflict", "answer"}:
        answer = _made_up(party, fault)
        party.struck(call, answer)
        return answer
    if fault.mode == "hang":
        call.held = True
        _note(party, call, HUNG)
        await fault.ended.wait()
    call.pending = fault.mode == "pending"
    answer = party.execute(call)
    if fault.mode == "delay":
        await asyncio.sleep(fault.delay_ms / 1000)
    answer.lost = answer.lost or fault.mode == "drop"
    return answer


def _made_up(party: Party, fault: Fault) -> Answer:
    default_status = {"error": 500, "rate": 429, "conflict": 409, "answer": 200}[fault.mode]
    status = fault.status or default_status
    code = {"rate": "rate_limit", "conflict": "in_flight"}.get(fault.mode, "error")
    body = party.problem(status, code) if fault.body is None and fault.mode != "answer" else fault.body
    retry_after = 1 if fault.mode == "rate" and fault.retry_after is None else fault.retry_after
    return Answer(status, body, {} if retry_after is None else {"Retry-After": str(retry_after)})


def _note(party: Party, call: Call, status: int | str) -> None:
    party.store.write(
        "UPDATE calls SET status = ?, subject = ?, order_id = ? WHERE seq = ?",
        *(status, call.subject, call.order_id, call.row),
    )


def _response(answer: Answer) -> web.Response:
    body = answer.body if isinstance(answer.body, str) else json.dumps(answer.body)
    return web.Response(status=answer.status, text=body, content_type="application/json", headers=answer.headers)
