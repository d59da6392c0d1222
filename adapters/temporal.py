"""Calls to the Temporal server that must not wait longer than their caller can."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from temporalio.client import RPCTimeoutOrCancelledError
from temporalio.service import RPCError, RPCStatusCode

#: "Not now" in gRPC's words. Everything else is an answer.
_NO_ANSWER = frozenset(
    {
        RPCStatusCode.UNAVAILABLE,
        RPCStatusCode.DEADLINE_EXCEEDED,
        RPCStatusCode.CANCELLED,
        RPCStatusCode.RESOURCE_EXHAUSTED,
        RPCStatusCode.ABORTED,
    }
)


class TemporalUnavailable(Exception):
    """Temporal gave no answer: the call may or may not have arrived."""


@asynccontextmanager
async def answering_within(seconds: float) -> AsyncIterator[None]:
    """Bounds the calls inside to `seconds`, connecting included. Raises TemporalUnavailable when there is no answer.

    A lazy client connects with its first call and tells a failure as a bare RuntimeError.
    """
    try:
        async with asyncio.timeout(seconds):
            yield
    except (TimeoutError, RPCTimeoutOrCancelledError):
        raise TemporalUnavailable("no answer in time") from None
    except RPCError as error:
        if error.status in _NO_ANSWER:
            raise TemporalUnavailable(error.status.name) from None
        raise
    except RuntimeError as error:
        if "Failed client connect" in str(error):
            raise TemporalUnavailable("not reachable") from None
        raise
