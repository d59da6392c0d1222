"""Logs as JSON lines on stderr: a constant snake_case event, identifiers, no personal data.

    log = structlog.get_logger()
    with structlog.contextvars.bound_contextvars(order_id=order_id, correlation_id=correlation_id):
        log.info("order_accepted", status=status)

Lines of libraries arrive as the event `library_log`. Of an exception only its class and place are told, and its text
only where we know what it holds: a driver's or a validator's text repeats the values it was given.
"""

import logging
import sys
import traceback
from types import TracebackType
from typing import Any

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger
from temporalio.exceptions import ApplicationError

from domain.errors import OrderError, UnclassifiedError, names_under

#: Whose exceptions tell class names and ids only.
TRUSTED_TEXTS = ("domain.", "runtime.", "adapters.", "temporalio.")
FRAMES = 6
_TOLD_ALREADY = names_under(OrderError) - {UnclassifiedError.__name__}


def configure_logs(level: str) -> None:
    """Routes our own log lines and those of all libraries to stderr. `level` is LOG_LEVEL's value."""
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True, key="at"),
        _describe_exception,
    ]
    render = structlog.processors.JSONRenderer(ensure_ascii=False, default=str)
    structlog.configure(
        processors=[*shared, _read_first, render],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level]),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    handler = logging.StreamHandler(sys.stderr)
    formatter = structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=[*shared[:3], structlog.stdlib.add_logger_name],
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            _library_line,
            _describe_exception,
            _read_first,
            render,
        ],
    )
    handler.setFormatter(formatter)
    handler.addFilter(_is_news)
    logging.root.handlers[:] = [handler]
    logging.root.setLevel(level)
    for noisy in ("aiohttp.access", "asyncio", "alembic", "mail.log", "stripe", "temporalio.worker"):
        logging.getLogger(noisy).setLevel(max(logging.WARNING, logging.root.level))


def _is_news(record: logging.LogRecord) -> bool:
    # Temporal's SDK warns of every activity that fails. One that ends with an error of ours, a refusal most often, has
    # told it in `activity_ended`; one that broke (UnclassifiedError) or failed in the SDK itself keeps its warning.
    if record.name != "temporalio.activity" or not str(record.msg).startswith("Completing activity as failed"):
        return True
    error = record.exc_info[1] if record.exc_info else None
    return not (isinstance(error, ApplicationError) and error.type in _TOLD_ALREADY)


def _library_line(_: WrappedLogger, __: str, line: EventDict) -> EventDict:
    # Only the first line: what follows is a repr of objects, with the values inside.
    message = str(line.get("event", "")).split("\n", 1)[0]
    return {**line, "event": "library_log", "message": message}


def _read_first(_: WrappedLogger, __: str, line: EventDict) -> EventDict:
    return {name: line[name] for name in ("at", "level", "event")} | dict(line)


def _describe_exception(_: WrappedLogger, __: str, line: EventDict) -> EventDict:
    found = line.pop("exc_info", None)
    line.pop("exc_text", None)
    if found is True:
        found = sys.exc_info()
    error = found[1] if isinstance(found, tuple) else found
    if isinstance(error, BaseException):
        line.update(describe(error))
    return line


def describe(error: BaseException) -> dict[str, Any]:
    """What a log line may say about an exception."""
    told: dict[str, Any] = {"error_class": type(error).__qualname__, "error_at": _places(error.__traceback__)}
    if type(error).__module__.startswith(TRUSTED_TEXTS):
        told["error"] = str(error)
    if cause := error.__cause__ or error.__context__:
        told["error_cause"] = type(cause).__qualname__
    return told


def _places(trace: TracebackType | None) -> list[str]:
    frames = traceback.extract_tb(trace)[-FRAMES:]
    return [f"{frame.filename.rsplit('/', 1)[-1]}:{frame.lineno} {frame.name}" for frame in frames]
