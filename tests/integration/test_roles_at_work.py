"""A whole shop in which every party works by its own database role: what it must do, it may."""

from collections.abc import AsyncIterator

import pytest_asyncio

from domain.keys import Step
from domain.order import PaymentStatus
from tests.builders import an_order_document
from tests.conftest import MakeDatabase
from tests.gates import a_bug
from tests.parties import party_urls
from tests.polling import eventually
from tests.shop import Shop, open_shop
from tests.workflows.skipping import start_environment

NOWHERE = an_order_document()["shipping_address"] | {"postcode": "00000"}
NO_OTHER_WAY = "postgresql://nobody@127.0.0.1:1/none"


@pytest_asyncio.fixture(scope="module")
async def shop(make_database: MakeDatabase) -> AsyncIterator[Shop]:
    """The shop; tests look into its database as the owner."""
    database = await make_database()
    async with (
        await start_environment() as environment,
        open_shop(environment.client, database, NO_OTHER_WAY, parties=party_urls(database.url)) as shop,
    ):
        yield shop


async def test_orders_are_confirmed_and_undone(shop: Shop) -> None:
    confirmed, undone = [await shop.basket(credit=1000) for _ in range(2)]
    spent = {"points": 500, "store_credit": 1000}
    await shop.place(confirmed, **spent)
    await shop.place(undone, shipping_address=NOWHERE, **spent)
    await shop.ended(confirmed.order_id)
    await shop.assert_clean(confirmed, confirmed.order_id, captured=3500, points=0, credit=0)
    await shop.ended(undone.order_id)
    await shop.assert_undone(undone, undone.order_id, "NO_SERVICE_TO_ADDRESS")


async def test_refusals_undo_what_was_taken(shop: Shop) -> None:
    declined, poor, sold_out = await shop.basket(), await shop.basket(points=0), await shop.basket(on_hand=0)
    await shop.place(declined, payment_method="pm_card_chargeDeclined", points=100)
    await shop.place(poor, points=500)
    await shop.place(sold_out, points=100)
    for reason, basket in {"CARD_DECLINED": declined, "INSUFFICIENT_POINTS": poor, "OUT_OF_STOCK": sold_out}.items():
        await shop.ended(basket.order_id)
        await shop.assert_undone(basket, basket.order_id, reason)


async def test_a_cancelled_order_and_money_that_comes_after_it_are_settled(shop: Shop) -> None:
    basket = await shop.basket()
    order_id = await shop.place_in_real_time(basket, payment_method="pm_card_authenticationRequired")

    async def asked() -> bool:
        return (await shop.view(order_id)).payment.status is PaymentStatus.REQUIRES_ACTION

    await eventually(asked)
    assert (await shop.cancel(order_id))[0] == 202
    await shop.ended(order_id)
    (intent,) = await shop.intents(order_id)
    await shop.sim(f"intents/{intent['id']}/force", status="succeeded")

    async def given_back() -> bool:
        (late,) = await shop.intents(order_id)
        return bool(late["captured"] and late["captured"] == late["refunded"])

    await eventually(given_back)
    await shop.assert_undone(basket, order_id, "CANCELLED_BY_CUSTOMER")


async def test_a_parked_step_is_shown_moved_and_closed(shop: Shop) -> None:
    basket = await shop.basket()
    bug = shop.gates.fail(basket.order_id, Step.BOOK_SHIPMENT, a_bug)
    order_id = await shop.place(basket)
    await shop.until_parked(order_id, "book_shipment")
    bug.open()
    assert await shop.redrive(order_id, "book_shipment", "retry", item="main") == 202
    await shop.ended(order_id)
    await shop.assert_clean(basket, order_id)


async def test_the_couriers_word_moves_a_parcel(shop: Shop) -> None:
    basket = await shop.basket()
    order_id = await shop.place(basket)
    await shop.ended(order_id)
    (parcel,) = await shop.shipments(order_id)
    await shop.sim(f"shipments/{parcel['id']}/advance", on="courier", status="dispatched")

    async def dispatched() -> bool:
        return [one.status for one in (await shop.view(order_id)).shipments] == ["DISPATCHED"]

    await eventually(dispatched)


async def test_an_operator_fills_shelves_and_accounts(shop: Shop) -> None:
    level = {"warehouse": "main", "on_hand": 3, "unit_price": 100, "currency": "EUR"}
    assert (await shop.operator.put("/ops/stock/shelf", json=level)).status == 200
    assert (await (await shop.operator.get("/ops/stock/shelf")).json())["warehouses"][0]["on_hand"] == 3
    balances = {"points": 7, "store_credit": {"EUR": 9}}
    assert (await shop.operator.put("/ops/customers/eve", json=balances)).status == 200
    assert (await (await shop.operator.get("/ops/customers/eve")).json())["points"] == 7
