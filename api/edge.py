"""What happens to every request: a correlation id, an answer in time, problems for errors, one log line, metrics."""

import asyncio
import re
import time
import uuid
from collections.abc import Awaitable, Callable

import structlog
from aiohttp import web

from adapters.temporal import TemporalUnavailable
from adapters.updates import UpdateRefused
from api.deps import deps
from api.problems import Problem, no_answer, refused_at_the_door, unavailable
from domain.errors import DatabaseUnavailable
from domain.intake import IntakeProblem

#: An answer comes within 10 s even when a dependency swallows the request. Longer than any bounded wait inside.
ANSWER_SECONDS = 9.0

CORRELATION_HEADER = "X-Correlation-Id"
_CORRELATION_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")
_CORRELATION = web.RequestKey("correlation_id", str)

#: Routes that are asked every few seconds and say nothing.
_QUIET = frozenset({"/livez", "/readyz", "/metrics"})

Next = Callable[[web.Request], Awaitable[web.StreamResponse]]

log = structlog.get_logger(__name__)


def correlation_id(request: web.Request) -> str:
    """The client's own id of this piece of work, or the one that was made for it."""
    return request[_CORRELATION]


@web.middleware
async def edge(request: web.Request, handler: Next) -> web.StreamResponse:
    """Around every handler, and around the router's own 404 and 405."""
    began = time.perf_counter()
    asked = request.headers.get(CORRELATION_HEADER, "")
    request[_CORRELATION] = asked if _CORRELATION_ID.fullmatch(asked) else str(uuid.uuid4())
    with structlog.contextvars.bound_contextvars(correlation_id=correlation_id(request)):
        response = await _answer(request, handler)
        response.headers[CORRELATION_HEADER] = correlation_id(request)
        _tell(request, response.status, time.perf_counter() - began)
        return response


async def _answer(request: web.Request, handler: Next) -> web.StreamResponse:
    try:
        return await _in_time(request, handler)
    except Exception as error:
        return _problem(error).response(request.rel_url.raw_path)


def _problem(error: Exception) -> Problem:
    match error:
        case Problem():
            problem = error
        case IntakeProblem():
            problem = refused_at_the_door(error)
        case UpdateRefused():
            problem = Problem(409, error.kind, str(error))
        case TemporalUnavailable():
            problem = no_answer()
        case DatabaseUnavailable():
            log.warning("database_unavailable", error=str(error))
            problem = unavailable("database-unavailable", "the database does not answer")
        case web.HTTPException():
            problem = _from_router(error)
        case _:
            log.error("request_failed", exc_info=error)
            problem = Problem(500, "internal-error", "the request could not be carried out")
    return problem


async def _in_time(request: web.Request, handler: Next) -> web.StreamResponse:
    """Runs the handler in a task of its own: one that cannot even be cancelled must not keep its client waiting."""
    task = asyncio.ensure_future(handler(request))
    try:
        done, _ = await asyncio.wait({task}, timeout=ANSWER_SECONDS)
    except asyncio.CancelledError:
        task.cancel()
        raise
    if done:
        return task.result()
    task.cancel()
    task.add_done_callback(_forget)
    log.error("request_gave_up", seconds=ANSWER_SECONDS)
    raise unavailable("no-answer", "there was no answer in time: send the same request again")


def _forget(task: "asyncio.Future[web.StreamResponse]") -> None:
    if not task.cancelled():
        task.exception()


def _from_router(error: web.HTTPException) -> Problem:
    headers = {name: value for name, value in error.headers.items() if name == "Allow"}
    kind = error.reason.lower().replace(" ", "-")
    return Problem(error.status, kind, headers=headers)


def _tell(request: web.Request, status: int, seconds: float) -> None:
    resource = request.match_info.route.resource
    route = resource.canonical if resource else "unknown"
    deps(request).metrics.requests.labels(request.method, route, str(status)).observe(seconds)
    if route not in _QUIET:
        log.info("request_answered", method=request.method, route=route, status=status, seconds=round(seconds, 4))
