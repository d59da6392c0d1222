"""Scenarios from the field: many who want the same pieces or points, and baskets that are too large."""

import asyncio
import random
from typing import Any

import pytest

from domain.keys import Step
from tests.baskets import Basket, fresh
from tests.conftest import MakeDatabase
from tests.gates import database_down
from tests.polling import eventually
from tests.replicas import a_replica
from tests.shop import Shop
from tests.workflows import order_o
from tests.workflows.till import CAPTURABLE, Till

MOST_EVENTS = 10_000


async def everybody_wants(shop: Shop, sku: str, quantities: list[int]) -> list[tuple[int, str]]:
    """A customer for each quantity of one SKU, all at once at two replicas; quantity and order of each."""

    async def one(door: Any, quantity: int) -> tuple[int, str]:
        basket = Basket(sku, sku, fresh("customer"))
        document = basket.document(lines=[{"sku": sku, "quantity": quantity}])

        async def ask() -> bool:
            answer = await door.post("/orders", json=document, headers={"Idempotency-Key": basket.key})
            assert answer.status in {200, 202, 503}
            return bool(answer.status != 503)

        # As a shopper's app does it: where the database is too busy, the same request again.
        await eventually(ask)
        return quantity, basket.order_id

    async with a_replica(shop) as replica:
        doors = [shop.shopper, replica] * len(quantities)
        wanted = await asyncio.gather(*(one(*pair) for pair in zip(doors, quantities, strict=False)))
        await asyncio.gather(*(shop.ended(order_id) for _, order_id in wanted))
    return wanted


async def sold_by_every_book(shop: Shop, wanted: list[tuple[int, str]], price: int) -> list[int]:
    """Quantities of the orders that were confirmed. The others left nothing, and each was paid for what it got."""
    sold = []
    for quantity, order_id in wanted:
        view = await shop.view(order_id)
        intents = await shop.intents(order_id)
        taken = sum(intent["captured"] - intent["refunded"] for intent in intents)
        parcels = [one for one in await shop.shipments(order_id) if one["status"] != "cancelled"]
        if view.status == "CONFIRMED":
            sold.append(quantity)
            assert (taken, len(parcels)) == (quantity * price, 1)
        else:
            assert (view.status, view.reason) == ("CANCELLED_COMPENSATED", "OUT_OF_STOCK")
            assert (taken, len(parcels)) == (0, 0)
        assert [intent for intent in intents if intent["status"] == "requires_capture"] == []
    return sold


@pytest.mark.long
@pytest.mark.timeout(600)
async def test_fifty_customers_for_the_last_piece_are_one_sale(make_database: MakeDatabase) -> None:
    """S48."""
    sku = fresh("last")
    async with order_o.a_roomy_till(make_database) as till:
        await till.shop.put_stock(sku, 3000, 1)
        wanted = await everybody_wants(till.shop, sku, [1] * 50)
        assert await sold_by_every_book(till.shop, wanted, 3000) == [1]
        assert await till.shop.pieces(sku) == (0, 0)


@pytest.mark.long
@pytest.mark.timeout(600)
async def test_fifty_customers_of_different_sizes_never_buy_more_than_there_is(make_database: MakeDatabase) -> None:
    """S48: ten pieces, and one to three for each."""
    chance, sku = random.Random(48), fresh("few")
    async with order_o.a_roomy_till(make_database) as till:
        await till.shop.put_stock(sku, 3000, 10)
        wanted = await everybody_wants(till.shop, sku, [chance.randint(1, 3) for _ in range(50)])
        sold = sum(await sold_by_every_book(till.shop, wanted, 3000))
        # Whoever found too little left wanted at least one piece more than there was.
        assert 8 <= sold <= 10
        assert await till.shop.pieces(sku) == (10 - sold, 0)


