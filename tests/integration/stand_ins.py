"""Workflows under the real names that do what a test tells them: the API, the relay and delivery only see names."""

from temporalio import workflow
from temporalio.exceptions import ApplicationError

with workflow.unsafe.imports_passed_through():
    from domain.messages import (
        CancelAnswer,
        CancelOrder,
        DecideReview,
        MoneyInput,
        OrderInput,
        PaymentUpdated,
        RedriveStep,
    )
    from domain.order import OrderStatus


@workflow.defn(name="OrderWorkflow")
class OrderStandIn:
    """Runs until `finish`. `behave` with an error type makes its updates refuse, with `silent` never answer."""

    @workflow.init
    def __init__(self, order: OrderInput) -> None:
        self._order_id = order.order_id
        self._behaviour = "accept"
        self._finished = False
        self._seen: list[str] = []

    @workflow.run
    async def run(self, order: OrderInput) -> list[str]:
        await workflow.wait_condition(lambda: self._finished)
        return self._seen

    @workflow.signal
    def behave(self, behaviour: str) -> None:
        self._behaviour = behaviour

    @workflow.signal
    def finish(self) -> None:
        self._finished = True

    @workflow.signal
    def payment_updated(self, message: PaymentUpdated) -> None:
        self._seen.append(message.event_id)

    @workflow.query
    def seen(self) -> list[str]:
        return self._seen

    @workflow.update
    async def cancel_order(self, message: CancelOrder) -> CancelAnswer:
        await self._note("cancel_order", message.actor)
        return CancelAnswer(order_id=self._order_id, status=OrderStatus.AWAITING_PAYMENT)

    @workflow.update
    async def decide_review(self, message: DecideReview) -> None:
        await self._note("approve" if message.approve else "reject", message.actor, message.reason)

    @workflow.update
    async def redrive_step(self, message: RedriveStep) -> None:
        await self._note(message.step.value, message.action.value, message.actor, message.reason)

    async def _note(self, *words: str) -> None:
        if self._behaviour == "silent":
            await workflow.wait_condition(lambda: self._finished)
        elif self._behaviour != "accept":
            raise ApplicationError("in the saga's own words", type=self._behaviour)
        self._seen.append(" ".join(words))


@workflow.defn(name="MoneyWorkflow")
class MoneyStandIn:
    """Ends once a signal has arrived; its result is what it saw."""

    @workflow.init
    def __init__(self, money: MoneyInput) -> None:
        self._seen: list[str] = []

    @workflow.run
    async def run(self, money: MoneyInput) -> list[str]:
        await workflow.wait_condition(lambda: bool(self._seen))
        return [money.order_id, money.intent_id, *self._seen]

    @workflow.signal
    def payment_updated(self, message: PaymentUpdated) -> None:
        self._seen.append(message.event_id)
