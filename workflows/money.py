"""Money after an order's saga has ended: what moves at the gateway by itself, and what an operator gives back."""

from datetime import timedelta

from temporalio import workflow
from temporalio.exceptions import FailureError

from workflows.names import PARKED_STEP, refund_workflow_id
from workflows.steps import News, Steps

with workflow.unsafe.imports_passed_through():
    from domain.keys import Step
    from domain.messages import (
        MoneyInput,
        PaymentUpdated,
        PaymentView,
        RedriveStep,
        RefundAsked,
        RefundOpened,
        RefundRecorded,
        RefundView,
    )
    from domain.order import PaymentStatus, RefundRefusal

#: A refund that is on its way is asked after once a day, lest its webhook was lost: banks take five to ten days.
LOOK_AGAIN = timedelta(days=1)


def _never() -> None:
    """Late money has nobody who could cancel it."""


@workflow.defn
class MoneyWorkflow:
    """Gives money back: what moved on an order that is closed, and what an operator refunds.

    Started by signal-with-start of `payment_updated` under the intent's id, or by update-with-start of
    `request_refund` under the refund's. Update `redrive_step`. Ends when the gateway was asked after the last event and
    no refund is on its way. The order itself is never reopened.
    """

    @workflow.init
    def __init__(self, money: MoneyInput) -> None:
        self._news = News()
        self._opened: RefundOpened | None = None
        self._parked: list[str] = []
        self._steps = Steps(money.order_id, _never, self._show)

    @workflow.run
    async def run(self, money: MoneyInput) -> PaymentView | None:
        """Settles until nothing unread is left. Every effect is keyed by the order, so once in all runs together.

        Returns what the gateway said last; None when an operator waived the settlement, and for an operator's refund.
        """
        if money.refund is None:
            return await self._settle(money)
        await self._refund(money, money.refund)
        await workflow.wait_condition(workflow.all_handlers_finished)
        return None

    async def _settle(self, money: MoneyInput) -> PaymentView | None:
        """What moved on the intent of a closed order."""
        news = self._news if workflow.patched("look-at-news-while-parked") else None
        while True:
            self._news.unread = False
            view: PaymentView | None = await self._steps.insist(Step.SETTLE_LATE_MONEY, argument=money, news=news)
            if view and view.refund_under_way:
                await self._tell_refund(money.order_id, view.refund_under_way)
            await workflow.wait_condition(workflow.all_handlers_finished)
            if self._news.unread:
                continue
            if not (view and self._is_to_be_watched(view)):
                return view
            await self._wait_for_news()

    def _is_to_be_watched(self, view: PaymentView) -> bool:
        """A refund on its way that no workflow of its own looks after."""
        if view.status is not PaymentStatus.REFUND_PENDING or view.refund_under_way:
            return False
        return workflow.patched("watch-pending-refunds")

    async def _tell_refund(self, order_id: str, refund_id: str) -> None:
        """The webhook of an operator's refund names the intent: the refund's own workflow decides what it means."""
        handle = workflow.get_external_workflow_handle_for(MoneyWorkflow.run, refund_workflow_id(order_id, refund_id))
        try:
            await handle.signal(MoneyWorkflow.payment_updated, PaymentUpdated(event_id="", type="", intent_id=""))
        except FailureError:
            return  # it has ended

    async def _refund(self, money: MoneyInput, refund: RefundAsked) -> None:
        """An operator's refund: taken under the cap, asked for, watched until the provider says what became of it."""
        opened: RefundOpened | None = await self._steps.write(Step.OPEN_REFUND, money)
        self._opened = opened or RefundOpened(refusal=RefundRefusal.NOT_CONFIRMED)
        if self._opened.refusal:
            return
        while True:
            view: RefundView | None = await self._steps.insist(
                Step.REFUND_PAYMENT,
                item=refund.refund_id,
                argument=money,
                news=self._news,
            )
            if view is None:
                return
            if not view.pending:
                break
            await self._wait_for_news()
        done = RefundRecorded(
            order_id=money.order_id, refund_id=refund.refund_id, amount=self._opened.amount, actor=refund.actor
        )
        await self._steps.write(Step.RECORD_REFUND, done)

    async def _wait_for_news(self) -> None:
        """Until an event arrives, or for a day."""
        try:
            await workflow.wait_condition(
                self._news.is_there, timeout=LOOK_AGAIN, timeout_summary="a refund is on its way: ask again"
            )
        except TimeoutError:
            return

    def _show(self) -> None:
        if self._parked != self._steps.parking.labels():
            self._parked = self._steps.parking.labels()
            workflow.upsert_search_attributes([PARKED_STEP.value_set(self._parked)])

    @workflow.signal(description="Something happened to the payment intent: ask the gateway.")
    def payment_updated(self, message: PaymentUpdated) -> None:
        """A wake-up only."""
        self._news.unread = True

    @workflow.update(description="The operator's refund: whether it is taken, and its amount.")
    async def request_refund(self) -> RefundOpened:
        """The answer to whoever asked, as soon as the refund has its place under the cap."""
        await workflow.wait_condition(lambda: self._opened is not None)
        assert self._opened is not None
        return self._opened

    @workflow.update(description="Retry or skip a parked settlement or refund.")
    def redrive_step(self, message: RedriveStep) -> None:
        """Hands an operator's decision to the parked step."""
        self._steps.parking.decide(message)

    @redrive_step.validator
    def _refuse_pointless_redrive(self, message: RedriveStep) -> None:
        self._steps.parking.refuse_unless_allowed(message)
