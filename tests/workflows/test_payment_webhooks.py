"""Webhooks about a payment: at once, late, twice, early, stale or untrue, they only say when to ask.

A shop that looks by itself only after twenty minutes: where an order goes on sooner, a webhook has woken it.
"""

import asyncio

import pytest

from adapters.database import Database
from adapters.inbox import IncomingEvent, store_event
from tests.baskets import Basket
from tests.builders import a_customer, an_accepted_order, the_fixture_products
from tests.conftest import MakeDatabase
from tests.workflows.skipping import shop_on, start_environment
from tests.workflows.till import CAPTURABLE, Till


@pytest.fixture
def till(patient_till: Till) -> Till:
    """The payments of a shop that relies on webhooks."""
    return patient_till


async def test_a_webhook_wakes_the_order_at_once_late_or_twice(till: Till) -> None:
    at_once, late, twice = await till.baskets(3)
    await till.fault(late, "webhook", "delay", delay_ms=500)
    await till.fault(twice, "webhook", "duplicate")
    await asyncio.gather(*(till.shop.place_in_real_time(basket) for basket in (at_once, late, twice)))
    await till.confirmed(at_once, late, twice)
    assert len(await till.calls(twice, "capture")) == 1


async def test_a_webhook_that_overtakes_the_open_call_is_not_lost(till: Till) -> None:
    """S16: it comes while the call is open, and nobody redelivers it."""
    basket = await till.shop.basket()
    await till.fault(basket, "confirm", "delay", delay_ms=300)
    await till.shop.place_in_real_time(basket)
    await till.confirmed(basket)


async def test_twenty_copies_of_one_event_at_once_are_one_event(till: Till) -> None:
    basket = await till.waiting(await till.shop.basket(), "pm_sim_silent")
    event = {"type": CAPTURABLE, "intent": (await till.intent(basket))["id"], "event_id": f"evt-{basket.order_id}"}
    sent = await asyncio.gather(*(till.shop.sim("events", **event) for _ in range(20)))
    await till.confirmed(basket)
    assert {one["status"] for one in sent} == {200}
    assert len(await till.calls(basket, "capture")) == 1


async def test_an_event_that_is_here_before_its_order_starts_waits_for_it(make_database: MakeDatabase) -> None:
    """S16: it comes before the saga starts, and nobody redelivers it."""
    database = await make_database()
    await the_fixture_products(database)
    await a_customer(database, "ada")
    order_id = await an_accepted_order(database, customer_id="ada", payment_method="pm_sim_silent")
    async with database.begin() as connection:
        await store_event(connection, IncomingEvent("stripe", "evt_early", CAPTURABLE, "pi_not_ours_yet", order_id))

    async def made() -> Database:
        return database

    async with await start_environment() as environment, shop_on(environment, made) as shop:
        till = Till(shop, environment)
        await shop.ended(order_id)
        await shop.assert_clean(Basket("A", "B", "ada"), order_id)
        assert await till.became("evt_early") in {"delivered", "ignored"}


async def test_stale_and_untrue_events_change_nothing(till: Till) -> None:
    basket = await till.waiting(await till.shop.basket(), "pm_sim_never")
    assert await till.became(await till.event(basket, CAPTURABLE)) == "delivered"
    assert await till.became(await till.event(basket, "payment_intent.payment_failed")) == "delivered"
    assert await till.became(await till.event(basket, CAPTURABLE, amount=1, currency="usd")) == "delivered"
    assert (await till.shop.view(basket.order_id)).payment.status == "PROCESSING"
    await till.authenticate(basket, "success")
    await till.confirmed(basket)
    stale = await till.event(basket, "payment_intent.payment_failed", status="requires_payment_method")
    repeated = await till.event(basket, CAPTURABLE)
    assert (await till.became(stale), await till.became(repeated)) == ("delivered", "ignored")
    await till.settled(basket)
    await till.confirmed(basket)


async def test_an_event_about_another_intent_never_touches_the_order(till: Till) -> None:
    basket, stranger = await till.baskets(2)
    await asyncio.gather(till.waiting(basket, "pm_sim_never"), till.waiting(stranger, "pm_sim_never"))
    reads = len(await till.calls(basket, "read"))
    named = {"order_id": basket.order_id}
    events = [
        await till.event(stranger, metadata=named),
        await till.event(basket, intent="pi_nobody_has_it", metadata=named),
    ]
    assert [await till.became(event) for event in events] == ["ignored", "ignored"]
    assert len(await till.calls(basket, "read")) == reads
    for one in (basket, stranger):
        await till.authenticate(one, "success")
    await till.confirmed(basket, stranger)
