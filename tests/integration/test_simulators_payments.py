"""The simulated gateway through the official Stripe client: what each card does, what may be done with money."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
import stripe

from tests.simulated import Desk, a_desk

WEEK_SECONDS = 7 * 24 * 3600


@pytest_asyncio.fixture
async def desk() -> AsyncIterator[Desk]:
    async with a_desk() as opened:
        yield opened


async def test_a_good_card_processes_and_is_authorized_by_webhook_a_moment_later(desk: Desk) -> None:
    intent_id = await desk.an_intent()
    confirmed = await desk.intents.confirm_async(intent_id)
    assert confirmed.status == "processing"
    await desk.receiver.wait_for("payment_intent.amount_capturable_updated")
    told = desk.receiver.events[0]["data"]["object"]
    assert (told["id"], told["status"], told["amount_capturable"]) == (intent_id, "requires_capture", 4500)
    assert (await desk.intents.retrieve_async(intent_id)).amount_capturable == 4500


@pytest.mark.parametrize(
    ("card", "decline_code", "outcome"),
    [
        ("pm_card_chargeDeclined", "generic_decline", "issuer_declined"),
        ("pm_card_radarBlock", "fraudulent", "blocked"),
    ],
)
async def test_a_refused_card_is_a_402_and_a_fact_of_the_intent(
    desk: Desk, card: str, decline_code: str, outcome: str
) -> None:
    intent_id = await desk.an_intent(card)
    with pytest.raises(stripe.CardError) as refused:
        await desk.intents.confirm_async(intent_id)
    assert refused.value.code == "card_declined"
    assert refused.value.error is not None
    assert refused.value.error.decline_code == decline_code
    intent = await desk.intents.retrieve_async(intent_id, {"expand": ["latest_charge"]})
    assert intent.status == "requires_payment_method"
    assert intent.last_payment_error is not None
    assert intent.last_payment_error.decline_code == decline_code
    assert isinstance(intent.latest_charge, stripe.Charge)
    assert intent.latest_charge.outcome is not None
    assert intent.latest_charge.outcome.type == outcome
    await desk.receiver.wait_for("payment_intent.payment_failed")


async def test_a_shopper_who_authenticates_is_charged(desk: Desk) -> None:
    intent_id = await desk.an_intent("pm_card_authenticationRequired")
    confirmed = await desk.intents.confirm_async(intent_id)
    assert confirmed.status == "requires_action"
    assert confirmed.next_action is not None
    await desk.control("POST", f"intents/{intent_id}/authenticate", outcome="success")
    assert (await desk.intents.retrieve_async(intent_id)).status == "requires_capture"
    await desk.receiver.wait_for("payment_intent.requires_action", "payment_intent.amount_capturable_updated")


async def test_a_shopper_who_fails_authentication_has_no_payment_method_left(desk: Desk) -> None:
    intent_id = await desk.an_intent("pm_card_authenticationRequired")
    await desk.intents.confirm_async(intent_id)
    await desk.control("POST", f"intents/{intent_id}/authenticate", outcome="fail")
    intent = await desk.intents.retrieve_async(intent_id)
    assert intent.status == "requires_payment_method"
    assert intent.last_payment_error is not None
    assert intent.last_payment_error.code == "payment_intent_authentication_failure"
    await desk.receiver.wait_for("payment_intent.payment_failed")


async def test_an_abandoned_authentication_changes_nothing(desk: Desk) -> None:
    intent_id = await desk.an_intent("pm_card_authenticationRequired")
    await desk.intents.confirm_async(intent_id)
    await desk.control("POST", f"intents/{intent_id}/authenticate", outcome="abandon")
    assert (await desk.intents.retrieve_async(intent_id)).status == "requires_action"


async def test_authentication_after_the_intent_is_canceled_comes_too_late(desk: Desk) -> None:
    intent_id = await desk.an_intent("pm_card_authenticationRequired")
    await desk.intents.confirm_async(intent_id)
    await desk.intents.cancel_async(intent_id)
    url = f"{desk.simulators.gateway_url}/_sim/intents/{intent_id}/authenticate"
    async with desk.http.post(url, json={"outcome": "success"}) as answer:
        assert answer.status == 400
    assert (await desk.intents.retrieve_async(intent_id)).status == "canceled"


async def test_a_silent_card_is_authorized_without_a_webhook(desk: Desk) -> None:
    silent = await desk.an_intent("pm_sim_silent", order="silent")
    await desk.intents.confirm_async(silent)
    await desk.until(silent, "requires_capture")
    await desk.an_authorized_intent(order="loud")
    await desk.receiver.wait_for("payment_intent.amount_capturable_updated")
    assert [event["data"]["object"]["metadata"]["order_id"] for event in desk.receiver.events] == ["loud"]


async def test_a_payment_that_never_comes_stays_processing_and_cannot_be_canceled(desk: Desk) -> None:
    intent_id = await desk.an_intent("pm_sim_never")
    await desk.intents.confirm_async(intent_id)
    await desk.control("POST", "clock", advance_seconds=WEEK_SECONDS)
    with pytest.raises(stripe.InvalidRequestError) as refused:
        await desk.intents.cancel_async(intent_id)
    assert refused.value.code == "payment_intent_unexpected_state"
    assert refused.value.error is not None
    assert refused.value.error.payment_intent is not None
    assert refused.value.error.payment_intent.status == "processing"


async def test_captured_money_is_on_the_ledger_and_no_hold_is_left(desk: Desk) -> None:
    intent_id = await desk.an_authorized_intent()
    captured = await desk.intents.capture_async(intent_id)
    assert (captured.status, captured.amount_received, captured.amount_capturable) == ("succeeded", 4500, 0)
    (line,) = (await desk.ledger())["intents"]
    assert {name: line[name] for name in ("id", "order_id", "amount", "currency", "status")} == {
        "id": intent_id,
        "order_id": "o1",
        "amount": 4500,
        "currency": "eur",
        "status": "succeeded",
    }
    assert (line["authorized"], line["captured"], line["refunded"]) == (4500, 4500, 0)
    assert [call["op"] for call in line["calls"] if call["op"] != "read"] == ["create", "confirm", "capture"]
    assert line["calls"][0]["key"] == "o1:create"
    assert line["calls"][0]["status"] == 200
    await desk.receiver.wait_for("payment_intent.succeeded")


async def test_a_partial_capture_releases_the_rest(desk: Desk) -> None:
    intent_id = await desk.an_authorized_intent()
    await desk.intents.capture_async(intent_id, {"amount_to_capture": 3000})
    (line,) = (await desk.ledger())["intents"]
    assert (line["authorized"], line["captured"]) == (3000, 3000)


async def test_canceling_releases_the_hold_and_a_capture_is_refused_with_the_intent(desk: Desk) -> None:
    intent_id = await desk.an_authorized_intent()
    canceled = await desk.intents.cancel_async(intent_id, {"cancellation_reason": "requested_by_customer"})
    assert (canceled.status, canceled.cancellation_reason) == ("canceled", "requested_by_customer")
    assert (await desk.ledger())["intents"][0]["authorized"] == 0
    with pytest.raises(stripe.InvalidRequestError) as refused:
        await desk.intents.capture_async(intent_id)
    assert refused.value.code == "payment_intent_unexpected_state"
    assert refused.value.error is not None
    assert refused.value.error.payment_intent is not None
    assert refused.value.error.payment_intent.id == intent_id
    await desk.receiver.wait_for("payment_intent.canceled")


async def test_a_succeeded_intent_cannot_be_canceled(desk: Desk) -> None:
    intent_id = await desk.an_authorized_intent()
    await desk.intents.capture_async(intent_id)
    with pytest.raises(stripe.InvalidRequestError) as refused:
        await desk.intents.cancel_async(intent_id)
    assert refused.value.code == "payment_intent_unexpected_state"


async def test_a_hold_expires_after_seven_days(desk: Desk) -> None:
    intent_id = await desk.an_authorized_intent()
    await desk.control("POST", "clock", advance_seconds=WEEK_SECONDS - 60)
    assert (await desk.intents.retrieve_async(intent_id)).status == "requires_capture"
    await desk.control("POST", "clock", desk.simulators.courier_url, advance_seconds=120)
    expired = await desk.intents.retrieve_async(intent_id)
    assert (expired.status, expired.cancellation_reason) == ("canceled", "automatic")
    await desk.receiver.wait_for("payment_intent.canceled")


async def test_refunds_never_exceed_what_was_captured(desk: Desk) -> None:
    intent_id = await desk.an_authorized_intent()
    await desk.intents.capture_async(intent_id)
    refund = await desk.refunds.create_async(
        {"payment_intent": intent_id, "amount": 3000, "metadata": {"refund_key": "r1"}}
    )
    assert refund.status == "succeeded"
    with pytest.raises(stripe.InvalidRequestError) as too_much:
        await desk.refunds.create_async({"payment_intent": intent_id, "amount": 1501})
    assert too_much.value.code == "amount_too_large"
    await desk.refunds.create_async({"payment_intent": intent_id})
    with pytest.raises(stripe.InvalidRequestError) as again:
        await desk.refunds.create_async({"payment_intent": intent_id})
    assert again.value.code == "charge_already_refunded"
    listed = await desk.refunds.list_async({"payment_intent": intent_id})
    assert [one.amount for one in listed.data] == [1500, 3000]
    assert listed.data[1].metadata is not None
    assert listed.data[1].metadata["refund_key"] == "r1"
    assert (await desk.refunds.retrieve_async(refund.id)).amount == 3000
    assert (await desk.ledger())["intents"][0]["refunded"] == 4500
    await desk.receiver.wait_for("charge.refunded", "refund.updated", "charge.refunded", "refund.updated")


async def test_money_that_is_only_held_cannot_be_refunded(desk: Desk) -> None:
    intent_id = await desk.an_authorized_intent()
    with pytest.raises(stripe.InvalidRequestError):
        await desk.refunds.create_async({"payment_intent": intent_id})


async def test_a_pending_refund_is_decided_by_the_bank_and_a_failed_one_can_be_asked_for_again(desk: Desk) -> None:
    intent_id = await desk.an_authorized_intent()
    await desk.intents.capture_async(intent_id)
    await desk.fault(op="refund", mode="pending")
    refund = await desk.refunds.create_async({"payment_intent": intent_id})
    assert refund.status == "pending"
    assert (await desk.ledger())["intents"][0]["refunded"] == 0
    with pytest.raises(stripe.InvalidRequestError):
        await desk.refunds.create_async({"payment_intent": intent_id})
    await desk.control("POST", f"refunds/{refund.id}", status="failed")
    await desk.receiver.wait_for("refund.failed")
    again = await desk.refunds.create_async({"payment_intent": intent_id})
    assert again.status == "succeeded"
    assert (await desk.ledger())["intents"][0]["refunded"] == 4500


async def test_the_list_pages_newest_first_and_filters_by_time(desk: Desk) -> None:
    ids = [await desk.an_intent(order=f"o{number}") for number in range(5)]
    await desk.control("POST", "clock", advance_seconds=3600)
    ids.append(await desk.an_intent(order="late"))
    first = await desk.intents.list_async({"limit": 4})
    assert first.has_more
    rest = await desk.intents.list_async({"limit": 4, "starting_after": first.data[-1].id})
    assert not rest.has_more
    assert [intent.id for intent in [*first.data, *rest.data]] == ids[::-1]
    recent = await desk.intents.list_async({"created": {"gt": rest.data[-1].created + 60}})
    assert [intent.id for intent in recent.data] == ids[-1:]


@pytest.mark.parametrize(
    ("amount", "currency", "code"),
    [
        (0, "eur", "parameter_invalid_integer"),
        (49, "eur", "amount_too_small"),
        (100_000_000, "eur", "amount_too_large"),
    ],
)
async def test_an_amount_that_cannot_be_charged_is_refused(desk: Desk, amount: int, currency: str, code: str) -> None:
    with pytest.raises(stripe.InvalidRequestError) as refused:
        await desk.intents.create_async({"amount": amount, "currency": currency})
    assert refused.value.code == code
    assert (await desk.ledger())["intents"] == []


async def test_three_decimal_amounts_end_in_zero_and_zero_decimal_amounts_are_whole(desk: Desk) -> None:
    with pytest.raises(stripe.InvalidRequestError):
        await desk.intents.create_async({"amount": 1234, "currency": "kwd"})
    for amount, currency in ((1230, "kwd"), (10000, "jpy")):
        assert (await desk.intents.create_async({"amount": amount, "currency": currency})).amount == amount


async def test_an_unknown_card_and_an_unknown_intent_are_missing_resources(desk: Desk) -> None:
    with pytest.raises(stripe.InvalidRequestError) as card:
        await desk.an_intent("pm_card_unheard_of")
    with pytest.raises(stripe.InvalidRequestError) as intent:
        await desk.intents.retrieve_async("pi_unheard_of")
    assert (card.value.http_status, card.value.code) == (400, "resource_missing")
    assert (intent.value.http_status, intent.value.code) == (404, "resource_missing")


async def test_money_can_be_made_to_move_against_the_rules_on_a_canceled_intent(desk: Desk) -> None:
    intent_id = await desk.an_authorized_intent()
    await desk.intents.cancel_async(intent_id)
    await desk.control("POST", f"intents/{intent_id}/force", status="succeeded")
    await desk.receiver.wait_for("payment_intent.succeeded")
    assert (await desk.ledger())["intents"][0]["captured"] == 4500
