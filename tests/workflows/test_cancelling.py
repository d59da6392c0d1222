"""Accepted means undone, always: whenever the cancel comes, however often, from whichever side."""

import asyncio
from typing import Any

import pytest
from temporalio.testing import WorkflowEnvironment

from domain.keys import Step
from tests.baskets import Basket
from tests.builders import an_order_document
from tests.gates import a_bug, database_down
from tests.shop import Shop

#: Each step before the pivot, with the item that tells one call from the others, and the effect that comes next.
BEFORE_THE_PIVOT = (
    (Step.OPEN_ORDER, None, Step.RESERVE_STOCK),
    (Step.SCREEN_ORDER, None, Step.RESERVE_STOCK),
    (Step.RESERVE_STOCK, None, Step.AUTHORIZE_PAYMENT),
    (Step.BURN_POINTS, None, Step.AUTHORIZE_PAYMENT),
    (Step.APPLY_STORE_CREDIT, None, Step.AUTHORIZE_PAYMENT),
    (Step.RECORD_STATUS, "AWAITING_PAYMENT", Step.AUTHORIZE_PAYMENT),
    (Step.AUTHORIZE_PAYMENT, None, Step.BOOK_SHIPMENT),
    (Step.READ_PAYMENT, None, Step.BOOK_SHIPMENT),
    (Step.BOOK_SHIPMENT, None, Step.CAPTURE_PAYMENT),
)
AFTER_THE_PIVOT = (Step.CAPTURE_PAYMENT, Step.CONFIRM_ORDER, Step.COMMIT_STOCK)
UNDOS = (
    Step.CANCEL_SHIPMENT,
    Step.RELEASE_PAYMENT,
    Step.REFUND_STORE_CREDIT,
    Step.RESTORE_POINTS,
    Step.RELEASE_STOCK,
)
PAYS_IN_THREE_WAYS = {"points": 500, "store_credit": 1000}
REFUSED_AT_LAST: dict[str, Any] = PAYS_IN_THREE_WAYS | {
    "shipping_address": an_order_document()["shipping_address"] | {"postcode": "00000"}
}


async def cancel_as_customer(shop: Shop, order_id: str) -> None:
    """By the API; it must be accepted."""
    status, body = await shop.cancel(order_id)
    assert (status, body["order_id"]) == (202, order_id)


async def cancel_in_temporal(shop: Shop, order_id: str) -> None:
    """By Temporal's own cancel request, as the Web UI sends it."""
    await shop.saga(order_id).cancel()


CANCELS = pytest.mark.parametrize(
    ("cancel", "reason"),
    [(cancel_as_customer, "CANCELLED_BY_CUSTOMER"), (cancel_in_temporal, "CANCELLED_BY_OPERATOR")],
    ids=["by the customer", "in Temporal"],
)


async def assert_cancelled(shop: Shop, basket: Basket, reason: str) -> None:
    """The saga ended by itself, with its result, and left nothing behind."""
    view = await shop.ended(basket.order_id)
    assert view.status == "CANCELLED_COMPENSATED"
    description = await shop.saga(basket.order_id).describe()
    assert description.status is not None
    assert description.status.name == "COMPLETED"
    await shop.assert_undone(basket, basket.order_id, reason)


@CANCELS
async def test_a_cancel_at_any_step_before_the_pivot_undoes_the_order(shop: Shop, cancel: Any, reason: str) -> None:
    """S68: the customer's comes before the step's effect, Temporal's after it: to the saga the two are one message."""
    after = cancel is cancel_in_temporal

    async def one(step: Step, item: str | None, following: Step) -> None:
        basket = await shop.basket(credit=1000)
        gate = shop.gates.hold(basket.order_id, step, item=item, after=after)
        await shop.place(basket, **PAYS_IN_THREE_WAYS)
        await gate.reached()
        await cancel(shop, basket.order_id)
        gate.open()
        await assert_cancelled(shop, basket, reason)
        assert shop.gates.calls(basket.order_id, following) == 0

    await asyncio.gather(*(one(*stage) for stage in BEFORE_THE_PIVOT))


@CANCELS
async def test_a_cancel_wakes_every_wait(
    shop: Shop, environment: WorkflowEnvironment, cancel: Any, reason: str
) -> None:
    review = await shop.basket(suffix="-score-95")
    payment, courier, parked = [await shop.basket() for _ in range(3)]
    shop.gates.fail(parked.order_id, Step.RESERVE_STOCK, a_bug)
    await shop.fault("book", "error", on="courier", order_id=courier.order_id, status=503, retry_after=100, times=9)
    for basket in (review, courier, parked):
        await shop.place_in_real_time(basket)
    await shop.place_in_real_time(payment, payment_method="pm_card_authenticationRequired")
    await shop.reaches(review.order_id, "AWAITING_REVIEW")
    await shop.reaches(parked.order_id, "NEEDS_REVIEW")
    await shop.gates.ended(payment.order_id, Step.AUTHORIZE_PAYMENT, 1)
    await shop.gates.ended(courier.order_id, Step.BOOK_SHIPMENT, 1)
    for basket in (review, payment, courier, parked):
        await cancel(shop, basket.order_id)
    # Its undo looks at the courier again a minute later.
    await environment.fast_forward(shop.saga(courier.order_id))
    for basket in (review, payment, courier, parked):
        await assert_cancelled(shop, basket, reason)


