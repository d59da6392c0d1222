"""The order saga.

1 open     take the accepted order for this run
2 screen   ask the fraud scorer, and a person where it matters
3 reserve  stock, points and store credit, side by side        undo: release, restore, refund
4 pay      authorize, then wait for the gateway's word         undo: release the payment
5 ship     book one shipment a warehouse, side by side         undo: cancel the shipment
6 capture  take the money: the pivot                           no undo: from here on forwards only
7 confirm  tell the world, then turn the reservation into a sale
"""

import asyncio

from temporalio import workflow
from temporalio.exceptions import ApplicationError

from workflows.calls import Contradicted, Refused, RunOut
from workflows.compensation import CompensationStack
from workflows.dead_runs import ask_what_to_do
from workflows.payment import Payment
from workflows.review import Review
from workflows.stage import Stage
from workflows.steps import Steps, Stopped, settle_together

with workflow.unsafe.imports_passed_through():
    from domain.keys import PAYMENT_STEPS, UNDO_OF, Step
    from domain.messages import (
        CancelAnswer,
        CancelOrder,
        DecideReview,
        OpenedOrder,
        OrderInput,
        OrderResult,
        OrderState,
        PaymentUpdated,
        RedriveStep,
        Reservation,
        StatusRecorded,
        TimelineEntry,
    )
    from domain.order import SOLD_STATUSES, CancelReason, OrderStatus, ParkKind, RedriveAction


