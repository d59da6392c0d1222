"""Stock, points and store credit are taken together, all or nothing, and given back to the last piece."""

import asyncio
from typing import Any

import pytest

from domain.keys import Step
from tests.baskets import Basket, fresh
from tests.gates import a_bug, database_down, database_restarting
from tests.shop import Shop

RESERVING = (Step.RESERVE_STOCK, Step.BURN_POINTS, Step.APPLY_STORE_CREDIT)
#: 50.00 in all: 5.00 by points, 10.00 by credit, 35.00 by card.
PAYS_IN_THREE_WAYS = {"points": 500, "store_credit": 1000}


async def a_rich_basket(shop: Shop) -> Basket:
    return await shop.basket(credit=1000)


async def assert_sold(shop: Shop, basket: Basket) -> None:
    """The order of PAYS_IN_THREE_WAYS went through."""
    await shop.assert_clean(basket, basket.order_id, captured=3500, points=0)


async def place_all(shop: Shop, orders: list[tuple[Basket, dict[str, Any]]]) -> None:
    """Places these orders and waits until all of them have ended."""
    await asyncio.gather(*(shop.place(basket, **changes) for basket, changes in orders))
    await asyncio.gather(*(shop.ended(basket.order_id) for basket, _ in orders))


async def test_an_order_pays_with_points_store_credit_and_card(shop: Shop) -> None:
    basket = await a_rich_basket(shop)
    await place_all(shop, [(basket, PAYS_IN_THREE_WAYS)])
    await assert_sold(shop, basket)


async def test_what_is_missing_undoes_what_was_taken_beside_it(shop: Shop) -> None:
    """S77: asked once."""
    sold_out = await shop.basket(on_hand=0, credit=1000)
    few_points = await shop.basket(points=499, credit=1000)
    little_credit = await shop.basket(credit=999)
    await place_all(shop, [(basket, PAYS_IN_THREE_WAYS) for basket in (sold_out, few_points, little_credit)])
    expected = (
        (sold_out, "OUT_OF_STOCK", "something in it is sold out"),
        (few_points, "INSUFFICIENT_POINTS", "you do not have enough points"),
        (little_credit, "INSUFFICIENT_CREDIT", "you do not have enough store credit"),
    )
    for basket, reason, words in expected:
        view = await shop.view(basket.order_id)
        assert view.message.startswith(f"Your order was cancelled: {words}.")
        await shop.assert_undone(basket, basket.order_id, reason)
        assert await shop.intents(basket.order_id) == []
        assert [shop.gates.calls(basket.order_id, step) for step in RESERVING] == [1, 1, 1]


async def test_of_two_refusals_the_first_of_the_table_is_the_reason_whoever_answers_first(shop: Shop) -> None:
    nothing = await shop.basket(on_hand=0, points=0)
    moneyless = await shop.basket(points=0)
    stock = shop.gates.hold(nothing.order_id, Step.RESERVE_STOCK)
    points = shop.gates.hold(moneyless.order_id, Step.BURN_POINTS)
    for basket in (nothing, moneyless):
        await shop.place(basket, **PAYS_IN_THREE_WAYS)
    await asyncio.gather(stock.reached(), points.reached())
    await shop.gates.ended(nothing.order_id, Step.BURN_POINTS, 1)
    await shop.gates.ended(moneyless.order_id, Step.APPLY_STORE_CREDIT, 1)
    # The way back does not begin before every one of them has answered.
    assert shop.gates.calls(nothing.order_id, Step.RELEASE_STOCK) == 0
    stock.open()
    points.open()
    for basket, reason in ((nothing, "OUT_OF_STOCK"), (moneyless, "INSUFFICIENT_POINTS")):
        await shop.ended(basket.order_id)
        await shop.assert_undone(basket, basket.order_id, reason)


@pytest.mark.parametrize("after", [False, True], ids=["before the effect", "after the effect"])
async def test_a_database_that_is_back_at_the_third_try_is_not_noticed(shop: Shop, after: bool) -> None:
    baskets = [await a_rich_basket(shop) for _ in RESERVING]
    for basket, step in zip(baskets, RESERVING, strict=True):
        shop.gates.fail(basket.order_id, step, database_down, after=after, times=2)
    await place_all(shop, [(basket, PAYS_IN_THREE_WAYS) for basket in baskets])
    for basket, step in zip(baskets, RESERVING, strict=True):
        assert shop.gates.calls(basket.order_id, step) == 3
        await assert_sold(shop, basket)


@pytest.mark.parametrize("after", [False, True], ids=["before the effect", "after the effect"])
async def test_a_database_that_stays_down_undoes_the_order(shop: Shop, after: bool) -> None:
    baskets = [await a_rich_basket(shop) for _ in RESERVING]
    for basket, step in zip(baskets, RESERVING, strict=True):
        shop.gates.fail(basket.order_id, step, database_down, after=after)
    await place_all(shop, [(basket, PAYS_IN_THREE_WAYS) for basket in baskets])
    for basket, step in zip(baskets, RESERVING, strict=True):
        assert shop.gates.calls(basket.order_id, step) == 3
        await shop.assert_undone(basket, basket.order_id, "SERVICE_UNAVAILABLE")


