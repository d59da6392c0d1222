"""The simulated gateway's idempotency keys behave as Stripe's."""

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
import stripe

from tests.polling import eventually
from tests.simulated import Desk, a_desk

DAY_SECONDS = 24 * 3600


@pytest_asyncio.fixture
async def desk() -> AsyncIterator[Desk]:
    async with a_desk() as opened:
        yield opened


async def test_the_same_key_gets_the_same_intent_and_says_that_it_is_a_replay(desk: Desk) -> None:
    first = await desk.an_intent(key="k1")
    assert await desk.an_intent(key="k1") == first
    replayed = await desk.intents.create_async(
        {
            "amount": 4500,
            "currency": "eur",
            "capture_method": "manual",
            "payment_method": "pm_card_visa",
            "metadata": {"order_id": "o1"},
        },
        {"idempotency_key": "k1"},
    )
    assert replayed.last_response is not None
    assert replayed.last_response.headers["Idempotent-Replayed"] == "true"
    (line,) = (await desk.ledger())["intents"]
    assert [(call["op"], call["key"], call["status"]) for call in line["calls"]] == [("create", "k1", 200)] * 3


async def test_a_key_with_other_parameters_is_refused(desk: Desk) -> None:
    await desk.an_intent(order="o1", key="k1")
    with pytest.raises(stripe.IdempotencyError) as refused:
        await desk.an_intent(order="o2", key="k1")
    assert refused.value.http_status == 400
    assert len((await desk.ledger())["intents"]) == 1


async def test_a_key_of_another_endpoint_is_refused(desk: Desk) -> None:
    intent_id = await desk.an_intent(key="k1")
    with pytest.raises(stripe.IdempotencyError):
        await desk.intents.confirm_async(intent_id, {}, {"idempotency_key": "k1"})


async def test_a_stored_500_is_replayed_for_ever_and_nothing_has_happened(desk: Desk) -> None:
    await desk.fault(op="create", mode="error")
    for _ in range(3):
        with pytest.raises(stripe.APIError) as failed:
            await desk.an_intent(key="k1")
        assert failed.value.http_status == 500
    assert (await desk.ledger())["intents"] == []
    await desk.an_intent(key="k1:2")
    (line,) = (await desk.ledger())["intents"]
    assert [(call["key"], call["status"]) for call in line["calls"]] == [("k1", 500)] * 3 + [("k1:2", 200)]


@pytest.mark.parametrize("status", [429, 503])
async def test_an_answer_from_in_front_of_the_gateway_is_not_stored(desk: Desk, status: int) -> None:
    await desk.fault(op="create", mode="error", status=status, retry_after=7)
    with pytest.raises(stripe.StripeError) as not_served:
        await desk.an_intent(key="k1")
    assert not_served.value.http_status == status
    assert (not_served.value.headers or {})["Retry-After"] == "7"
    assert await desk.an_intent(key="k1")


async def test_a_decline_is_replayed_under_its_key(desk: Desk) -> None:
    intent_id = await desk.an_intent("pm_card_chargeDeclined")
    for _ in range(2):
        with pytest.raises(stripe.CardError):
            await desk.intents.confirm_async(intent_id, {}, {"idempotency_key": "k1"})
    await desk.receiver.wait_for("payment_intent.payment_failed")
    assert desk.receiver.types() == ["payment_intent.payment_failed"]


async def test_a_key_in_flight_is_a_conflict_and_then_answers(desk: Desk) -> None:
    await desk.fault(op="create", mode="delay", delay_ms=500)
    first = asyncio.create_task(desk.an_intent(key="k1"))

    async def has_landed() -> bool:
        return bool((await desk.ledger())["intents"])

    await eventually(has_landed)
    with pytest.raises(stripe.APIError) as conflict:
        await desk.an_intent(key="k1")
    assert conflict.value.error is not None
    assert (conflict.value.http_status, conflict.value.error.code) == (409, "idempotency_key_in_use")
    assert await first == await desk.an_intent(key="k1")


async def test_a_key_is_forgotten_after_a_day(desk: Desk) -> None:
    first = await desk.an_intent(key="k1")
    await desk.control("POST", "clock", advance_seconds=DAY_SECONDS - 60)
    assert await desk.an_intent(key="k1") == first
    await desk.control("POST", "clock", advance_seconds=120)
    assert await desk.an_intent(key="k1") != first


async def test_wrong_parameters_leave_the_key_unused(desk: Desk) -> None:
    with pytest.raises(stripe.InvalidRequestError):
        await desk.intents.create_async({"amount": 1, "currency": "eur"}, {"idempotency_key": "k1"})
    assert await desk.an_intent(key="k1")
