"""Faults on demand: each mode does what it says, once, to the calls that it is meant for."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
import stripe

from tests.polling import eventually
from tests.simulated import Desk, a_desk


@pytest_asyncio.fixture
async def desk() -> AsyncIterator[Desk]:
    async with a_desk() as opened:
        yield opened


async def test_a_dropped_answer_leaves_the_effect_and_the_stored_answer(desk: Desk) -> None:
    intent_id = await desk.an_authorized_intent()
    await desk.fault(op="capture", mode="drop")
    with pytest.raises(stripe.APIConnectionError):
        await desk.intents.capture_async(intent_id, {}, {"idempotency_key": "k1"})
    assert (await desk.intents.retrieve_async(intent_id)).status == "succeeded"
    assert (await desk.intents.capture_async(intent_id, {}, {"idempotency_key": "k1"})).status == "succeeded"
    (line,) = (await desk.ledger())["intents"]
    captures = [call["status"] for call in line["calls"] if call["op"] == "capture"]
    assert (captures, line["captured"]) == (["dropped", 200], 4500)


async def test_an_error_has_no_effect(desk: Desk) -> None:
    intent_id = await desk.an_authorized_intent()
    await desk.fault(op="capture", mode="error", status=502, body={"error": {"message": "bad gateway"}})
    with pytest.raises(stripe.APIError) as failed:
        await desk.intents.capture_async(intent_id)
    assert failed.value.http_status == 502
    assert (await desk.intents.retrieve_async(intent_id)).status == "requires_capture"


async def test_a_hung_call_takes_effect_when_the_fault_is_deleted_even_if_the_client_has_gone(desk: Desk) -> None:
    intent_id = await desk.an_authorized_intent()
    fault_id = await desk.fault(op="capture", mode="hang")
    url = f"{desk.simulators.gateway_url}/v1/payment_intents/{intent_id}/capture"
    headers = {"Authorization": "Bearer sk_test_simulated"}
    with pytest.raises(TimeoutError):
        async with desk.http.post(url, headers=headers, timeout=aiohttp.ClientTimeout(total=0.2)):
            pass
    assert (await desk.intents.retrieve_async(intent_id)).status == "requires_capture"
    (line,) = (await desk.ledger())["intents"]
    assert [call["status"] for call in line["calls"] if call["op"] == "capture"] == ["hung"]
    assert (await desk.control("GET", f"faults/{fault_id}"))["held"] == 1
    assert await desk.control("DELETE", f"faults/{fault_id}") == {"ended": 1}
    await desk.until(intent_id, "succeeded")


async def test_the_same_call_goes_through_while_an_earlier_one_hangs_and_the_late_one_is_a_replay(desk: Desk) -> None:
    fault_id = await desk.fault(op="create", mode="hang")
    hung = asyncio.create_task(desk.an_intent(key="k1"))

    async def is_held() -> bool:
        return bool((await desk.control("GET", f"faults/{fault_id}"))["held"])

    await eventually(is_held)
    second = await desk.an_intent(key="k1")
    await desk.control("DELETE", "faults")
    assert await hung == second
    assert len((await desk.ledger())["intents"]) == 1


async def test_above_its_rate_the_gateway_says_when_to_come_back(desk: Desk) -> None:
    fault_id = await desk.fault(op="create", mode="rate", per_second=5, retry_after=2)
    answers = await asyncio.gather(*(desk.an_intent(order=f"o{n}") for n in range(8)), return_exceptions=True)
    refused = [answer for answer in answers if isinstance(answer, stripe.RateLimitError)]
    assert len(refused) == 3
    assert {(error.headers or {})["Retry-After"] for error in refused} == {"2"}
    await desk.control("DELETE", f"faults/{fault_id}")
    assert await desk.an_intent(order="after")


async def test_a_conflict_can_be_asked_for(desk: Desk) -> None:
    await desk.fault(op="create", mode="conflict")
    with pytest.raises(stripe.APIError) as conflict:
        await desk.an_intent(key="k1")
    assert conflict.value.error is not None
    assert (conflict.value.http_status, conflict.value.error.code) == (409, "idempotency_key_in_use")
    assert await desk.an_intent(key="k1")


async def test_a_made_up_answer_has_no_effect(desk: Desk) -> None:
    await desk.fault(op="create", mode="answer", body={"id": "pi_invented", "object": "payment_intent"})
    assert await desk.an_intent(key="k1") == "pi_invented"
    assert (await desk.ledger())["intents"] == []
    assert await desk.an_intent(key="k1") != "pi_invented"


async def test_a_fault_for_one_order_leaves_the_others_alone(desk: Desk) -> None:
    mine, other = await desk.an_authorized_intent(order="mine"), await desk.an_authorized_intent(order="other")
    await desk.fault(op="capture", mode="error", status=503, order_id="mine")
    assert (await desk.intents.capture_async(other)).status == "succeeded"
    with pytest.raises(stripe.StripeError):
        await desk.intents.capture_async(mine)
    assert (await desk.intents.capture_async(mine)).status == "succeeded"


async def test_a_fault_hits_as_often_as_it_was_told_and_is_then_gone(desk: Desk) -> None:
    intent_id = await desk.an_intent()
    await desk.fault(op="read", mode="error", times=2)
    for _ in range(2):
        with pytest.raises(stripe.APIError):
            await desk.intents.retrieve_async(intent_id)
    assert (await desk.intents.retrieve_async(intent_id)).id == intent_id
    assert await desk.control("GET", "faults") == {"faults": []}


async def test_a_fault_may_be_posted_to_any_simulator_and_a_shared_word_means_the_one_it_was_posted_to(
    desk: Desk,
) -> None:
    courier = desk.simulators.courier_url
    await desk.fault(courier, op="create", mode="error", status=503)
    with pytest.raises(stripe.StripeError):
        await desk.an_intent()
    await desk.fault(courier, op="cancel", mode="error", status=503)
    assert (await desk.intents.cancel_async(await desk.an_intent())).status == "canceled"
    async with desk.http.post(f"{courier}/shipments/o1:north/cancel") as answer:
        assert answer.status == 503


async def test_everything_fails_while_a_fault_for_all_operations_stands(desk: Desk) -> None:
    await desk.fault(op="*", mode="error", status=503, times=3)
    for _ in range(3):
        with pytest.raises(stripe.StripeError):
            await desk.an_intent()
    assert await desk.an_intent()


@pytest.mark.parametrize(
    "wrong",
    [
        {"op": "explode", "mode": "error"},
        {"op": "create", "mode": "lose"},
        {"op": "webhook", "mode": "hang"},
        {"op": "create", "mode": "rate"},
        {"op": "create", "mode": "error", "times": 0},
        {"op": "create", "mode": "error", "tmies": 2},
    ],
)
async def test_a_fault_that_makes_no_sense_is_refused(desk: Desk, wrong: dict[str, Any]) -> None:
    async with desk.http.post(f"{desk.simulators.gateway_url}/_sim/faults", json=wrong) as answer:
        assert answer.status == 400
        assert (await answer.json())["error"]
    assert await desk.control("GET", "faults") == {"faults": []}
