"""One order's own policy: time-outs are short where a case lets them pass, and long where it does not."""

from typing import Any

from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor

from domain.messages import OpenedOrder
from domain.policy import OrderPolicy
from tests.matrix.dimensions import SEVERAL_REQUESTS, SLOW, UNDO_STEPS, Case, Fault
from tests.shop import QUICK

#: A step that hangs is waited for so long, in real time. Far longer than a busy machine needs for one that does not:
#: three that are only slow would be one that has run out.
SHORT_SECONDS = 5.0

#: Nothing that a case is about takes so long, on a machine that is busy with others too.
DEADLINE_SECONDS = 240

#: All waits that end well are short; only what a case is about may run out.
PATIENT = QUICK.model_copy(
    update={"step_timeout_seconds": 10, "several_requests_timeout_seconds": 10, "processing_limit_seconds": 3600}
)


class Policies(Interceptor):
    """Gives each order the policy of its case, at the moment when it is opened."""

    def __init__(self) -> None:
        self._of: dict[str, OrderPolicy] = {}

    def give(self, order_id: str, policy: OrderPolicy) -> None:
        """The order will be opened with this policy."""
        self._of[order_id] = policy

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        """Stands around `open_order`."""
        return _Opened(next, self._of)


class _Opened(ActivityInboundInterceptor):
    def __init__(self, next: ActivityInboundInterceptor, policies: dict[str, OrderPolicy]) -> None:
        super().__init__(next)
        self._policies = policies

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        result = await self.next.execute_activity(input)
        if isinstance(result, OpenedOrder) and result.order_id in self._policies:
            ours, settings = self._policies[result.order_id], result.policy
            kept = settings.model_dump(include={"payment_deadline_seconds", "review_deadline_seconds"})
            return result.model_copy(
                update={"policy": ours.model_copy(update={**kept, "review_limit_minor": settings.review_limit_minor})}
            )
        return result


def policy_for(case: Case) -> OrderPolicy:
    """Short time-outs for the steps that hang in this case."""
    slow = {step for step, fault in hurt(case) if fault in SLOW}
    update: dict[str, float] = {}
    if slow & SEVERAL_REQUESTS:
        update["several_requests_timeout_seconds"] = SHORT_SECONDS
    if slow - SEVERAL_REQUESTS:
        update["step_timeout_seconds"] = SHORT_SECONDS
    return PATIENT.model_copy(update=update)


def hurt(case: Case) -> list[tuple[Any, Fault]]:
    """The steps and undos that this case disturbs."""
    found = []
    if case.place is not None and case.fault is not None:
        found.append((case.place.step, case.fault))
    if case.undo is not None and case.undo_fault is not None:
        assert case.undo in UNDO_STEPS
        found.append((case.undo, case.undo_fault))
    return found
