"""What a log line tells, and what it must not."""

import io
import json
import logging
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import structlog
from temporalio.exceptions import ApplicationError

from domain.errors import CardDeclined, DatabaseUnavailable, UnclassifiedError
from runtime.logs import configure_logs

MAIL = "ann@example.com"


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    root = logging.getLogger()
    before = root.handlers[:], root.level
    written = io.StringIO()
    monkeypatch.setattr(sys, "stderr", written)
    configure_logs("INFO")
    yield lambda: [json.loads(line) for line in written.getvalue().splitlines()]
    structlog.reset_defaults()
    root.handlers[:], level = before
    root.setLevel(level)


def test_a_line_carries_its_event_and_the_order_it_is_about(lines: Any) -> None:
    with structlog.contextvars.bound_contextvars(order_id="o-1", correlation_id="c-1"):
        structlog.get_logger().info("order_accepted", status="PENDING")
    (line,) = lines()
    assert line.pop("at").endswith("Z")
    assert line == {
        "level": "info",
        "event": "order_accepted",
        "status": "PENDING",
        "order_id": "o-1",
        "correlation_id": "c-1",
    }


def test_lines_of_libraries_look_like_ours(lines: Any) -> None:
    with structlog.contextvars.bound_contextvars(order_id="o-1"):
        logging.getLogger("library").warning("slow %s", "disk")
    (line,) = lines()
    assert (line["event"], line["logger"], line["message"], line["order_id"]) == (
        "library_log",
        "library",
        "slow disk",
        "o-1",
    )


@pytest.mark.parametrize("log", [structlog.get_logger(), logging.getLogger("library")])
def test_an_exception_tells_its_class_and_place_but_not_the_values_in_its_text(lines: Any, log: Any) -> None:
    try:
        raise ValueError(MAIL)
    except ValueError:
        log.exception("failed")
    (line,) = lines()
    assert line["error_class"] == "ValueError"
    assert "test_logs.py" in line["error_at"][-1]
    assert MAIL not in json.dumps(line)


def test_our_own_errors_keep_their_text(lines: Any) -> None:
    try:
        raise DatabaseUnavailable("OperationalError")
    except DatabaseUnavailable:
        structlog.get_logger().exception("failed")
    assert lines()[0]["error"] == "OperationalError"


def test_the_representation_of_a_lost_task_stays_out(lines: Any) -> None:
    logging.getLogger("asyncio").error("Task exception was never retrieved\nfuture: <Task exception=%s>", MAIL)
    (line,) = lines()
    assert line["message"] == "Task exception was never retrieved"
    assert MAIL not in json.dumps(line)


def test_requests_are_not_logged_a_second_time_by_the_server(lines: Any) -> None:
    logging.getLogger("aiohttp.access").info("GET /livez")
    assert lines() == []


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ApplicationError("o-1", type=CardDeclined.__name__), 0),
        (ApplicationError("o-1", type=DatabaseUnavailable.__name__), 0),
        (ApplicationError("KeyError", type=UnclassifiedError.__name__), 1),
        (RuntimeError("decoding"), 1),
    ],
)
def test_a_step_that_was_refused_is_not_warned_of_a_second_time(lines: Any, error: Exception, told: int) -> None:
    try:
        raise error
    except Exception:
        logging.getLogger("temporalio.activity").warning("Completing activity as failed", exc_info=True)
    assert len(lines()) == told
