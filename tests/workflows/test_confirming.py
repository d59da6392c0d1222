"""After the pivot there is only forwards: the money is taken, so the order is confirmed, however long it takes."""

import asyncio

import pytest

from domain.keys import Step
from tests.gates import a_bug, database_down
from tests.shop import Shop
from workflows.names import ORDER_STATUS, PARKED_STEP

LAST_STEPS = (Step.CONFIRM_ORDER, Step.COMMIT_STOCK)


@pytest.mark.parametrize("after", [False, True], ids=["before the effect", "after the effect"])
async def test_a_last_step_that_fails_25_times_is_seen_by_operators_and_still_done(shop: Shop, after: bool) -> None:
    baskets = [await shop.basket() for _ in LAST_STEPS]
    for basket, step in zip(baskets, LAST_STEPS, strict=True):
        shop.gates.fail(basket.order_id, step, database_down, after=after, times=25)
        await shop.place(basket)
    await asyncio.gather(*(shop.ended(basket.order_id) for basket in baskets))
    for basket, step in zip(baskets, LAST_STEPS, strict=True):
        assert shop.gates.calls(basket.order_id, step) == 26
        (item,) = await shop.reviews(basket.order_id)
        assert (item.step, item.kind, item.error, item.closed_by, item.action) == (
            step,
            "TECHNICAL",
            "DatabaseUnavailable",
            "system",
            "retry",
        )
        await shop.assert_clean(basket, basket.order_id)


async def test_a_confirmed_order_stays_confirmed_while_its_stock_cannot_be_sold(shop: Shop) -> None:
    basket = await shop.basket()
    outage = shop.gates.fail(basket.order_id, Step.COMMIT_STOCK, a_bug)
    order_id = await shop.place(basket)
    await shop.until_parked(order_id, Step.COMMIT_STOCK)
    view = await shop.view(order_id)
    assert view.status == "CONFIRMED"
    assert view.message == "Your order is confirmed. Your card has been charged."
    description = await shop.saga(order_id).describe()
    assert description.typed_search_attributes.get(ORDER_STATUS) == "CONFIRMED"
    assert description.typed_search_attributes.get(PARKED_STEP) == ["commit_stock"]
    assert (await shop.cancel(order_id))[0] == 409
    assert await shop.redrive(order_id, "commit_stock", "compensate") == 409
    outage.open()
    assert await shop.redrive(order_id, "commit_stock", "retry") == 202
    await shop.ended(order_id)
    await shop.assert_clean(basket, order_id)


async def test_a_bug_while_confirming_waits_for_an_operator_and_cannot_be_undone(shop: Shop) -> None:
    basket = await shop.basket()
    bug = shop.gates.fail(basket.order_id, Step.CONFIRM_ORDER, a_bug)
    order_id = await shop.place(basket)
    view = await shop.reaches(order_id, "NEEDS_REVIEW")
    assert [(item.step, item.kind) for item in view.needs_review] == [("confirm_order", "DECISION")]
    for pointless in ("skip", "compensate"):
        assert await shop.redrive(order_id, "confirm_order", pointless) == 409
    assert (await shop.cancel(order_id))[0] == 409
    bug.open()
    assert await shop.redrive(order_id, "confirm_order", "retry") == 202
    await shop.ended(order_id)
    await shop.assert_clean(basket, order_id)