async def test_a_database_that_takes_no_connections_is_waited_for(shop: Shop) -> None:
    baskets = [await a_rich_basket(shop) for _ in RESERVING]
    for basket, step in zip(baskets, RESERVING, strict=True):
        shop.gates.fail(basket.order_id, step, database_restarting, times=5)
    await place_all(shop, [(basket, PAYS_IN_THREE_WAYS) for basket in baskets])
    for basket, step in zip(baskets, RESERVING, strict=True):
        assert shop.gates.calls(basket.order_id, step) == 6
        await assert_sold(shop, basket)


async def test_an_attempt_that_arrives_after_the_undo_takes_nothing(shop: Shop) -> None:
    """S63: stock, points and credit, each held up in the network."""
    baskets = [await a_rich_basket(shop) for _ in RESERVING]
    late = []
    for basket, step in zip(baskets, RESERVING, strict=True):
        late.append(shop.gates.hold(basket.order_id, step, times=1))
        shop.gates.fail(basket.order_id, step, database_down, times=2)
    await place_all(shop, [(basket, PAYS_IN_THREE_WAYS) for basket in baskets])
    for basket, step, attempt in zip(baskets, RESERVING, late, strict=True):
        await shop.assert_undone(basket, basket.order_id, "SERVICE_UNAVAILABLE")
        attempt.open()
        await shop.gates.ended(basket.order_id, step, 3)
        await shop.assert_undone(basket, basket.order_id, "SERVICE_UNAVAILABLE")


async def test_a_bug_stops_after_three_tries_until_an_operator_decides(shop: Shop) -> None:
    """S77: an error that nobody classified."""
    retried, given_up = [await a_rich_basket(shop) for _ in range(2)]
    bugs = [shop.gates.fail(basket.order_id, Step.RESERVE_STOCK, a_bug) for basket in (retried, given_up)]
    for basket in (retried, given_up):
        await shop.place(basket, **PAYS_IN_THREE_WAYS)
        view = await shop.reaches(basket.order_id, "NEEDS_REVIEW")
        assert [(item.step, item.kind, item.error) for item in view.needs_review] == [
            ("reserve_stock", "DECISION", "ZeroDivisionError")
        ]
        assert shop.gates.calls(basket.order_id, Step.RESERVE_STOCK) == 3
    bugs[0].open()
    assert await shop.redrive(retried.order_id, "reserve_stock", "retry") == 202
    assert await shop.redrive(given_up.order_id, "reserve_stock", "compensate") == 202
    for basket in (retried, given_up):
        await shop.ended(basket.order_id)
    await assert_sold(shop, retried)
    await shop.assert_undone(given_up, given_up.order_id, "CANCELLED_BY_OPERATOR")


async def test_thirty_lines_of_one_sku_and_five_hundred_lines_are_sold(shop: Shop) -> None:
    """S78: within the limit."""
    same, many = await shop.basket(), await shop.basket()
    thirty, skus = fresh("S"), [fresh("S") for _ in range(50)]
    await shop.put_stock(thirty, 100, 30)
    for sku in skus:
        await shop.put_stock(sku, 10, 10)
    orders = [
        (same, {"lines": [{"sku": thirty, "quantity": 1}] * 30}),
        (many, {"lines": [{"sku": sku, "quantity": 1} for sku in skus] * 10}),
    ]
    await place_all(shop, orders)
    for basket in (same, many):
        assert (await shop.view(basket.order_id)).status == "CONFIRMED"
    assert {await shop.pieces(sku) for sku in [thirty, *skus]} == {(0, 0)}


async def test_more_lines_of_one_sku_than_there_are_pieces_take_none(shop: Shop) -> None:
    basket = await shop.basket(on_hand=5)
    lines = [{"sku": basket.a, "quantity": 1}] * 6
    await place_all(shop, [(basket, {"lines": lines})])
    await shop.assert_undone(basket, basket.order_id, "OUT_OF_STOCK")


async def test_points_and_credit_that_pay_everything_leave_the_gateway_alone(shop: Shop) -> None:
    points, credit = await shop.basket(points=5000), await shop.basket(credit=5000)
    await place_all(shop, [(points, {"points": 5000}), (credit, {"store_credit": 5000})])
    await shop.assert_clean(points, points.order_id, captured=0, points=0)
    await shop.assert_clean(credit, credit.order_id, captured=0)
    for basket in (points, credit):
        assert await shop.intents(basket.order_id) == []
        assert shop.gates.calls(basket.order_id, Step.AUTHORIZE_PAYMENT) == 0
        view = await shop.view(basket.order_id)
        assert view.message == "Your order is confirmed. There was nothing left to pay."
