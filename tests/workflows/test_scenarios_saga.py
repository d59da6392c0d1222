"""Scenarios from the field: steps that fail after their effect, and all routes to one end."""

import asyncio
from collections.abc import Callable
from typing import Any

from sqlalchemy import select

from adapters.tables import outbox
from domain.errors import (
    CaptureFailed,
    CardDeclined,
    InsufficientCredit,
    InsufficientPoints,
    InventoryUnavailable,
    NoServiceToAddress,
)
from domain.keys import Step
from tests.baskets import Basket
from tests.gates import a_bug
from tests.shop import Shop
from tests.workflows import order_o
from tests.workflows.till import FOREVER, Till

#: What each step says at its second attempt, although the first one did what it should.
REFUSALS: dict[Step, tuple[Callable[[str], Exception], str]] = {
    Step.RESERVE_STOCK: (InventoryUnavailable, "OUT_OF_STOCK"),
    Step.BURN_POINTS: (InsufficientPoints, "INSUFFICIENT_POINTS"),
    Step.APPLY_STORE_CREDIT: (InsufficientCredit, "INSUFFICIENT_CREDIT"),
    Step.AUTHORIZE_PAYMENT: (CardDeclined, "CARD_DECLINED"),
    Step.BOOK_SHIPMENT: (NoServiceToAddress, "NO_SERVICE_TO_ADDRESS"),
    Step.CAPTURE_PAYMENT: (CaptureFailed, "CAPTURE_FAILED"),
}


async def test_a_step_that_had_its_effect_died_and_is_then_refused_is_undone_like_all_others(till: Till) -> None:
    """S67: each step in turn; the attempt that had the effect never answers."""

    async def one(step: Step, refusal: Callable[[str], Exception], reason: str) -> None:
        basket = await till.shop.basket(credit=1000)
        lost = till.shop.gates.hold(basket.order_id, step, after=True, times=1)
        await order_o.place(till.shop, basket, store_credit=1000)
        await lost.reached()
        till.shop.gates.fail(basket.order_id, step, lambda: refusal("tests"))
        await order_o.undone(till.shop, basket, reason=reason)
        assert till.shop.gates.calls(basket.order_id, step) == 2
        lost.open()

    await asyncio.gather(*(one(step, *ending) for step, ending in REFUSALS.items()))


async def test_nobody_is_told_of_a_sale_before_the_money_is_there(till: Till) -> None:
    """S94: declined, abandoned at the bank, held but not taken: no event tells of a payment or a confirmation."""
    declined, abandoned, not_taken = await till.baskets(3)
    await till.fault(not_taken, "capture", "error", status=402)
    await asyncio.gather(
        order_o.place(till.shop, declined, payment_method="pm_card_chargeDeclined"),
        order_o.place(till.shop, abandoned, payment_method="pm_card_authenticationRequired"),
        order_o.place(till.shop, not_taken),
    )
    await order_o.undone(till.shop, declined, reason="CARD_DECLINED")
    await order_o.undone(till.shop, abandoned, reason="PAYMENT_TIMED_OUT")
    await order_o.undone(till.shop, not_taken, reason="CAPTURE_FAILED")


async def confirmations(shop: Shop, basket: Basket) -> list[dict[str, Any]]:
    """What was told of the order's confirmation."""
    query = select(outbox.c.data).where(outbox.c.order_id == basket.order_id, outbox.c.type == "OrderConfirmed")
    async with shop.database.begin() as connection:
        return list((await connection.execute(query)).scalars())


async def test_every_route_to_a_confirmation_tells_it_once_and_in_one_shape(till: Till) -> None:
    """S95: by webhook, by asking, with nothing to pay, by an operator's retry, and by a second run's look."""
    shop = till.shop
    by_webhook, by_asking, redriven, captured_unheard = await till.baskets(4)
    free = await shop.basket(points=5000)
    await till.fault(by_asking, "webhook", "lose", times=FOREVER)
    await till.fault(captured_unheard, "capture", "drop")
    bug = shop.gates.fail(redriven.order_id, Step.AUTHORIZE_PAYMENT, a_bug)
    await order_o.place(shop, by_webhook, by_asking, redriven, captured_unheard)
    await shop.place(free, points=5000)
    await till.parked(redriven, "authorize_payment")
    bug.open()
    await till.redriven(redriven, "authorize_payment", "retry")
    await order_o.clean(shop, by_webhook, by_asking, redriven, captured_unheard)
    await shop.ended(free.order_id)
    await shop.assert_clean(free, free.order_id, captured=0, points=0)
    told = [await confirmations(shop, one) for one in (by_webhook, by_asking, redriven, captured_unheard, free)]
    assert [len(one) for one in told] == [1] * 5
    assert len({tuple(sorted(one[0])) for one in told}) == 1
