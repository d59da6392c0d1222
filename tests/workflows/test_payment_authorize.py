"""Holding the shopper's money: however the gateway answers, late, twice or never, it is held once or not at all."""

import asyncio
import random
from itertools import pairwise
from typing import Any

import pytest

from domain.errors import CardDeclined, PaymentServiceUnavailable
from domain.keys import Step
from tests.polling import eventually
from tests.workflows.till import CAPTURABLE, FOREVER, Till

#: One lost, late or broken answer each.
MISHAPS: list[dict[str, Any]] = [
    {"mode": "drop"},
    {"mode": "delay", "delay_ms": 700},
    {"mode": "error", "status": 502},
    {"mode": "error", "status": 500},
    {"mode": "answer", "body": "<html>a proxy's page</html>"},
    {"mode": "answer", "body": {"object": "charge", "id": "ch_1", "status": "succeeded"}},
]


@pytest.mark.parametrize(
    ("payment_method", "reason"),
    [
        ("pm_card_chargeDeclined", "CARD_DECLINED"),
        ("pm_card_radarBlock", "FRAUD_BLOCKED"),
        ("pm_nobody_knows", "CARD_DECLINED"),
    ],
)
async def test_a_refused_card_is_asked_once_and_the_order_undone(till: Till, payment_method: str, reason: str) -> None:
    basket = await till.shop.basket()
    await till.shop.place(basket, payment_method=payment_method)
    await till.undone(basket, reason=reason)
    assert len(await till.calls(basket, "confirm")) <= 1
    assert till.shop.gates.calls(basket.order_id, Step.AUTHORIZE_PAYMENT) == 1
    assert till.shop.gates.calls(basket.order_id, Step.BOOK_SHIPMENT) == 0
    assert "not charged" in (await till.shop.view(basket.order_id)).message or payment_method == "pm_nobody_knows"


@pytest.mark.parametrize("op", ["create", "confirm"])
async def test_an_answer_lost_late_or_broken_leaves_one_hold(till: Till, op: str) -> None:
    baskets = await till.baskets(len(MISHAPS))
    for basket, mishap in zip(baskets, MISHAPS, strict=True):
        await till.fault(basket, op, **mishap)
    await till.pay_at_once(*baskets)
    await till.confirmed(*baskets)
    for basket in baskets:
        assert len(await till.shop.intents(basket.order_id)) == 1
        assert till.shop.gates.calls(basket.order_id, Step.AUTHORIZE_PAYMENT) >= 2


async def test_a_lost_answer_is_asked_for_again_under_the_same_key(till: Till) -> None:
    basket = await till.shop.basket()
    await till.fault(basket, "create", "drop")
    await till.fault(basket, "confirm", "error", status=502)
    await till.pay_at_once(basket)
    await till.confirmed(basket)
    for op in ("create", "confirm"):
        keys = await till.keys(basket, op)
        assert (len(keys), len(set(keys))) == (2, 1)


async def test_a_key_in_flight_is_waited_for_and_never_taken_for_a_decline(till: Till) -> None:
    baskets = await till.baskets(2)
    for op in ("create", "confirm", "capture"):
        await till.fault(baskets[0], op, "conflict", times=3)
    # The first call under the key is still being served when the second one comes.
    await till.fault(baskets[1], "create", "delay", delay_ms=900)
    await till.pay_at_once(*baskets)
    await till.confirmed(*baskets)
    assert 409 in [call["status"] for call in await till.calls(baskets[1], "create")]


async def test_a_gateway_that_does_not_serve_three_times_is_asked_again(till: Till) -> None:
    basket = await till.shop.basket()
    for op in ("create", "confirm", "capture"):
        await till.fault(basket, op, "error", status=503, times=3)
    await till.pay_at_once(basket)
    await till.confirmed(basket)
    assert len(set(await till.keys(basket, "confirm"))) == 1


