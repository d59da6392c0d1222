"""Scenarios from the field: money effects that are slow, limited, out of date, or in a currency of another kind."""

from itertools import pairwise
from typing import Any

import pytest

from adapters.orders import read_results
from domain.errors import DatabaseUnavailable
from domain.keys import Step
from tests.baskets import Basket, fresh
from tests.conftest import MakeDatabase
from tests.polling import eventually
from tests.shop import Shop
from tests.workflows import order_o
from tests.workflows.till import FOREVER, Till

DAY = 24 * 3600
#: The shop's own patience with the gateway is half a second in tests.
LATE: dict[str, Any] = {"mode": "delay", "delay_ms": 800}


async def test_an_answer_that_comes_after_the_time_out_is_neither_a_yes_nor_a_no(till: Till) -> None:
    """S05: create, confirm, capture and the void of a hold each take effect once; what was unknown was looked up."""
    late = {op: await till.shop.basket() for op in ("create", "confirm", "capture")}
    for op, basket in late.items():
        await till.fault(basket, op, **LATE)
    await order_o.place(till.shop, *late.values())
    void = await order_o.waiting(till)
    await till.fault(void, "cancel", **LATE)
    assert (await till.shop.cancel(void.order_id))[0] == 202
    await till.forward(void, 60)
    await order_o.clean(till.shop, *late.values())
    await order_o.undone(till.shop, void, reason="CANCELLED_BY_CUSTOMER")
    for op, basket in (late | {"cancel": void}).items():
        calls = await till.calls(basket)
        keys = {call["key"] for call in calls if call["op"] == op}
        assert len(keys) == 1, op
        # The gateway is asked again: by the same call for an intent, by a look at the intent for the others.
        asked = [call for call in calls if call["op"] in {op, "read"}]
        assert len(asked) >= 2, op
        assert len(await till.shop.intents(basket.order_id)) == 1


@pytest.mark.long
@pytest.mark.timeout(1200)
async def test_two_hundred_orders_at_a_gateway_of_five_calls_a_second_are_all_confirmed(
    make_database: MakeDatabase,
) -> None:
    """S10: nobody calls before the time that a 429 names, and no order ends because of one."""
    async with order_o.a_roomy_till(make_database) as till:
        shop = till.shop
        baskets = [await shop.basket() for _ in range(200)]
        limit = await shop.fault("*", "rate", per_second=5, retry_after=2)
        with shop.standing_still():
            for first in range(0, len(baskets), 5):
                await order_o.place(shop, *baskets[first : first + 5])
            await until_all_confirmed(shop, baskets)
        await shop.heal(limit)
        await order_o.clean(shop, *baskets)
        calls = [await till.calls(basket) for basket in baskets]
    refused = [pair for one in calls for pair in pairwise(one) if pair[0]["status"] == 429]
    assert refused
    assert [(call, following) for call, following in refused if following["at"] < call["at"] + 2] == []


async def until_all_confirmed(shop: Shop, baskets: list[Basket]) -> None:
    """Until the last one is; none may end in another way."""

    async def look() -> bool:
        try:
            results = await read_results(shop.database, [basket.order_id for basket in baskets])
        except DatabaseUnavailable:
            return False
        assert {result.reason for result in results.values()} == {None}
        return all(result.status == "CONFIRMED" for result in results.values())

    await eventually(look, within_seconds=900)


async def test_a_hold_that_expires_on_the_seventh_day_ships_nothing_and_undoes_the_order(patient_till: Till) -> None:
    """S33: the gateway tells of it while the courier still hangs."""
    shop = patient_till.shop
    basket = await shop.basket()
    courier = shop.gates.hold(basket.order_id, Step.BOOK_SHIPMENT)
    await shop.place_in_real_time(basket, points=order_o.POINTS)
    await courier.reached()
    await shop.sim("clock", advance_seconds=7 * DAY + 1)
    assert (await patient_till.read(basket))["status"] == "canceled"
    assert await patient_till.became(await patient_till.event(basket, "payment_intent.canceled")) == "delivered"
    courier.open()
    await order_o.undone(shop, basket, reason="AUTHORIZATION_EXPIRED")
    assert await patient_till.calls(basket, "capture") == []
    assert "the amount set aside on your card expired" in (await shop.view(basket.order_id)).message


