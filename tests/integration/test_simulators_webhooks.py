"""The simulators' webhooks: signed, repeated until answered, and lost, doubled or reordered on demand."""

import json
from collections.abc import AsyncIterator

import pytest_asyncio
import stripe

from simulators.webhooks import DISABLED_AFTER, signature
from tests.polling import eventually
from tests.simulated import SECRET, Desk, a_desk

AUTHORIZED = "payment_intent.amount_capturable_updated"
SUCCEEDED = "payment_intent.succeeded"


@pytest_asyncio.fixture
async def desk() -> AsyncIterator[Desk]:
    async with a_desk() as opened:
        yield opened


def test_a_signature_is_the_one_that_the_official_sdk_verifies() -> None:
    event = {"id": "evt_1", "object": "event", "type": SUCCEEDED, "data": {"object": {"id": "pi_1"}}}
    body = json.dumps(event).encode()
    header = signature(body, SECRET, 1_000_000_000)
    stripe.WebhookSignature.verify_header(body.decode(), header, SECRET, tolerance=0)
    read = stripe.Webhook.construct_event(body, header, SECRET, tolerance=10**10)
    assert read.id == "evt_1"


async def test_an_event_is_sent_until_it_is_answered_and_keeps_its_id(desk: Desk) -> None:
    desk.receiver.answers = [500, 503]
    await desk.an_authorized_intent()
    await desk.receiver.wait_for(AUTHORIZED)
    assert desk.receiver.attempts == 3
    events = (await desk.control("GET", "events"))["events"]
    assert [(one["id"], one["state"], one["attempts"]) for one in events] == [
        (desk.receiver.events[0]["id"], "delivered", 3)
    ]


async def test_an_endpoint_that_only_fails_is_disabled_until_it_is_enabled_again(desk: Desk) -> None:
    desk.receiver.answers = [500] * DISABLED_AFTER

    async def is_disabled() -> bool:
        return not (await desk.control("GET", "status"))["endpoint"]["enabled"]

    await desk.an_authorized_intent()
    await eventually(is_disabled)
    assert desk.receiver.attempts == DISABLED_AFTER
    await desk.an_authorized_intent(order="o2")
    await desk.control("POST", "endpoint", enabled=True)
    await desk.an_authorized_intent(order="o3")
    await desk.receiver.wait_for(AUTHORIZED)
    assert [event["data"]["object"]["metadata"]["order_id"] for event in desk.receiver.events] == ["o3"]


async def test_an_endpoint_that_cannot_be_reached_is_not_blamed(desk: Desk) -> None:
    url = desk.simulators.gateway_webhook.url
    desk.simulators.gateway_webhook.url = "http://127.0.0.1:9/nobody"
    await desk.an_authorized_intent()

    async def was_tried() -> bool:
        (event,) = (await desk.control("GET", "events"))["events"]
        return bool(event["attempts"] >= 2)

    await eventually(was_tried)
    assert (await desk.control("GET", "status"))["endpoint"]["failures_in_a_row"] == 0
    desk.simulators.gateway_webhook.url = url
    await desk.receiver.wait_for(AUTHORIZED)


async def test_a_webhook_can_be_lost(desk: Desk) -> None:
    await desk.fault(op="webhook", mode="lose", order_id="o1")
    await desk.an_authorized_intent(order="o1")
    await desk.an_authorized_intent(order="o2")
    await desk.receiver.wait_for(AUTHORIZED)
    assert [event["data"]["object"]["metadata"]["order_id"] for event in desk.receiver.events] == ["o2"]


async def test_a_webhook_can_come_twice(desk: Desk) -> None:
    await desk.fault(op="webhook", mode="duplicate")
    await desk.an_authorized_intent()
    await desk.receiver.wait_for(AUTHORIZED, AUTHORIZED)
    assert len({event["id"] for event in desk.receiver.events}) == 1


async def test_a_webhook_can_be_overtaken_by_the_next_one_of_its_order(desk: Desk) -> None:
    await desk.fault(op="webhook", mode="reorder", delay_ms=10_000)
    intent_id = await desk.an_authorized_intent()
    await desk.intents.capture_async(intent_id)
    await desk.receiver.wait_for(AUTHORIZED, SUCCEEDED)
    assert desk.receiver.types() == [SUCCEEDED, AUTHORIZED]


async def test_a_webhook_can_be_late(desk: Desk) -> None:
    await desk.fault(op="webhook", mode="delay", delay_ms=300, order_id="o1")
    await desk.an_authorized_intent(order="o1")
    await desk.an_authorized_intent(order="o2")
    await desk.receiver.wait_for(AUTHORIZED, AUTHORIZED)
    orders = [event["data"]["object"]["metadata"]["order_id"] for event in desk.receiver.events]
    assert orders == ["o2", "o1"]


async def test_an_untrue_event_is_signed_and_says_what_the_endpoint_answered(desk: Desk) -> None:
    intent_id = await desk.an_authorized_intent()
    sent = await desk.control("POST", "events", type=SUCCEEDED, intent=intent_id, overrides={"amount_received": 1})
    assert sent["status"] == 200
    (event,) = [one for one in desk.receiver.events if one["id"] == sent["id"]]
    assert event["data"]["object"]["amount_received"] == 1
    assert (await desk.intents.retrieve_async(intent_id)).status == "requires_capture"


async def test_an_event_may_be_about_an_intent_that_never_was(desk: Desk) -> None:
    sent = await desk.control("POST", "events", type=SUCCEEDED, intent="pi_unheard_of")
    assert sent["status"] == 200
    assert desk.receiver.events[-1]["data"]["object"]["id"] == "pi_unheard_of"


async def test_a_dispute_names_the_intent_and_its_amount(desk: Desk) -> None:
    intent_id = await desk.an_authorized_intent()
    await desk.control("POST", "events", type="charge.dispute.created", intent=intent_id)
    dispute = desk.receiver.events[-1]["data"]["object"]
    assert (dispute["object"], dispute["payment_intent"], dispute["amount"]) == ("dispute", intent_id, 4500)


async def test_a_forged_or_stale_event_is_refused_once_and_the_endpoint_is_not_blamed(desk: Desk) -> None:
    intent_id = await desk.an_intent()
    forged = await desk.control("POST", "events", type=SUCCEEDED, intent=intent_id, secret="whsec_of_a_thief")
    stale = await desk.control("POST", "events", type=SUCCEEDED, intent=intent_id, offset_seconds=-301)
    assert (forged["status"], stale["status"]) == (400, 400)
    endpoint = (await desk.control("GET", "status"))["endpoint"]
    assert (endpoint["failures_in_a_row"], endpoint["pending"]) == (0, 0)


async def test_events_are_signed_with_the_time_of_the_endpoint_whatever_the_simulators_clock_says(desk: Desk) -> None:
    await desk.control("POST", "clock", advance_seconds=3 * 24 * 3600)
    await desk.an_authorized_intent()
    await desk.receiver.wait_for(AUTHORIZED)
