"""Where our errors leave for Temporal: the tree of errors becomes failure types, and nothing else gets out.

A failure carries a class name and ids, since histories are read by many people: messages of foreign exceptions, which
may quote a row or a request, stay in the worker's log at most as their class.
"""

from collections.abc import Sequence
from typing import Any

import structlog
from temporalio import activity
from temporalio.exceptions import ApplicationError
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor

from domain.errors import NON_RETRYABLE, DatabaseNotReached, NotServed, OrderError, UnclassifiedError

#: A bug is tried this often: a bad deploy must neither cancel orders nor hammer.
UNCLASSIFIED_TRIES = 3

log = structlog.get_logger()


class ErrorBoundary(Interceptor):
    """The worker's interceptor around every activity."""

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        """Puts the boundary around the activity."""
        return _Boundary(next)


class _Boundary(ActivityInboundInterceptor):
    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        info = activity.info()
        with structlog.contextvars.bound_contextvars(
            order_id=_told(input.args, "order_id"),
            correlation_id=_told(input.args, "correlation_id"),
            workflow_id=info.workflow_id,
            activity=info.activity_type,
            attempt=info.attempt,
        ):
            try:
                result = await self.next.execute_activity(input)
                log.info("activity_ended", outcome="done")
                return result
            except OrderError as error:
                log.info("activity_ended", outcome=type(error).__name__)
                raise _failure(error, info.attempt) from None
            except Exception as error:
                log.exception("activity_broke", error=type(error).__name__)
                raise ApplicationError(
                    type(error).__name__,
                    type=UnclassifiedError.__name__,
                    non_retryable=info.attempt >= UNCLASSIFIED_TRIES,
                ) from None


def _told(arguments: Sequence[Any], name: str) -> str | None:
    """An id that the activity's argument carries, for the log; None where it carries none."""
    value: str | None = getattr(arguments[0], name, None) if arguments else None
    return value or None


def _failure(error: OrderError, attempt: int) -> ApplicationError:
    if isinstance(error, DatabaseNotReached):
        # As with a provider that refuses the connection: a restart of the database is waited for, it costs no try.
        error = NotServed(str(error))
    name = type(error).__name__
    details = (error.retry_after_seconds, attempt) if isinstance(error, NotServed) else ()
    return ApplicationError(str(error), *details, type=name, non_retryable=name in NON_RETRYABLE)
