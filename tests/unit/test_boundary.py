"""What a worker's log says about the step that it is doing."""

from collections.abc import Sequence
from typing import Any

import pytest
import structlog
from pydantic import BaseModel
from temporalio.testing import ActivityEnvironment
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput

from activities.boundary import ErrorBoundary
from domain.messages import MoneyInput, OrderInput, StepInput


class Remembering(ActivityInboundInterceptor):
    """An activity that keeps what a log line of it would carry."""

    def __init__(self) -> None:
        self.bound: dict[str, Any] = {}

    async def execute_activity(self, input: ExecuteActivityInput) -> None:
        self.bound = structlog.contextvars.get_contextvars()


async def _line_of(arguments: Sequence[object]) -> dict[str, Any]:
    inside = Remembering()
    boundary = ErrorBoundary().intercept_activity(inside)
    step = ExecuteActivityInput(fn=inside.execute_activity, args=arguments, executor=None, headers={})
    await ActivityEnvironment().run(boundary.execute_activity, step)
    return inside.bound


@pytest.mark.parametrize(
    "message",
    [
        StepInput(order_id="o-1"),
        MoneyInput(order_id="o-1", intent_id="pi_1"),
        OrderInput(order_id="o-1"),
    ],
)
async def test_every_line_of_a_step_names_its_order(message: BaseModel) -> None:
    line = await _line_of([message])
    assert line["order_id"] == "o-1"
    assert {"workflow_id", "activity", "attempt"} < set(line)


async def test_a_step_about_no_order_is_done_all_the_same() -> None:
    assert (await _line_of([]))["order_id"] is None


async def test_a_step_s_lines_tell_the_request_that_brought_the_order() -> None:
    assert (await _line_of([StepInput(order_id="o-1", correlation_id="c-1")]))["correlation_id"] == "c-1"
