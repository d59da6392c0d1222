"""While an operator holds a provider nothing new is sent to it, orders wait as long as it takes, and none is lost."""

import asyncio

import pytest

from adapters.holds import place_hold, release_hold
from domain.holds import Held
from domain.keys import Step
from tests.baskets import Basket
from tests.builders import an_order_document
from tests.holding import held
from tests.shop import Shop
from tests.workflows.till import Till

DAY = 86_400
#: As long as an order may take to see that a hold is over: its longest pause between two looks (`tests.shop.QUICK`).
LOOK = 4 * 3600
#: Where the courier does not go.
NOWHERE = an_order_document()["shipping_address"] | {"postcode": "00000"}


async def days_pass(till: Till, basket: Basket, days: int) -> None:
    """One by one: the server skips only so many timers at a stretch."""
    for _ in range(days):
        await till.forward(basket, DAY)


async def page(shop: Shop, order_id: str) -> str:
    """What the Web UI shows of the order."""
    return str(await shop.saga(order_id).query("__temporal_workflow_metadata"))


async def test_orders_stream_in_while_the_gateway_is_held_for_three_days_and_are_confirmed_afterwards(
    till: Till,
) -> None:
    shop, baskets = till.shop, await till.baskets(6)
    async with held(shop, Held.GATEWAY):
        for basket in baskets:
            await shop.place_in_real_time(basket)
            await shop.gates.ended(basket.order_id, Step.AUTHORIZE_PAYMENT, 1)
        await asyncio.gather(*(days_pass(till, basket, 3) for basket in baskets))
        for basket in baskets:
            assert await till.calls(basket) == []
            view = await shop.view(basket.order_id)
            assert (view.status, view.needs_review) == ("AWAITING_PAYMENT", [])
            assert "the gateway is on hold" in await page(shop, basket.order_id)
            assert 10 < shop.gates.calls(basket.order_id, Step.AUTHORIZE_PAYMENT) < 40
    await asyncio.gather(*(till.forward(basket, LOOK) for basket in baskets))
    for basket in baskets:
        await shop.ended(basket.order_id)
        await shop.assert_clean(basket, basket.order_id)
        assert await shop.reviews(basket.order_id) == []
        assert len(await till.calls(basket, "create")) == 1


async def test_a_cancel_wakes_an_order_that_waits_for_a_held_gateway_and_needs_nothing_of_it(till: Till) -> None:
    shop, [basket] = till.shop, await till.baskets(1)
    async with held(shop, Held.GATEWAY):
        order_id = await shop.place_in_real_time(basket)
        await shop.gates.ended(order_id, Step.AUTHORIZE_PAYMENT, 1)
        assert (await shop.cancel(order_id))[0] == 202
        await shop.ended(order_id)
        assert await till.calls(basket) == []
    await shop.assert_undone(basket, order_id, "CANCELLED_BY_CUSTOMER")


async def test_a_cancel_wakes_an_order_that_waits_for_a_held_courier_and_undoes_the_rest_meanwhile(till: Till) -> None:
    shop, [basket] = till.shop, await till.baskets(1)
    async with held(shop, Held.COURIER):
        order_id = await shop.place_in_real_time(basket)
        await shop.gates.ended(order_id, Step.BOOK_SHIPMENT, 1)
        assert (await shop.cancel(order_id))[0] == 202
        await shop.gates.ended(order_id, Step.RELEASE_STOCK, 1)
        assert (await till.intent(basket))["status"] == "canceled"
        assert (await shop.view(order_id)).status == "COMPENSATING"
    await till.forward(basket, LOOK)
    await shop.ended(order_id)
    await shop.assert_undone(basket, order_id, "CANCELLED_BY_CUSTOMER")
    assert await shop.reviews(order_id) == []


async def test_an_undo_waits_for_a_held_gateway_without_a_park_and_without_holding_up_the_others(till: Till) -> None:
    shop, [basket] = till.shop, await till.baskets(1)
    gate = shop.gates.hold(basket.order_id, Step.BOOK_SHIPMENT)
    order_id = await shop.place_in_real_time(basket, shipping_address=NOWHERE)
    await gate.reached()
    async with held(shop, Held.GATEWAY):
        gate.open()
        await shop.gates.ended(order_id, Step.RELEASE_STOCK, 1)
        await days_pass(till, basket, 2)
        assert (await till.intent(basket))["status"] == "requires_capture"
        assert await till.calls(basket, "cancel") == []
        assert (await shop.view(order_id)).status == "COMPENSATING"
    await till.forward(basket, LOOK)
    await shop.ended(order_id)
    await shop.assert_undone(basket, order_id, "NO_SERVICE_TO_ADDRESS")
    assert await shop.reviews(order_id) == []


