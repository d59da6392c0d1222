"""Scenarios from the field: webhooks that race, come in numbers, early, altered, never, or about nobody."""

import asyncio
import json
import random
from typing import Any

import pytest

from domain.keys import Step
from tests.baskets import Basket, fresh
from tests.conftest import MakeDatabase
from tests.integration.webhooks import send, signature
from tests.polling import eventually
from tests.replicas import a_replica
from tests.shop import SECRET, Shop
from tests.workflows import order_o
from tests.workflows.till import CAPTURABLE, FOREVER, Till

DEADLINE = 1800
#: The gateway switches an endpoint off after so many refusals in a row.
SWITCHED_OFF_AFTER = 50


def signed_event(intent_id: str, order_id: str) -> dict[str, Any]:
    """An event as the gateway sends it when money is held."""
    about = {"id": intent_id, "object": "payment_intent", "metadata": {"order_id": order_id}}
    return {"id": fresh("evt"), "object": "event", "type": CAPTURABLE, "data": {"object": about}}


async def webhooks(till: Till, *baskets: Basket) -> list[dict[str, Any]]:
    """What the gateway says about its events of these orders, once none is on its way."""
    ids = {basket.order_id for basket in baskets}

    async def look() -> list[dict[str, Any]]:
        async with till.shop.http.get(f"{till.shop.base('gateway')}/_sim/events") as answer:
            events = [one for one in (await answer.json())["events"] if one["order_id"] in ids]
        return [] if any(one["state"] == "pending" for one in events) else events

    return await eventually(look)


@pytest.mark.long
@pytest.mark.timeout(600)
async def test_the_answer_and_the_webhook_race_a_hundred_times(make_database: MakeDatabase) -> None:
    """S01: either one is up to 50 ms later than the other."""
    jitter = random.Random(1)
    async with order_o.a_roomy_till(make_database) as till:
        for _ in range(10):
            baskets = await till.baskets(10)
            for basket in baskets:
                await till.fault(basket, jitter.choice(["confirm", "webhook"]), "delay", delay_ms=jitter.randrange(50))
            await order_o.place(till.shop, *baskets)
            await order_o.clean(till.shop, *baskets)
            for basket in baskets:
                assert len(await till.calls(basket, "capture")) == 1
            told = await webhooks(till, *baskets)
            assert {(one["state"], one["attempts"], one["last_status"]) for one in told} == {("delivered", 1, 200)}


async def test_one_event_from_twenty_sides_at_two_replicas_is_one_event(patient_till: Till) -> None:
    """S03: every copy is answered 2xx and the money is taken once."""
    shop = patient_till.shop
    basket = await order_o.waiting(patient_till)
    event = signed_event((await patient_till.intent(basket))["id"], basket.order_id)
    async with a_replica(shop) as replica:
        doors = [shop.shopper, replica] * 10
        answers = await asyncio.gather(*(send(door, event, secret=SECRET) for door in doors))
    assert sorted((status, body["duplicate"]) for status, body in answers) == [(200, False)] + [(200, True)] * 19
    await order_o.clean(shop, basket)
    assert len(await patient_till.calls(basket, "capture")) == 1


async def test_a_webhook_that_is_lost_until_the_deadline_is_made_up_for_by_asking(till: Till) -> None:
    """S21: the gateway cannot be read before the wait runs out, and says yes when it does."""
    basket = await till.shop.basket()
    down = await till.fault(basket, "read", "error", status=502, times=FOREVER)
    await till.waiting(basket, "pm_sim_silent", points=order_o.POINTS)
    await till.forward(basket, DEADLINE - 60)
    await till.shop.heal(down)
    looks = till.shop.gates.calls(basket.order_id, Step.READ_PAYMENT)
    await till.forward(basket, 61)
    await order_o.clean(till.shop, basket)
    assert till.shop.gates.calls(basket.order_id, Step.ABANDON_PAYMENT) == 1
    # Only the deadline asked: the next look of the wait itself would have been later.
    assert till.shop.gates.calls(basket.order_id, Step.READ_PAYMENT) == looks
    assert await till.calls(basket, "cancel") == []


