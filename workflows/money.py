"""Late money: what happens at the gateway after an order's saga has ended."""

from temporalio import workflow

from workflows.names import PARKED_STEP
from workflows.parking import RETRY_OR_SKIP
from workflows.steps import Steps

with workflow.unsafe.imports_passed_through():
    from domain.keys import Step
    from domain.messages import MoneyInput, PaymentUpdated, PaymentView, RedriveStep


def _never() -> None:
    """Late money has nobody who could cancel it."""


@workflow.defn
class MoneyWorkflow:
    """Gives back money that moved on a closed order: a hold is voided, a capture refunded, once.

    Started by signal-with-start of `payment_updated` under the intent's id. Update `redrive_step`. Ends when the
    gateway was asked after the last event. The order itself is never reopened.
    """

    @workflow.init
    def __init__(self, money: MoneyInput) -> None:
        self._unread = False
        self._parked: list[str] = []
        self._steps = Steps(money.order_id, _never, self._show)

    @workflow.run
    async def run(self, money: MoneyInput) -> PaymentView | None:
        """Settles until nothing unread is left. Every effect is keyed by the order, so once in all runs together.

        Returns what the gateway said last, or None when an operator waived the settlement.
        """
        unread = True
        while unread:
            self._unread = False
            view: PaymentView | None = await self._steps.insist(
                Step.SETTLE_LATE_MONEY, argument=money, allowed=RETRY_OR_SKIP
            )
            await workflow.wait_condition(workflow.all_handlers_finished)
            unread = self._unread
        return view

    def _show(self) -> None:
        if self._parked != self._steps.parking.labels():
            self._parked = self._steps.parking.labels()
            workflow.upsert_search_attributes([PARKED_STEP.value_set(self._parked)])

    @workflow.signal(description="Something happened to the payment intent: ask the gateway.")
    def payment_updated(self, message: PaymentUpdated) -> None:
        """A wake-up only."""
        self._unread = True

    @workflow.update(description="Retry or skip a parked settlement.")
    def redrive_step(self, message: RedriveStep) -> None:
        """Hands an operator's decision to the parked settlement."""
        self._steps.parking.decide(message)

    @redrive_step.validator
    def _refuse_pointless_redrive(self, message: RedriveStep) -> None:
        self._steps.parking.refuse_unless_allowed(message)