@CANCELS
async def test_a_cancel_in_the_moment_of_the_order_undoes_it(shop: Shop, cancel: Any, reason: str) -> None:
    baskets = [await shop.basket() for _ in range(4)]
    for basket in baskets:
        shop.gates.hold(basket.order_id, Step.SCREEN_ORDER, times=1)
        await shop.place(basket)
        if cancel is cancel_in_temporal:
            await shop.started(basket.order_id)
        await cancel(shop, basket.order_id)
    for basket in baskets:
        await assert_cancelled(shop, basket, reason)


@CANCELS
async def test_cancels_during_each_undo_change_nothing(shop: Shop, cancel: Any, reason: str) -> None:
    """S68: the saga ends by itself with its result."""

    async def one(undo: Step) -> None:
        basket = await shop.basket(credit=1000)
        gate = shop.gates.hold(basket.order_id, undo)
        await shop.place(basket, **REFUSED_AT_LAST)
        await gate.reached()
        await cancel(shop, basket.order_id)
        await cancel(shop, basket.order_id)
        gate.open()
        await assert_cancelled(shop, basket, "NO_SERVICE_TO_ADDRESS")

    await asyncio.gather(*(one(undo) for undo in UNDOS))


async def test_the_first_of_two_cancels_counts(shop: Shop) -> None:
    async def one(first: Any, second: Any, reason: str) -> None:
        basket = await shop.basket()
        gate = shop.gates.hold(basket.order_id, Step.RESERVE_STOCK)
        await shop.place(basket)
        await gate.reached()
        await first(shop, basket.order_id)
        await second(shop, basket.order_id)
        gate.open()
        await assert_cancelled(shop, basket, reason)

    await asyncio.gather(
        one(cancel_as_customer, cancel_in_temporal, "CANCELLED_BY_CUSTOMER"),
        one(cancel_in_temporal, cancel_as_customer, "CANCELLED_BY_OPERATOR"),
    )


async def test_after_the_pivot_a_cancel_is_too_late_and_the_order_is_confirmed(shop: Shop) -> None:
    """S68: at the steps from which there is no way back."""

    async def one(step: Step) -> None:
        basket = await shop.basket()
        gate = shop.gates.hold(basket.order_id, step)
        await shop.place(basket)
        await gate.reached()
        status, problem = await shop.cancel(basket.order_id)
        assert (status, problem["type"].rpartition("/")[2]) == (409, "too-late")
        await cancel_in_temporal(shop, basket.order_id)
        gate.open()
        await shop.ended(basket.order_id)
        assert (await shop.cancel(basket.order_id))[0] == 409
        await shop.assert_clean(basket, basket.order_id)

    await asyncio.gather(*(one(step) for step in AFTER_THE_PIVOT))


async def test_a_cancel_after_a_refused_capture_joins_the_undo(shop: Shop) -> None:
    basket = await shop.basket()
    await shop.fault("capture", "error", order_id=basket.order_id, status=402)
    gate = shop.gates.hold(basket.order_id, Step.CANCEL_SHIPMENT)
    order_id = await shop.place(basket)
    await gate.reached()
    await cancel_as_customer(shop, order_id)
    gate.open()
    await assert_cancelled(shop, basket, "CAPTURE_FAILED")


@CANCELS
async def test_a_cancel_of_an_order_that_is_about_to_be_rejected_leaves_it_rejected(
    shop: Shop, cancel: Any, reason: str
) -> None:
    basket = await shop.basket()
    gate = shop.gates.hold(basket.order_id, Step.OPEN_ORDER)
    order_id = await shop.place(basket, lines=[{"sku": "nobody-sells-this", "quantity": 1}])
    await gate.reached()
    await cancel(shop, order_id)
    gate.open()
    assert (await shop.ended(order_id)).status == "REJECTED"
    await shop.assert_undone(basket, order_id, "UNKNOWN_SKU")


async def test_cancelling_an_undone_order_is_accepted_and_changes_nothing(shop: Shop) -> None:
    cancelled, rejected = await shop.basket(), await shop.basket()
    await shop.place(cancelled, payment_method="pm_card_chargeDeclined")
    await shop.place(rejected, lines=[{"sku": "nobody-sells-this", "quantity": 1}])
    for basket, reason in ((cancelled, "CARD_DECLINED"), (rejected, "UNKNOWN_SKU")):
        before = await shop.ended(basket.order_id)
        await cancel_as_customer(shop, basket.order_id)
        assert await shop.view(basket.order_id) == before
        await shop.assert_undone(basket, basket.order_id, reason)


async def test_a_step_that_runs_out_under_a_cancel_tells_its_own_reason(shop: Shop) -> None:
    basket = await shop.basket()
    gate = shop.gates.hold(basket.order_id, Step.BOOK_SHIPMENT, times=1)
    shop.gates.fail(basket.order_id, Step.BOOK_SHIPMENT, database_down)
    order_id = await shop.place(basket)
    await gate.reached()
    await cancel_as_customer(shop, order_id)
    gate.open()
    await assert_cancelled(shop, basket, "COURIER_UNAVAILABLE")