async def test_nobody_calls_before_the_time_that_a_rate_limit_names(till: Till) -> None:
    baskets = await till.baskets(6)
    limit = await till.shop.fault("confirm", "rate", per_second=2, retry_after=1)
    try:
        with till.shop.standing_still():
            await till.pay_at_once(*baskets)
            await asyncio.gather(*(till.shop.started(basket.order_id) for basket in baskets))
        await till.confirmed(*baskets)
    finally:
        await till.shop.heal(limit)
    refused = 0
    for basket in baskets:
        calls = await till.calls(basket)
        for call, following in pairwise(calls):
            if call["status"] == 429:
                refused += 1
                assert following["at"] >= call["at"] + 1
    assert refused


async def test_the_answer_and_the_webhook_race_and_the_money_is_taken_once(till: Till) -> None:
    baskets = await till.baskets(12)
    jitter = random.Random(1)
    for basket in baskets:
        await till.fault(basket, "confirm", "delay", delay_ms=jitter.randrange(50))
        await till.fault(basket, "webhook", "delay", delay_ms=jitter.randrange(50))
    await till.pay_at_once(*baskets)
    await till.confirmed(*baskets)
    for basket in baskets:
        assert len(await till.calls(basket, "capture")) == 1


async def test_a_webhook_that_overtakes_the_open_call_is_not_lost(till: Till) -> None:
    basket = await till.shop.basket()
    await till.fault(basket, "confirm", "delay", delay_ms=300)
    async with asyncio.timeout(4):
        # Sooner than the first look of its own after five seconds: only the webhook can have woken it.
        await till.shop.place_in_real_time(basket)
        await till.confirmed(basket)


async def test_an_error_that_a_key_keeps_for_ever_is_left_behind_by_the_next_key(till: Till) -> None:
    basket = await till.shop.basket()
    for op in ("create", "confirm", "capture"):
        await till.fault(basket, op, "error", status=500)
    await till.pay_at_once(basket)
    await till.confirmed(basket)
    assert till.shop.gates.calls(basket.order_id, Step.PARK_STEP) == 0
    assert len(set(await till.keys(basket, "confirm"))) == 2


async def test_twenty_copies_of_one_event_at_once_are_one_event(till: Till) -> None:
    basket = await till.waiting(await till.shop.basket(), "pm_sim_silent")
    event = {"type": CAPTURABLE, "intent": (await till.intent(basket))["id"], "event_id": f"evt-{basket.order_id}"}
    async with asyncio.timeout(4):
        sent = await asyncio.gather(*(till.shop.sim("events", **event) for _ in range(20)))
        await till.confirmed(basket)
    assert {one["status"] for one in sent} == {200}
    assert len(await till.calls(basket, "capture")) == 1


async def test_a_hold_whose_answer_we_lost_ourselves_is_found_by_looking(till: Till) -> None:
    basket = await till.shop.basket()
    till.shop.gates.fail(
        basket.order_id, Step.AUTHORIZE_PAYMENT, lambda: PaymentServiceUnavailable("lost"), after=True, times=3
    )
    await till.pay_at_once(basket)
    await till.confirmed(basket)
    assert len(await till.calls(basket, "confirm")) == 1


async def test_a_hold_is_freed_when_its_step_ends_as_refused_all_the_same(till: Till) -> None:
    basket = await till.shop.basket()
    till.shop.gates.fail(basket.order_id, Step.AUTHORIZE_PAYMENT, lambda: CardDeclined("after all"), after=True)
    await till.pay_at_once(basket)
    await till.undone(basket, reason="CARD_DECLINED")
    assert (await till.intent(basket))["status"] == "canceled"


async def test_a_call_that_lands_after_the_undo_holds_nothing(till: Till) -> None:
    create, confirm = await till.baskets(2)
    hangs = [
        await till.fault(create, "create", "hang", times=FOREVER),
        await till.fault(confirm, "confirm", "hang", times=FOREVER),
    ]
    await till.pay_at_once(create, confirm)
    for basket, hang in zip((create, confirm), hangs, strict=True):
        await till.held_up(hang)
        assert (await till.shop.cancel(basket.order_id))[0] == 202
    await till.undone(create, confirm, reason="CANCELLED_BY_CUSTOMER")
    await asyncio.gather(*map(till.shop.heal, hangs))
    await eventually(lambda: till.shop.intents(create.order_id))
    for basket in (create, confirm):
        assert {intent["authorized"] for intent in await till.shop.intents(basket.order_id)} == {0}
