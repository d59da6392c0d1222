"""The order's money, as the saga sees it: authorize, wait for the gateway's word, capture.

Everything here decides by what the gateway says when it is asked. Webhooks, polls and deadlines only say when to ask.
"""

from datetime import timedelta

from temporalio import workflow
from temporalio.exceptions import WorkflowAlreadyStartedError

from workflows.calls import Contradicted, Refused, RunOut
from workflows.money import MoneyWorkflow
from workflows.names import money_workflow_id
from workflows.steps import Steps, Stopped

with workflow.unsafe.imports_passed_through():
    from domain.keys import Step
    from domain.messages import GOOD_NEWS, MoneyInput, PaymentUpdated, PaymentView
    from domain.order import CancelReason, ParkKind, PaymentStatus

#: Each poll for a lost webhook waits three times as long as the one before: a handful in half an hour.
POLL_FACTOR = 3


class Payment:
    """One order's payment intent. `view` is what the gateway said last."""

    def __init__(self, steps: Steps) -> None:
        self._steps = steps
        self._unread_events = False
        self._bad_news = False
        self._begun = False
        self.view = PaymentView(status=PaymentStatus.NONE)

    def event_arrived(self, event: PaymentUpdated) -> None:
        """A webhook about this order's intent: wakes whoever waits for the gateway."""
        self._unread_events = True
        self._bad_news = self._bad_news or event.type not in GOOD_NEWS
        self._steps.parking.poke()

    async def authorize(self) -> None:
        """Holds the amount due, or learns that the shopper must act. Raises Stopped when the card is declined."""
        self._begun = True
        await self._settle(Step.AUTHORIZE_PAYMENT, not_done=frozenset({PaymentStatus.NONE}))

    async def capture(self) -> None:
        """The pivot: takes the held money. Raises Stopped when the gateway certainly did not."""
        self._bad_news = False
        await self._settle(
            Step.CAPTURE_PAYMENT,
            not_done=frozenset({PaymentStatus.AUTHORIZED}),
            unknown=frozenset({PaymentStatus.PROCESSING}),
            interruptible=False,
        )
        if self.view.status is not PaymentStatus.CAPTURED:
            raise Stopped(self.view.reason or CancelReason.CAPTURE_FAILED)

    async def release(self) -> None:
        """The undo: gives back whatever the gateway holds or took."""
        self._begun = True
        self._unread_events = self._bad_news = False
        released = await self._steps.insist(Step.RELEASE_PAYMENT)
        self.view = released or self.view

    async def release_what_came_since(self) -> None:
        """Releases again as long as the gateway reported something after it was last asked."""
        while self._begun and self._unread_events:
            await self.release()

    async def hand_over(self) -> None:
        """What may still happen to the money when the saga ends is `MoneyWorkflow`'s: it looks again by itself.

        That is a refund on its way, and what the gateway told of a captured payment after it was last asked.
        """
        left = self.view.status is PaymentStatus.REFUND_PENDING or (self._bad_news and self.view.captured > 0)
        intent_id = self.view.intent_id
        if not left or intent_id is None or not workflow.patched("hand-over-money"):
            return
        try:
            await workflow.start_child_workflow(
                MoneyWorkflow.run,
                MoneyInput(order_id=self._steps.order_id, intent_id=intent_id),
                id=money_workflow_id(intent_id),
                parent_close_policy=workflow.ParentClosePolicy.ABANDON,
                static_summary=f"Late money of order {self._steps.order_id}",
            )
        except WorkflowAlreadyStartedError:
            return  # an event has started it: only now, since this saga takes events as long as it runs

    async def _settle(
        self,
        step: Step,
        *,
        not_done: frozenset[PaymentStatus],
        unknown: frozenset[PaymentStatus] = frozenset(),
        interruptible: bool = True,
    ) -> None:
        """Calls a step until its outcome is known. Unknown is looked up; what stays unknown parks.

        The provider's key stays within one series of tries. Only when a look-up says *certainly not done*, or an
        operator wants a contradiction tried anew, does the next series use its next revision: a stored 500 is replayed
        for ever.
        """
        revision = 1
        while True:
            try:
                self.view = await self._steps.do(step, revision=revision, interruptible=interruptible)
            except Refused as refusal:
                raise Stopped(refusal.reason) from None
            except RunOut as ending:
                known = await self._look_up(unknown)
                again = revision == 1 and not ending.not_served
                if interruptible:
                    self._steps.stop_if_cancelled()
                if known is None or (known.status in not_done and not again):
                    await self._steps.park(step, ParkKind.TECHNICAL, ending.error)
                    known = await self._look_up(unknown)
                if known is None:
                    continue
                if known.status in not_done:
                    revision += 1
                    continue
                self.view = known
            except Contradicted as ending:
                await self._steps.park(step, ParkKind.DECISION, ending.error)
                revision += 1
                continue
            await self._steps.parking.close(step, "")
            return

    async def _look_up(self, unknown: frozenset[PaymentStatus]) -> PaymentView | None:
        try:
            view: PaymentView = await self._steps.do(Step.READ_PAYMENT, interruptible=False)
        except (RunOut, Contradicted):
            return None
        return None if view.status in unknown else view

    async def wait_until_held(self) -> None:
        """Waits for the gateway's word until the money is held. Raises Stopped when it will not be.

        Woken by webhooks; a lost one is found by reading the intent now and then; the deadline is decided by the
        gateway too: what is not authorized by then is cancelled there first, and only the cancel's answer counts.
        """
        policy = self._steps.policy
        begun = workflow.now()
        deadline = begun + timedelta(seconds=policy.payment_deadline_seconds)
        pause = policy.first_poll_seconds
        while not self._is_held(overdue=workflow.now() >= deadline):
            left = (deadline - workflow.now()).total_seconds()
            seconds = min(pause, left) if left > 0 else policy.processing_poll_seconds
            pause *= POLL_FACTOR
            until = deadline if left > 0 else begun + timedelta(seconds=policy.processing_limit_seconds)
            await self._steps.sleep(self._is_woken, seconds, waiting_for="the payment", until=until)
            self._steps.stop_if_cancelled()
            age = workflow.now() - begun
            await self._ask(
                overdue=workflow.now() >= deadline,
                too_old=age >= timedelta(seconds=policy.processing_limit_seconds),
            )

    def _is_woken(self) -> bool:
        return self._unread_events or self._steps.is_cancelled()

    def _is_held(self, *, overdue: bool) -> bool:
        match self.view.status:
            case PaymentStatus.AUTHORIZED | PaymentStatus.CAPTURED:
                return True
            case PaymentStatus.REFUND_PENDING | PaymentStatus.REFUNDED:
                # Somebody took the money and gave it back in the gateway's own dashboard.
                raise Stopped(CancelReason.CANCELLED_BY_OPERATOR)
            case PaymentStatus.DECLINED:
                raise Stopped(self.view.reason or CancelReason.CARD_DECLINED)
            case PaymentStatus.VOIDED:
                timed_out = CancelReason.PAYMENT_TIMED_OUT if overdue else CancelReason.AUTHORIZATION_EXPIRED
                raise Stopped(self.view.reason or timed_out)
            case _:
                return False

    async def _ask(self, *, overdue: bool, too_old: bool) -> None:
        """Asks the gateway, and cancels what is overdue and not authorized. Before the deadline silence is patience."""
        self._unread_events = self._bad_news = False
        try:
            self.view = await self._steps.do(Step.ABANDON_PAYMENT if overdue else Step.READ_PAYMENT)
        except RunOut as ending:
            if overdue:
                await self._park_wait(ParkKind.TECHNICAL, ending.error)
            return
        except Contradicted as ending:
            await self._park_wait(ParkKind.DECISION, ending.error)
            return
        if too_old and self.view.status is PaymentStatus.PROCESSING:
            await self._park_wait(ParkKind.TECHNICAL, "StillProcessing")
        else:
            await self._steps.parking.close(Step.AWAIT_PAYMENT, "")

    async def _park_wait(self, kind: ParkKind, error: str) -> None:
        """Parks the wait itself; whatever ends the park, the gateway is asked next."""
        await self._steps.park(Step.AWAIT_PAYMENT, kind, error)
        self._unread_events = True
