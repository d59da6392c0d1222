"""What people do to one order from outside: by HTTP, at a terminal, in Temporal's Web UI, at a provider's desk."""

import json
from collections.abc import Awaitable, Callable

from demo.run import Running
from domain.keys import Step
from domain.order import OrderStatus, PaymentStatus, RedriveAction
from domain.views import OrderView
from runtime.temporal import connect
from tests.e2e.doors import PATIENCE_SECONDS
from tests.e2e.running import RunningShop
from workflows.names import order_workflow_id

Story = Callable[[RunningShop, Running], Awaitable[None]]

#: Longer than a card's hold lives at the gateway.
EIGHT_DAYS_SECONDS = 8 * 24 * 3600.0


async def by_http(shop: RunningShop, order: Running) -> None:
    """Placed over HTTP, and left alone."""
    await shop.place(order)


async def by_terminal(shop: RunningShop, order: Running) -> None:
    """Typed, and followed to its end."""
    await _typed(shop, order, ends_with=0 if order.case.sold else 3)


async def _typed(shop: RunningShop, order: Running, *, ends_with: int) -> None:
    document = json.dumps(order.case.document(order.customer_id)).encode()
    words = ("starter.py", "order", "-", "--key", order.key, "--watch")
    ended = await shop.run(*words, stdin=document, limit_seconds=PATIENCE_SECONDS)
    assert (ended.code, ended.err) == (ends_with, ""), ended.out


def authenticated(outcome: str) -> Story:
    """The bank wants to see the shopper, who answers so."""

    async def story(shop: RunningShop, order: Running) -> None:
        intent = await shop.place_until_payment(order, {PaymentStatus.REQUIRES_ACTION})
        await shop.doors.authenticate(intent, outcome)

    return story


def reviewed(decision: str) -> Story:
    """A reviewer is asked, and decides so."""

    async def story(shop: RunningShop, order: Running) -> None:
        await shop.place(order)
        await shop.until(order, lambda view: view.status is OrderStatus.AWAITING_REVIEW)
        await shop.doors.review(order.order_id, decision)

    return story


async def cancelled_in_review(shop: RunningShop, order: Running) -> None:
    """The shopper cancels, twice, while a reviewer is asked."""
    await shop.place(order)
    await shop.until(order, lambda view: view.status is OrderStatus.AWAITING_REVIEW)
    assert [await shop.doors.ask_to_cancel(order.order_id) for _ in range(2)] == [202, 202]


async def cancelled_while_paying(shop: RunningShop, order: Running) -> None:
    """The shopper cancels while the bank works on the payment, and its yes comes after that."""
    intent = await shop.place_until_payment(order, {PaymentStatus.PROCESSING})
    assert await shop.doors.ask_to_cancel(order.order_id) == 202
    await shop.doors.late_yes(intent)


async def cancelled_in_temporal(shop: RunningShop, order: Running) -> None:
    """Somebody presses *Request Cancellation* in the Web UI."""
    await shop.place_until_payment(order, {PaymentStatus.REQUIRES_ACTION})
    await (await connect(shop.settings)).get_workflow_handle(order_workflow_id(order.order_id)).cancel()


async def too_late(shop: RunningShop, order: Running) -> None:
    """The shopper cancels what is confirmed."""
    await shop.place(order)
    await shop.until(order, lambda view: view.status is OrderStatus.CONFIRMED)
    assert await shop.doors.ask_to_cancel(order.order_id) == 409


async def hold_ended_by_somebody(shop: RunningShop, order: Running) -> None:
    """The hold is ended in the gateway's own dashboard before it is captured."""
    intent = await shop.place_until_payment(order, {PaymentStatus.AUTHORIZED})
    await shop.doors.cancel_at_gateway(intent)


async def hold_outlived(shop: RunningShop, order: Running) -> None:
    """The bank drops the hold before it is captured: the courier took eight days. Ages all holds of the gateway."""
    await shop.place_until_payment(order, {PaymentStatus.AUTHORIZED})
    await shop.doors.advance_providers(EIGHT_DAYS_SECONDS)


async def points_locked(shop: RunningShop, order: Running) -> None:
    """Somebody's own session at the database keeps the customer's points locked until the shop gives up."""
    lock = "SELECT points FROM points_accounts WHERE customer_id = %s FOR UPDATE"
    async with shop.holding(lock, order.customer_id):
        await shop.place(order)
        await shop.until(order, lambda view: view.status not in {OrderStatus.PENDING})


def parked(step: Step, action: RedriveAction) -> Story:
    """Placed over HTTP, parked at this step, and moved by an operator."""

    async def story(shop: RunningShop, order: Running) -> None:
        await shop.place(order)
        await _moved(shop, order, step, action)

    return story


async def parked_at_a_terminal(shop: RunningShop, order: Running) -> None:
    """Typed, followed until it is parked, and retried by an operator."""
    await _typed(shop, order, ends_with=4)
    await _moved(shop, order, Step.AUTHORIZE_PAYMENT, RedriveAction.RETRY)


async def silent_gateway_at_the_deadline(shop: RunningShop, order: Running) -> None:
    """Nobody can say what became of the payment, until the gateway can be read again."""
    await shop.place(order)
    await shop.until(order, lambda view: _is_parked_at(view, Step.AWAIT_PAYMENT))
    await shop.doors.heal(order.order_id)
    await shop.doors.redrive(order.order_id, Step.AWAIT_PAYMENT, RedriveAction.RETRY)


async def parcel_cancelled_by_phone(shop: RunningShop, order: Running) -> None:
    """The courier does not take our cancel; an operator settles it by phone and skips the step."""
    await shop.doors.fault_at_courier(
        {"op": "cancel", "mode": "error", "status": 401, "times": 3, "order_id": order.order_id}
    )
    await shop.place(order)
    await shop.until(order, lambda view: _is_parked_at(view, Step.CANCEL_SHIPMENT))
    for warehouse in order.case.stock:
        await shop.doors.cancel_at_courier(order.order_id, warehouse)
    await shop.doors.redrive(order.order_id, Step.CANCEL_SHIPMENT, RedriveAction.SKIP)


async def _moved(shop: RunningShop, order: Running, step: Step, action: RedriveAction) -> None:
    view = await shop.until(order, lambda view: _is_parked_at(view, step))
    assert view.status is OrderStatus.NEEDS_REVIEW
    await shop.doors.redrive(order.order_id, step, action)


def _is_parked_at(view: OrderView, step: Step) -> bool:
    return step in [item.step for item in view.needs_review]
