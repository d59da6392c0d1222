"""Where one order stands, and the places in which that is told: attribute, search attributes, page, order row."""

from typing import Any

from temporalio import workflow
from temporalio.common import SearchAttributeUpdate

from workflows.details import describe, search_attributes
from workflows.names import CUSTOMER_ID, ORDER_TOTAL
from workflows.payment import Payment
from workflows.steps import Steps

with workflow.unsafe.imports_passed_through():
    from domain.keys import Step
    from domain.messages import CancelOrder, OpenedOrder, OrderResult, OrderState, StatusChange, StatusRecorded
    from domain.order import PARKABLE, CancelReason, OrderStatus


class Stage:
    """One order's stage and its reason. Whoever changes one of them without `record` calls `show`."""

    def __init__(self, steps: Steps, payment: Payment) -> None:
        self._steps = steps
        self._payment = payment
        self._shown: list[SearchAttributeUpdate[Any]] = []
        self.status = OrderStatus.PENDING
        self.reason: CancelReason | None = None

    def begin(self, order: OpenedOrder) -> None:
        """The order is open: where an earlier run has left it, and what never changes."""
        self.status, self.reason = order.status, order.reason
        workflow.upsert_search_attributes(
            [CUSTOMER_ID.value_set(order.customer_id), ORDER_TOTAL.value_set(order.total)]
        )
        self.show()

    async def record(self, status: OrderStatus, cancel: CancelOrder | None) -> OrderStatus:
        """Tells a new stage everywhere, the order row last; returns the row's. `cancel`: who wanted it, and why."""
        self.status = status
        self.show()
        change = StatusChange(
            order_id=self._steps.order_id,
            status=status,
            reason=self.reason,
            actor=cancel.actor if cancel else "system",
            note=cancel.note if cancel else None,
        )
        recorded: StatusRecorded | None = await self._steps.write(Step.RECORD_STATUS, change)
        return recorded.status if recorded else status

    def show(self) -> None:
        """Search attributes, where they changed, and the page that the Web UI shows."""
        state = self.state()
        attributes = search_attributes(state, self._steps.parking.labels())
        if attributes != self._shown:
            workflow.upsert_search_attributes(attributes)
            self._shown = attributes
        workflow.set_current_details(describe(self._steps.order, state, self._steps.timeline, self._steps.waiting))

    def state(self) -> OrderState:
        """What the query `status` tells: a park covers the stage until the order is sold."""
        parked = bool(self._steps.parking) and self.status in PARKABLE
        return OrderState(
            status=OrderStatus.NEEDS_REVIEW if parked else self.status,
            reason=self.reason,
            payment=self._payment.view.status,
            needs_review=self._steps.parking.items(),
        )

    def result(self) -> OrderResult:
        """What the saga ends with."""
        return OrderResult(order_id=self._steps.order_id, status=self.status, reason=self.reason)