@pytest.mark.parametrize("pays", [True, False], ids=["the shopper pays meanwhile", "nobody pays"])
async def test_the_deadline_of_a_payment_under_a_hold_cancels_nothing_and_is_decided_after_it(
    till: Till, pays: bool
) -> None:
    shop, [basket] = till.shop, await till.baskets(1)
    await till.waiting(basket, "pm_card_authenticationRequired", "REQUIRES_ACTION")
    async with held(shop, Held.GATEWAY):
        await days_pass(till, basket, 1)
        assert await till.calls(basket, "cancel") == []
        assert (await till.intent(basket))["status"] == "requires_action"
        if pays:
            await till.authenticate(basket, "success")
    await till.forward(basket, LOOK)
    await shop.ended(basket.order_id)
    if pays:
        await shop.assert_clean(basket, basket.order_id)
    else:
        await shop.assert_undone(basket, basket.order_id, "PAYMENT_TIMED_OUT")
    assert await shop.reviews(basket.order_id) == []


async def test_a_capture_waits_for_the_end_of_the_hold_and_takes_the_money_once(till: Till) -> None:
    shop, [basket] = till.shop, await till.baskets(1)
    gate = shop.gates.hold(basket.order_id, Step.CAPTURE_PAYMENT)
    order_id = await shop.place_in_real_time(basket)
    await gate.reached()
    async with held(shop, Held.GATEWAY):
        gate.open()
        await days_pass(till, basket, 1)
        assert (await till.intent(basket))["captured"] == 0
    await till.forward(basket, LOOK)
    await shop.ended(order_id)
    await shop.assert_clean(basket, order_id)
    assert len(await till.calls(basket, "capture")) == 1


async def test_patience_that_was_used_up_before_a_hold_counts_after_it(till: Till) -> None:
    """A courier that serves nobody for two minutes undoes the order; a day on hold in between is no minute of them."""
    shop, [basket] = till.shop, await till.baskets(1)
    outage = await shop.fault("book", "error", on="courier", order_id=basket.order_id, status=503, times=100_000)
    order_id = await shop.place_in_real_time(basket)
    await shop.gates.ended(order_id, Step.BOOK_SHIPMENT, 1)
    async with held(shop, Held.COURIER):
        await days_pass(till, basket, 1)
        assert (await shop.view(order_id)).status == "AWAITING_PAYMENT"
        await shop.heal(outage, on="courier")
    await till.forward(basket, LOOK)
    await shop.ended(order_id)
    await shop.assert_clean(basket, order_id)


async def test_a_second_hold_of_the_same_party_and_a_release_of_none_change_nothing(shop: Shop) -> None:
    async with held(shop, Held.INTAKE):
        assert not await place_hold(shop.database, Held.INTAKE, "somebody else", "another reason")
    assert not await release_hold(shop.database, Held.INTAKE, "tests", "again")


async def test_while_the_intake_is_held_accepted_orders_go_on_and_new_ones_are_asked_to_come_back(shop: Shop) -> None:
    baskets = [await shop.basket() for _ in range(2)]
    gate = shop.gates.hold(baskets[0].order_id, Step.RESERVE_STOCK)
    order_id = await shop.place(baskets[0])
    async with held(shop, Held.INTAKE):
        headers = {"Idempotency-Key": baskets[1].key}
        refused = await shop.shopper.post("/orders", json=baskets[1].document(), headers=headers)
        assert (refused.status, (await refused.json(content_type=None))["type"]) == (503, "/problems/intake-held")
        assert refused.headers["Retry-After"] == "60"
        headers = {"Idempotency-Key": baskets[0].key}
        replayed = await shop.shopper.post("/orders", json=baskets[0].document(), headers=headers)
        assert (replayed.status, (await replayed.json())["order_id"]) == (200, order_id)
        ready = await shop.shopper.get("/readyz")
        assert (ready.status, (await ready.json())["holds"]) == (200, ["intake"])
        gate.open()
        await shop.ended(order_id)
        await shop.assert_clean(baskets[0], order_id)
    await shop.place(baskets[1])
    await shop.ended(baskets[1].order_id)
    await shop.assert_clean(baskets[1], baskets[1].order_id)
