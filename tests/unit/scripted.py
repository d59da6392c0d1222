"""A server that answers what it is told to, over real sockets."""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from aiohttp import web

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def answering(status: int, body: str = "", **headers: str) -> Handler:
    """One answer for every request."""

    async def answer(request: web.Request) -> web.StreamResponse:
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        return web.Response(status=status, text=body, headers=names, content_type="application/json")

    return answer


async def hanging_up(request: web.Request) -> web.StreamResponse:
    """Takes the request and closes the connection without a word."""
    await request.read()
    assert request.transport is not None
    request.transport.close()
    return web.Response()


async def breaking_off(request: web.Request) -> web.StreamResponse:
    """Begins its answer and never ends it."""
    response = web.StreamResponse(headers={"Content-Length": "100"})
    await response.prepare(request)
    await response.write(b'{"id":')
    assert request.transport is not None
    request.transport.close()
    return response


async def silent(request: web.Request) -> web.StreamResponse:
    """Takes the request and says nothing for as long as the client stays."""
    await asyncio.Event().wait()
    return web.Response()


@asynccontextmanager
async def a_server(handler: Handler) -> AsyncIterator[str]:
    """The base address of a server on a free port that gives every request to `handler`."""
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handler)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1, handler_cancellation=True)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


@asynccontextmanager
async def a_full_port() -> AsyncIterator[str]:
    """The base address of a port whose backlog is full: no connection is ever made there."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(0)
    port = listener.getsockname()[1]
    fillers = []
    for _ in range(4):
        filler = socket.socket()
        filler.setblocking(False)
        filler.connect_ex(("127.0.0.1", port))
        fillers.append(filler)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        for one in (*fillers, listener):
            one.close()