async def test_an_order_keeps_its_amount_whatever_the_catalogue_says_after_the_hold(till: Till) -> None:
    """S44: neither a new price nor another basket reaches an order that was taken in."""
    shop = till.shop
    cheaper, dearer = await till.baskets(2)
    gates = [shop.gates.hold(basket.order_id, Step.BOOK_SHIPMENT) for basket in (cheaper, dearer)]
    await order_o.place(shop, cheaper, dearer)
    for basket, gate, price in zip((cheaper, dearer), gates, (1000, 5000), strict=True):
        await gate.reached()
        await shop.put_stock(basket.a, price, basket.on_hand)
        smaller = basket.document(lines=[{"sku": basket.b, "quantity": 1}], points=order_o.POINTS)
        again = await shop.shopper.post("/orders", json=smaller, headers={"Idempotency-Key": basket.key})
        assert again.status == 422
        for method in ("put", "patch"):
            edit = await getattr(shop.shopper, method)(f"/orders/{basket.order_id}", json=smaller)
            assert edit.status == 405
        gate.open()
    await order_o.clean(shop, cheaper, dearer)


async def test_amounts_reach_the_gateway_in_the_smallest_unit_of_their_currency(till: Till) -> None:
    """S45: yen have no decimals, dinars three, of which the last is 0; refunds are of the very same amount."""
    shop = till.shop
    amounts = (("JPY", 10_000), ("KWD", 1_230), ("EUR", 1_000))
    baskets = await till.baskets(len(amounts))
    for basket, (currency, amount) in zip(baskets, amounts, strict=True):
        lost = await till.fault(basket, "webhook", "lose", times=FOREVER)
        await till.waiting(basket, "pm_sim_never", **await one_piece_for(till, amount, currency))
        await till.force(basket, "succeeded")
        await shop.heal(lost)
        intent = await till.intent(basket)
        assert (intent["amount"], intent["captured"], intent["currency"]) == (amount, amount, currency.lower())
        assert (await shop.cancel(basket.order_id))[0] == 202
    await order_o.undone(shop, *baskets, reason="CANCELLED_BY_CUSTOMER")
    for basket, (_, amount) in zip(baskets, amounts, strict=True):
        assert [refund["amount"] for refund in await till.refunds(basket)] == [amount]


async def test_an_amount_that_its_currency_has_not_is_refused_at_the_door(till: Till) -> None:
    """S45: too many decimals, or a currency that the shop does not know, lower case too."""
    basket = await till.shop.basket()
    ends_in_four = await one_piece_for(till, 1_234, "KWD")
    known = {currency: await one_piece_for(till, 1_000, currency) for currency in ("JPY", "KWD", "EUR")}
    refused: list[dict[str, Any]] = [
        ends_in_four,
        *(known[currency] | {"expected_total": total} for currency, total in (("JPY", 0.5), ("KWD", 1.2345))),
        known["EUR"] | {"expected_total": 1.005},
        *(known["JPY"] | {"currency": currency} for currency in ("jpy", "XXX")),
    ]
    for change in refused:
        document = basket.document(**change)
        answer = await till.shop.shopper.post("/orders", json=document, headers={"Idempotency-Key": fresh("key")})
        assert answer.status == 422, change
    for price in (0.5, 1.2345, 1.005):
        level = {"warehouse": "main", "on_hand": 1, "unit_price": price, "currency": "EUR"}
        assert (await till.shop.operator.put(f"/ops/stock/{fresh('P')}", json=level)).status == 422


async def one_piece_for(till: Till, price: int, currency: str) -> dict[str, Any]:
    """What an order of one piece at this price says."""
    sku = fresh("P")
    await till.shop.put_stock(sku, price, 5, currency=currency)
    return {"currency": currency, "lines": [{"sku": sku, "quantity": 1}]}
