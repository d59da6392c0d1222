"""Holding the shopper's money: however the gateway answers, late, twice or never, it is held once or not at all."""

import asyncio
import random
from itertools import pairwise
from typing import Any

import pytest

from domain.errors import CardDeclined, PaymentServiceUnavailable
from domain.keys import Step
from tests.polling import eventually
from tests.workflows.till import FOREVER, Till

#: What can become of one answer, and with how many keys the gateway is asked then. Only a kept 500 needs a second one.
MISHAPS: list[tuple[dict[str, Any], int]] = [
    ({"mode": "drop"}, 1),
    ({"mode": "delay", "delay_ms": 700}, 1),
    ({"mode": "error", "status": 502}, 1),
    ({"mode": "error", "status": 503, "times": 3}, 1),
    ({"mode": "conflict", "times": 3}, 1),
    ({"mode": "answer", "body": "<html>a proxy's page</html>"}, 1),
    ({"mode": "answer", "body": {"object": "charge", "id": "ch_1", "status": "succeeded"}}, 1),
    ({"mode": "error", "status": 500}, 2),
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
    """S77, S94: a decline is final at the first call."""
    basket = await till.shop.basket()
    await till.shop.place(basket, payment_method=payment_method)
    await till.undone(basket, reason=reason)
    assert len(await till.calls(basket, "confirm")) <= 1
    assert till.shop.gates.calls(basket.order_id, Step.AUTHORIZE_PAYMENT) == 1
    assert till.shop.gates.calls(basket.order_id, Step.BOOK_SHIPMENT) == 0
    assert "not charged" in (await till.shop.view(basket.order_id)).message or payment_method == "pm_nobody_knows"


async def test_an_answer_lost_late_refused_or_broken_holds_and_takes_the_money_once(till: Till) -> None:
    """S05, S77: what is unknown is looked up, a 503 is waited for, and an answer that is no answer asked for again."""
    baskets = await till.baskets(len(MISHAPS))
    for basket, (mishap, _) in zip(baskets, MISHAPS, strict=True):
        for op in ("create", "confirm", "capture"):
            await till.fault(basket, op, **mishap)
    await till.pay_at_once(*baskets)
    await till.confirmed(*baskets)
    for basket, (mishap, keys) in zip(baskets, MISHAPS, strict=True):
        for op in ("create", "confirm", "capture"):
            assert len(set(await till.keys(basket, op))) == keys, (mishap, op)
        for step in (Step.AUTHORIZE_PAYMENT, Step.CAPTURE_PAYMENT):
            assert till.shop.gates.calls(basket.order_id, step) >= 2, (mishap, step)
        assert till.shop.gates.calls(basket.order_id, Step.PARK_STEP) == 0, mishap
        assert len(await till.shop.intents(basket.order_id)) == 1


async def test_a_call_whose_key_is_still_in_flight_waits_for_its_answer(till: Till) -> None:
    """S09: the 409 is no decline, and nothing is compensated."""
    basket = await till.shop.basket()
    await till.fault(basket, "create", "delay", delay_ms=900)
    await till.pay_at_once(basket)
    await till.confirmed(basket)
    calls = await till.calls(basket, "create")
    assert 409 in [call["status"] for call in calls]
    assert len({call["key"] for call in calls}) == 1


async def test_nobody_calls_before_the_time_that_a_rate_limit_names(till: Till) -> None:
    """S10: six orders."""
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
    """S01: eight times."""
    baskets = await till.baskets(8)
    jitter = random.Random(1)
    for basket in baskets:
        await till.fault(basket, "confirm", "delay", delay_ms=jitter.randrange(50))
        await till.fault(basket, "webhook", "delay", delay_ms=jitter.randrange(50))
    await till.pay_at_once(*baskets)
    await till.confirmed(*baskets)
    for basket in baskets:
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
    """S65: the hold stands at the gateway, and our step says no for good."""
    saving, again = await till.baskets(2)
    for basket in (saving, again):
        await till.fault(basket, "webhook", "lose", times=FOREVER)
    fail, step = till.shop.gates.fail, Step.AUTHORIZE_PAYMENT

    def lost() -> Exception:
        fail(again.order_id, step, lambda: CardDeclined("after all"))
        return PaymentServiceUnavailable("lost")

    # The effect is there: saving its result fails for good, or the attempt after a lost answer does.
    fail(saving.order_id, step, lambda: CardDeclined("after all"), after=True)
    fail(again.order_id, step, lost, after=True, times=1)
    await till.pay_at_once(saving, again)
    await till.undone(saving, again, reason="CARD_DECLINED")
    for basket in (saving, again):
        assert (await till.intent(basket))["status"] == "canceled"
        assert len(await till.calls(basket, "confirm")) == 1


async def test_a_call_that_lands_after_the_undo_holds_nothing(till: Till) -> None:
    """S63: the gateway hears of it when the order is undone."""
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
