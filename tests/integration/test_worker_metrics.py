"""What a worker tells of its steps, and where."""

import socket
from collections.abc import Awaitable, Callable

import aiohttp
import pytest
from temporalio.common import MetricMeter
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput

from activities.boundary import ErrorBoundary
from activities.measured import StepMeter
from domain.errors import (
    CardDeclined,
    DatabaseNotReached,
    NotServed,
    OnHold,
    PaymentMismatch,
    PaymentServiceUnavailable,
)
from runtime.entry import EntryError
from runtime.measures import worker_runtime
from runtime.ports import free_port
from runtime.settings import Settings, SettingsError

ENDINGS = {
    "refused": (CardDeclined("o-1"), "CardDeclined"),
    "transient": (PaymentServiceUnavailable("o-1"), "PaymentServiceUnavailable"),
    "not_served": (NotServed("HTTP 503"), "NotServed"),
    "held": (OnHold("gateway"), "OnHold"),
    "contradiction": (PaymentMismatch("o-1"), "PaymentMismatch"),
    "unclassified": (ZeroDivisionError("the card of ada"), "ZeroDivisionError"),
}


class Ending(ActivityInboundInterceptor):
    """A step that ends like this."""

    def __init__(self, error: Exception | None) -> None:
        self._error = error

    async def execute_activity(self, input: ExecuteActivityInput) -> None:
        if self._error is not None:
            raise self._error


async def run(meter: StepMeter, error: Exception | None) -> None:
    inside = Ending(error)
    around = meter.intercept_activity(ErrorBoundary().intercept_activity(inside))
    step = ExecuteActivityInput(fn=inside.execute_activity, args=[], executor=None, headers={})
    call: Callable[[ExecuteActivityInput], Awaitable[object]] = around.execute_activity
    await ActivityEnvironment().run(call, step)


async def test_each_try_is_told_with_its_step_its_outcome_and_the_class_of_its_error() -> None:
    port = free_port()
    runtime = worker_runtime(Settings(_env_file=None, worker_metrics_port=port))
    assert runtime is not None
    meter = StepMeter(runtime.metric_meter)
    await run(meter, None)
    await run(meter, None)
    for error, _ in [*ENDINGS.values(), (DatabaseNotReached("o-1"), "NotServed")]:
        with pytest.raises(ApplicationError):
            await run(meter, error)
    async with aiohttp.ClientSession() as http, http.get(f"http://127.0.0.1:{port}/metrics") as answer:
        text = await answer.text()
    assert 'orders_step_seconds_count{outcome="done",step="unknown"} 2' in text
    assert 'orders_step_seconds_bucket{outcome="done",step="unknown",le="20"} 2' in text
    for outcome, (_, name) in ENDINGS.items():
        times = 2 if outcome == "not_served" else 1
        assert f'orders_step_errors_total{{error="{name}",outcome="{outcome}",step="unknown"}} {times}' in text
    # Done, refused and contradicted ones are over; the others are tried again.
    assert 'orders_step_tries_count{step="unknown"} 4' in text
    assert "o-1" not in text
    assert "ada" not in text


async def test_without_a_port_nothing_is_served_and_steps_run_all_the_same() -> None:
    assert worker_runtime(Settings(_env_file=None)) is None
    await run(StepMeter(MetricMeter.noop), None)


def test_a_taken_port_is_one_line_that_names_the_setting() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(EntryError, match=f"WORKER_METRICS_PORT {port} on 127.0.0.1 cannot be used"):
            worker_runtime(Settings(_env_file=None, worker_metrics_port=port))


def test_metrics_are_not_open_to_others_by_accident() -> None:
    with pytest.raises(SettingsError, match="BIND_HOST"):
        worker_runtime(Settings(_env_file=None, worker_metrics_port=free_port(), bind_host="0.0.0.0"))  # noqa: S104
