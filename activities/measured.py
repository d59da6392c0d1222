"""How long each try of a step takes, how it ends, and how many tries a step needs: as the worker's metrics."""

import asyncio
import time
from typing import Any

from temporalio import activity
from temporalio.common import MetricMeter
from temporalio.exceptions import ApplicationError
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor

from domain.errors import (
    REFUSALS,
    ContradictionError,
    NotServed,
    OnHold,
    TransientError,
    UnclassifiedError,
    names_under,
)

_OUTCOMES = {
    **dict.fromkeys(names_under(ContradictionError), "contradiction"),
    **dict.fromkeys(names_under(TransientError), "transient"),
    **dict.fromkeys(REFUSALS, "refused"),
    NotServed.__name__: "not_served",
    OnHold.__name__: "held",
    UnclassifiedError.__name__: "unclassified",
}
#: Endings after which the step is not tried again by itself.
_FINAL = frozenset({"done", "refused", "contradiction"})


class StepMeter(Interceptor):
    """Around the error boundary: it counts what Temporal is told. Labels are names of steps and classes, never ids."""

    def __init__(self, meter: MetricMeter) -> None:
        self.seconds = meter.create_histogram_float("orders_step_seconds", "Tries of steps, with their latency.")
        self.errors = meter.create_counter("orders_step_errors", "Tries that did not end well, by error.")
        self.tries = meter.create_histogram("orders_step_tries", "Which try it was that a step ended with.")

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        """Puts the meter around the activity."""
        return _Measured(next, self)


class _Measured(ActivityInboundInterceptor):
    def __init__(self, next: ActivityInboundInterceptor, meter: StepMeter) -> None:
        super().__init__(next)
        self._meter = meter

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        began = time.perf_counter()
        try:
            result = await self.next.execute_activity(input)
        except ApplicationError as error:
            name = error.type or UnclassifiedError.__name__
            outcome = _OUTCOMES.get(name, "unclassified")
            self._tell(began, outcome, error.message if outcome == "unclassified" else name)
            raise
        except asyncio.CancelledError:
            self._tell(began, "cut_off", "CancelledError")
            raise
        self._tell(began, "done")
        return result

    def _tell(self, began: float, outcome: str, error: str | None = None) -> None:
        info = activity.info()
        step = {"step": info.activity_type}
        self._meter.seconds.record(time.perf_counter() - began, {**step, "outcome": outcome})
        if outcome in _FINAL:
            self._meter.tries.record(info.attempt, step)
        if error is not None:
            self._meter.errors.add(1, {**step, "outcome": outcome, "error": error})