async def test_stock_that_answers_last_and_with_no_undoes_what_was_done_beside_it(shop: Shop) -> None:
    """S49: the points were burned long before; nobody was told of a sale."""
    refused, broken = await shop.basket(on_hand=0), await shop.basket()
    shop.gates.fail(broken.order_id, Step.RESERVE_STOCK, database_down)
    gates = [shop.gates.hold(basket.order_id, Step.RESERVE_STOCK) for basket in (refused, broken)]
    await order_o.place(shop, refused, broken)
    for basket, gate in zip((refused, broken), gates, strict=True):
        await shop.gates.ended(basket.order_id, Step.BURN_POINTS, 1)
        gate.open()
    await order_o.undone(shop, refused, reason="OUT_OF_STOCK")
    await order_o.undone(shop, broken, reason="SERVICE_UNAVAILABLE")
    for basket in (refused, broken):
        assert await shop.intents(basket.order_id) == []


async def test_points_that_two_orders_want_at_once_are_spent_once(shop: Shop) -> None:
    """S60: the other order is undone with nothing held, and the balance is 0, never less."""
    first = await shop.basket()
    second = Basket(first.a, first.b, first.customer)
    await order_o.place(shop, first, second)
    views = [await shop.ended(basket.order_id) for basket in (first, second)]
    winner, loser = (first, second) if views[0].status == "CONFIRMED" else (second, first)
    await order_o.clean(shop, winner)
    lost = await shop.view(loser.order_id)
    assert (lost.status, lost.reason) == ("CANCELLED_COMPENSATED", "INSUFFICIENT_POINTS")
    assert await shop.events(loser.order_id) == ["OrderSubmitted", "OrderCancelled"]
    assert await shop.intents(loser.order_id) == await shop.shipments(loser.order_id) == []


async def test_baskets_and_notes_that_are_too_large_are_refused_whole(shop: Shop) -> None:
    """S78: nothing is reserved, no saga starts."""
    basket = await shop.basket(on_hand=5000)
    lines = [{"sku": basket.a, "quantity": 1}] * 5000
    for change, status in (({"lines": lines}, 422), ({"note": "n" * 3_000_000}, 413)):
        headers = {"Idempotency-Key": basket.key}
        answer = await shop.shopper.post("/orders", json=basket.document(**change), headers=headers)
        assert answer.status == status
    assert await shop.pieces(basket.a) == (5000, 0)
    assert (await shop.events(basket.order_id), await shop.intents(basket.order_id)) == ([], [])
    await order_o.place(shop, basket)
    await order_o.clean(shop, basket)


async def test_a_carrier_s_answer_of_five_megabytes_is_looked_up_or_undone(shop: Shop) -> None:
    """S78: once, and the parcel is found by our reference; for ever, and the order is undone."""
    once, for_ever = await shop.basket(), await shop.basket()
    for basket, times in ((once, 1), (for_ever, 100)):
        huge = {"id": "shp_x", "status": "booked", "note": "n" * 5_000_000}
        await shop.fault("book", "answer", on="courier", order_id=basket.order_id, body=huge, times=times)
    await order_o.place(shop, once, for_ever)
    await order_o.clean(shop, once)
    await order_o.undone(shop, for_ever, reason="COURIER_UNAVAILABLE")


@pytest.mark.long
@pytest.mark.timeout(600)
async def test_a_thousand_webhooks_to_one_order_change_nothing(patient_till: Till) -> None:
    """S78: they are answered, the money is taken once, and the saga's history stays short."""
    shop = patient_till.shop
    basket = await order_o.waiting(patient_till, "pm_sim_never")
    limit, intent = asyncio.Semaphore(20), (await patient_till.intent(basket))["id"]

    async def tell() -> None:
        async with limit:
            assert (await shop.sim("events", type=CAPTURABLE, intent=intent))["status"] == 200

    await asyncio.gather(*(tell() for _ in range(1000)))
    await patient_till.authenticate(basket, "success")
    await order_o.clean(shop, basket)
    assert len(await patient_till.calls(basket, "capture")) == 1
    # The server ends a run at 51,200 events. One look at the gateway answers for all events that wait.
    assert (await shop.saga(basket.order_id).describe()).history_length < MOST_EVENTS