async def test_a_lost_webhook_and_a_gateway_that_is_down_at_the_deadline_wait_for_a_person(till: Till) -> None:
    """S21: never a blind cancel."""
    basket = await till.shop.basket()
    down = await till.fault(basket, "read", "error", status=502, times=FOREVER)
    await till.waiting(basket, "pm_sim_silent", points=order_o.POINTS)
    await till.forward(basket, DEADLINE)
    item = await till.parked(basket, "await_payment")
    assert item.kind == "TECHNICAL"
    assert await till.calls(basket, "cancel") == []
    assert (await till.intent(basket))["status"] == "requires_capture"
    await till.shop.heal(down)
    assert await till.shop.redrive(basket.order_id, "await_payment", "retry") == 202
    await order_o.clean(till.shop, basket)


async def test_the_exact_bytes_are_taken_and_rewritten_ones_change_nothing(patient_till: Till) -> None:
    """S22: odd spaces, unsorted keys, escapes, an emoji and a newline at the end."""
    shop = patient_till.shop
    basket = await order_o.waiting(patient_till)
    event = signed_event((await patient_till.intent(basket))["id"], basket.order_id)
    text = json.dumps(event | {"z": "é \N{ROCKET}", "a": 1}, separators=(" ,  ", " :\t")).replace(
        "\\ud83d\\ude80", "🚀"
    )
    body = text.encode() + b"\n"
    assert b"\\u00e9" in body
    before = await shop.view(basket.order_id)
    reads = len(await patient_till.calls(basket, "read"))
    for altered in (json.dumps(json.loads(body)).encode(), body.rstrip()):
        assert await refused(shop, altered, signature(body, SECRET)) == 400
    for header in ("", "nonsense", "t=,v1=", "t=99999999999999999999,v1=00", "v1=0"):
        assert await refused(shop, body, header) == 400
    assert await shop.view(basket.order_id) == before
    assert len(await patient_till.calls(basket, "read")) == reads
    assert (await send(shop.shopper, body, secret=SECRET))[0] == 200
    await order_o.clean(shop, basket)


async def refused(shop: Shop, body: bytes, header: str) -> int:
    """The status of the answer to these bytes under this header."""
    return (await send(shop.shopper, body, **{"Stripe-Signature": header}))[0]


async def nobodys_events(till: Till, strangers: int, orders: int) -> None:
    """Events of orders that nobody knows, and between them those of real orders."""
    shop = till.shop
    baskets = await asyncio.gather(*(order_o.waiting(till) for _ in range(orders)))
    real = [(await till.intent(basket))["id"] for basket in baskets]
    intents = [fresh("pi") for _ in range(strangers)] + real
    random.Random(strangers).shuffle(intents)
    limit = asyncio.Semaphore(20)

    async def tell(intent: str) -> dict[str, Any]:
        order = {"order_id": fresh("nobody")} if intent not in real else {}
        async with limit:
            return await shop.sim("events", type=CAPTURABLE, intent=intent, overrides={"metadata": order})

    told = await asyncio.gather(*map(tell, intents))
    assert {one["status"] for one in told} == {200}
    await order_o.clean(shop, *baskets)
    async with shop.http.get(f"{shop.base('gateway')}/_sim/status") as answer:
        assert (await answer.json())["endpoint"]["enabled"] is True
    became = [await till.became(one["id"]) for one in told]
    assert became.count("set_aside") == strangers


async def test_events_of_nobody_keep_no_order_and_no_endpoint(patient_till: Till) -> None:
    """S27: more of them than the gateway forgives."""
    await nobodys_events(patient_till, SWITCHED_OFF_AFTER + 10, 2)


@pytest.mark.long
@pytest.mark.timeout(600)
async def test_a_thousand_events_of_nobody_keep_no_order_and_no_endpoint(patient_till: Till) -> None:
    """S27: a thousand of them, and ten orders."""
    await nobodys_events(patient_till, 1000, 10)