@workflow.defn
class OrderWorkflow:
    """One order from acceptance to its end, and the only one that decides about it.

    Started by the relay (or directly, by the same name) with the order id. Signal `payment_updated`; updates
    `cancel_order`, `decide_review`, `redrive_step`; queries `status`, `timeline`. Steps 3–5 are compensatable, 6 is
    the pivot, 7 is retriable. Ends when the order is confirmed with its stock sold, or undone to the last effect.
    """

    @workflow.init
    def __init__(self, order: OrderInput) -> None:
        self._order_id = order.order_id
        self._found_dead = order if order.found_dead else None
        self._cancel: CancelOrder | None = None
        self._pivot_passed = False
        self._undoing = False
        self._steps = Steps(order.order_id, self._cancelled, self._show)
        self._review = Review(self._steps)
        self._payment = Payment(self._steps)
        self._stage = Stage(self._steps, self._payment)
        self._undo = CompensationStack(self._steps, self._payment.release)

    @workflow.run
    async def run(self, order: OrderInput) -> OrderResult:
        """Runs the saga in a task of its own: a cancel request of Temporal reaches only this loop, as a message."""
        saga = asyncio.create_task(self._saga_and_handlers())
        while not saga.done():
            try:
                await asyncio.shield(saga)
            except asyncio.CancelledError:
                self._note_cancel(CancelOrder(reason=CancelReason.CANCELLED_BY_OPERATOR, actor="temporal"))
        return saga.result()

    async def _saga_and_handlers(self) -> OrderResult:
        result = await self._saga()
        await workflow.wait_condition(workflow.all_handlers_finished)
        return result

    async def _saga(self) -> OrderResult:
        """One order, top to bottom."""
        try:
            order = await self._open()
            if order.closed:
                return self._stage.result()
            if order.status is OrderStatus.CONFIRMED:
                return await self._confirm()
            await self._screen(order)
            warehouses = await self._reserve(order)
            await self._pay(order)
            await self._ship(warehouses)
            await self._capture(order)
        except Stopped as stopped:
            return await self._unwind(stopped.reason)
        return await self._confirm()

    # --- the steps, in the order of the saga ----------------------------------------------------------------------

    async def _open(self) -> OpenedOrder:
        while True:
            try:
                dead = self._found_dead
                order: OpenedOrder = await self._steps.do(Step.OPEN_ORDER, argument=dead, interruptible=False)
                break
            except Refused as refusal:
                raise Stopped(refusal.reason) from None
            except (RunOut, Contradicted) as ending:
                kind = ParkKind.TECHNICAL if isinstance(ending, RunOut) else ParkKind.DECISION
                await self._steps.park(Step.OPEN_ORDER, kind, ending.error)
        await self._steps.parking.close(Step.OPEN_ORDER, "")
        self._steps.order, self._steps.policy = order, order.policy
        self._stage.begin(order)
        self._remember_earlier_runs(order)
        if self._found_dead:
            await ask_what_to_do(self._steps, order)
        if order.status is OrderStatus.COMPENSATING:
            raise Stopped(order.reason or CancelReason.CANCELLED_BY_OPERATOR)
        return order

    def _remember_earlier_runs(self, order: OpenedOrder) -> None:
        """A run that was terminated or reset left its effects behind: this run finds them, or undoes them."""
        for effect in order.begun:
            self._undo.push(UNDO_OF[effect.step], effect.item)
        for warehouse in self._found_dead.warehouses if self._found_dead else ():
            self._undo.push(Step.CANCEL_SHIPMENT, warehouse)

    async def _screen(self, order: OpenedOrder) -> None:
        """A person decides about a suspicious or large order, and while nobody can score it."""
        if await self._review.screen(order):
            return
        self._steps.stop_if_cancelled()
        await self._stage.record(OrderStatus.AWAITING_REVIEW, self._cancel)
        refusal = await self._review.wait(order)
        self._steps.stop_if_cancelled()
        if refusal:
            raise Stopped(refusal)

    async def _reserve(self, order: OpenedOrder) -> list[str]:
        """Stock, points and credit are taken together and settled together; the first refusal is the reason."""
        self._steps.stop_if_cancelled()
        self._undo.push(Step.RELEASE_STOCK)
        members = [self._steps.take(Step.RESERVE_STOCK)]
        if order.points:
            self._undo.push(Step.RESTORE_POINTS)
            members.append(self._steps.take(Step.BURN_POINTS))
        if order.store_credit:
            self._undo.push(Step.REFUND_STORE_CREDIT)
            members.append(self._steps.take(Step.APPLY_STORE_CREDIT))
        reservation: Reservation = (await settle_together(members))[0]
        return reservation.warehouses

    async def _pay(self, order: OpenedOrder) -> None:
        """Holds the amount due until the courier has said yes."""
        self._steps.stop_if_cancelled()
        if order.amount_due == 0:
            return
        await self._stage.record(OrderStatus.AWAITING_PAYMENT, self._cancel)
        self._steps.stop_if_cancelled()
        self._undo.push(Step.RELEASE_PAYMENT)
        await self._payment.authorize()
        await self._payment.wait_until_held()

    async def _ship(self, warehouses: list[str]) -> None:
        """One shipment a warehouse. A refused or silent courier undoes the order: nothing was captured yet."""
        self._steps.stop_if_cancelled()
        for warehouse in warehouses:
            self._undo.push(Step.CANCEL_SHIPMENT, warehouse)
        await settle_together(
            [
                self._steps.take(Step.BOOK_SHIPMENT, place, run_out=CancelReason.COURIER_UNAVAILABLE)
                for place in warehouses
            ]
        )

    async def _capture(self, order: OpenedOrder) -> None:
        """The pivot. The cancel flag is read for the last time in the same block that schedules the capture."""
        self._steps.stop_if_cancelled()
        self._pivot_passed = True
        if order.amount_due:
            await self._payment.capture()

    async def _confirm(self) -> OrderResult:
        """The pivot is behind us: nothing un-confirms an order, and both steps are tried until they are done."""
        self._pivot_passed = True
        recorded: StatusRecorded = await self._steps.insist(Step.CONFIRM_ORDER, keep_trying=True)
        self._stage.status, self._stage.reason = recorded.status, None
        self._stage.show()
        await self._steps.insist(Step.COMMIT_STOCK, keep_trying=True)
        await self._payment.hand_over()
        return self._stage.result()

    # --- the way back ---------------------------------------------------------------------------------------------

    async def _unwind(self, reason: CancelReason) -> OrderResult:
        """Undoes what was begun, newest first. An undo that parks, or must look again, stops none of the others."""
        self._undoing, self._stage.reason = True, reason
        await self._steps.parking.close_all()
        if not self._undo and self._is_refusal(reason):
            await self._stage.record(OrderStatus.REJECTED, self._cancel)
            return self._stage.result()
        if await self._stage.record(OrderStatus.COMPENSATING, self._cancel) in SOLD_STATUSES:
            return await self._confirm()  # an earlier run of this order has sold it
        await self._undo.unwind()
        await self._payment.release_what_came_since()
        await self._stage.record(OrderStatus.CANCELLED_COMPENSATED, self._cancel)
        await self._payment.release_what_came_since()
        await self._payment.hand_over()
        return self._stage.result()

    def _is_refusal(self, reason: CancelReason) -> bool:
        """Whether the shop says no: also when a cancel came while it was about to."""
        if self._cancel is None:
            return True
        return reason is not self._cancel.reason and workflow.patched("reject-under-a-cancel")

    def _show(self) -> None:
        self._stage.show()

    # --- cancelling -----------------------------------------------------------------------------------------------

    def _note_cancel(self, message: CancelOrder) -> None:
        """The first cancel counts; after the pivot, and while undoing, there is nothing left to cancel."""
        if self._cancel is None and not self._pivot_passed and not self._undoing:
            self._cancel = message

    def _cancelled(self) -> CancelReason | None:
        return self._cancel.reason if self._cancel and not self._undoing else None

    # --- handlers -------------------------------------------------------------------------------------------------

    @workflow.signal(description="Something happened to the payment intent: ask the gateway.")
    def payment_updated(self, message: PaymentUpdated) -> None:
        """A wake-up only: what happened is read from the gateway, so duplicates, order and age cannot matter."""
        self._payment.event_arrived(message)

    @workflow.update(description="Cancel the order, unless the money has been taken.")
    def cancel_order(self, message: CancelOrder) -> CancelAnswer:
        """Accepted means undone, always."""
        self._note_cancel(message)
        return CancelAnswer(order_id=self._order_id, status=self._stage.state().status)

    @cancel_order.validator
    def _refuse_late_cancel(self, message: CancelOrder) -> None:
        if self._pivot_passed and not self._undoing:
            raise ApplicationError("the payment is being taken already", type="TooLate")

    @workflow.update(description="Approve or reject an order that waits for a reviewer.")
    def decide_review(self, message: DecideReview) -> None:
        """The first decision counts."""
        self._review.decide(message)

    @decide_review.validator
    def _refuse_idle_review(self, message: DecideReview) -> None:
        if not self._review.undecided:
            raise ApplicationError("the order does not wait for a reviewer", type="NoSuchWait")

    @workflow.update(description="Retry, compensate or skip a parked step.")
    async def redrive_step(self, message: RedriveStep) -> None:
        """Hands an operator's decision to a parked step. Undoing a payment needs a gateway that can be read."""
        if message.action is RedriveAction.COMPENSATE and message.step in PAYMENT_STEPS:
            try:
                await self._steps.do(Step.READ_PAYMENT, interruptible=False)
            except RunOut as ending:
                raise ApplicationError("the gateway cannot be read now", type="OutcomeUnknown") from ending
            except Contradicted:
                pass
            self._steps.parking.refuse_unless_allowed(message)
        self._steps.parking.decide(message)

    @redrive_step.validator
    def _refuse_pointless_redrive(self, message: RedriveStep) -> None:
        self._steps.parking.refuse_unless_allowed(message)

    @workflow.query(description="Status, reason, payment and open review items.")
    def status(self) -> OrderState:
        """Where the order stands."""
        return self._stage.state()

    @workflow.query(description="The steps of this run in the order in which they happened.")
    def timeline(self) -> list[TimelineEntry]:
        """What this run did, when."""
        return self._steps.timeline
