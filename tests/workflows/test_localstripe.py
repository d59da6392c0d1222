"""The same shop on a payment gateway that others wrote: `STRIPE_API_BASE` points at localstripe."""

from collections.abc import AsyncIterator

import pytest_asyncio
from sqlalchemy import select

from adapters.tables import webhook_inbox
from domain.keys import Step
from runtime.proof import prove
from tests.conftest import MakeDatabase
from tests.localstripe import DECLINED_WHEN_CHARGED, NEEDS_AUTHENTICATION, Localstripe, running_localstripe
from tests.polling import eventually
from tests.shop import QUICK, SECRET, Shop
from tests.workflows.skipping import shop_on, start_environment

#: It tells nobody that money is held: the order has to look, and does so soon.
CURIOUS = QUICK.model_copy(update={"first_poll_seconds": 0.5})


@pytest_asyncio.fixture(scope="module")
async def localstripe() -> AsyncIterator[Localstripe]:
    """The gateway."""
    async with running_localstripe() as localstripe:
        yield localstripe


@pytest_asyncio.fixture(scope="module")
async def shop(localstripe: Localstripe, make_database: MakeDatabase) -> AsyncIterator[Shop]:
    """A shop whose payments go there: in the simulator's book there is nothing (`captured=0`)."""
    async with (
        await start_environment() as environment,
        shop_on(environment, make_database, CURIOUS, gateway_url=localstripe.url) as shop,
    ):
        await localstripe.send_webhooks(str(shop.shopper.make_url("/webhooks/stripe")), SECRET)
        yield shop


async def test_an_order_is_confirmed_and_its_money_taken_without_a_word_by_webhook(
    shop: Shop, localstripe: Localstripe
) -> None:
    basket = await shop.basket()
    await shop.place(basket)
    await shop.ended(basket.order_id)
    await shop.assert_clean(basket, basket.order_id, captured=0)
    assert await localstripe.money(basket.order_id) == ("succeeded", 5000, 0)


async def test_its_webhook_is_signed_as_ours_are_and_changes_nothing(shop: Shop, localstripe: Localstripe) -> None:
    basket = await shop.basket()
    await shop.place(basket)
    await shop.ended(basket.order_id)

    async def come() -> bool:
        query = select(webhook_inbox.c.state).where(webhook_inbox.c.order_id == basket.order_id)
        async with shop.database.begin() as connection:
            states = (await connection.scalars(query)).all()
        return bool(states) and "waiting" not in states

    await eventually(come)
    await shop.assert_clean(basket, basket.order_id, captured=0)


async def test_a_declined_card_undoes_the_order(shop: Shop, localstripe: Localstripe) -> None:
    basket = await shop.basket()
    await shop.place(basket, payment_method=await localstripe.card(DECLINED_WHEN_CHARGED))
    await shop.ended(basket.order_id)
    await shop.assert_undone(basket, basket.order_id, "CARD_DECLINED")
    assert (await localstripe.money(basket.order_id))[1:] == (0, 0)


async def test_a_shopper_who_authenticates_is_found_by_looking(shop: Shop, localstripe: Localstripe) -> None:
    basket = await shop.basket()
    await shop.place_in_real_time(basket, payment_method=await localstripe.card(NEEDS_AUTHENTICATION))

    async def asked() -> bool:
        return (await shop.view(basket.order_id)).payment.status == "REQUIRES_ACTION"

    await eventually(asked)
    await localstripe.authenticate(basket.order_id, success=True)
    await shop.ended(basket.order_id)
    await shop.assert_clean(basket, basket.order_id, captured=0)
    assert await localstripe.money(basket.order_id) == ("succeeded", 5000, 0)


async def test_what_is_held_is_let_go_when_the_courier_refuses(shop: Shop, localstripe: Localstripe) -> None:
    basket = await shop.basket()
    address = basket.document()["shipping_address"] | {"postcode": "00000"}
    await shop.place(basket, shipping_address=address)
    await shop.ended(basket.order_id)
    await shop.assert_undone(basket, basket.order_id, "NO_SERVICE_TO_ADDRESS")
    assert await localstripe.money(basket.order_id) == ("canceled", 0, 0)


async def test_what_somebody_took_by_hand_is_given_back_once_when_the_order_is_cancelled(
    shop: Shop, localstripe: Localstripe
) -> None:
    basket = await shop.basket()
    gate = shop.gates.hold(basket.order_id, Step.BOOK_SHIPMENT)
    await shop.place(basket)
    await gate.reached()
    await localstripe.capture(basket.order_id)
    assert (await shop.cancel(basket.order_id))[0] == 202
    gate.open()
    await shop.ended(basket.order_id)
    await shop.assert_undone(basket, basket.order_id, "CANCELLED_BY_CUSTOMER")
    assert await localstripe.money(basket.order_id) == ("succeeded", 5000, 5000)


async def test_the_books_hold_against_its_own(shop: Shop, localstripe: Localstripe) -> None:
    baskets = [await shop.basket() for _ in range(2)]
    await shop.place(baskets[0])
    await shop.place(baskets[1], payment_method=await localstripe.card(DECLINED_WHEN_CHARGED))
    for basket in baskets:
        await shop.ended(basket.order_id)
        books = await prove(shop.settings, shop.client, basket.order_id)
        assert books.hold, books
