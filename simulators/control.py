"""The control routes that every simulator's HTTP port has: faults, the clock, the ledger."""

import json
from collections.abc import Callable
from typing import Any

from aiohttp import web

from simulators.clock import Clock
from simulators.faults import FaultTable


async def read_object(request: web.Request) -> dict[str, Any]:
    """The request's JSON object. Raises 400 when it is none."""
    try:
        document = json.loads(await request.read())
    except ValueError:
        document = None
    if not isinstance(document, dict):
        raise bad_request("the body is a JSON object")
    return document


def bad_request(message: str) -> web.HTTPBadRequest:
    """400 with a line that says what is wrong."""
    return web.HTTPBadRequest(text=json.dumps({"error": message}), content_type="application/json")


def not_found(message: str) -> web.HTTPNotFound:
    """404 with a line that says what is missing."""
    return web.HTTPNotFound(text=json.dumps({"error": message}), content_type="application/json")


def add_ledger(app: web.Application, ledger: Callable[[web.Request], dict[str, Any]]) -> None:
    """`GET /_sim/ledger`."""

    async def show(request: web.Request) -> web.Response:
        return web.json_response(ledger(request))

    app.router.add_get("/_sim/ledger", show)


def add_faults(app: web.Application, faults: FaultTable, party: str) -> None:
    """`/_sim/faults`; `party` says on whose port a fault was posted."""

    async def post(request: web.Request) -> web.Response:
        try:
            fault = faults.add(await read_object(request), posted_to=party)
        except ValueError as error:
            raise bad_request(str(error)) from None
        return web.json_response({"id": fault.id}, status=201)

    async def show_all(request: web.Request) -> web.Response:
        return web.json_response({"faults": faults.views()})

    async def show_one(request: web.Request) -> web.Response:
        found = faults.views(request.match_info["id"])
        if not found:
            raise not_found("no such fault")
        return web.json_response(found[0])

    async def end_all(request: web.Request) -> web.Response:
        return web.json_response({"ended": faults.end()})

    async def end_one(request: web.Request) -> web.Response:
        # A fault that has hit all its calls is gone already: the same end, however often it is asked for.
        return web.json_response({"ended": faults.end(request.match_info["id"])})

    app.router.add_post("/_sim/faults", post)
    app.router.add_get("/_sim/faults", show_all)
    app.router.add_get("/_sim/faults/{id}", show_one)
    app.router.add_delete("/_sim/faults", end_all)
    app.router.add_delete("/_sim/faults/{id}", end_one)


def add_clock(app: web.Application, clock: Clock, advanced: Callable[[], None]) -> None:
    """`/_sim/clock`; `advanced` lets what has become due happen at once."""

    async def show(request: web.Request) -> web.Response:
        return web.json_response({"now": clock.now()})

    async def advance(request: web.Request) -> web.Response:
        seconds = (await read_object(request)).get("advance_seconds")
        if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds <= 10**9:
            raise bad_request("advance_seconds is a number of 0 or more: the clock never goes back")
        now = clock.advance(seconds)
        advanced()
        return web.json_response({"now": now})

    app.router.add_get("/_sim/clock", show)
    app.router.add_post("/_sim/clock", advance)
