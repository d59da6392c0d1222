"""Giving the money back: a hold is cancelled, taken money refunded, once, and never said before the gateway says it."""

import asyncio
from typing import Any

from tests.baskets import Basket
from tests.workflows.till import FOREVER, Till

#: What can become of one answer of each kind of call, and with how many keys the gateway is asked then.
MISHAPS: list[tuple[str, dict[str, Any], int]] = [
    ("cancel", {"mode": "drop"}, 1),
    ("cancel", {"mode": "error", "status": 502}, 1),
    ("cancel", {"mode": "error", "status": 500}, 2),
    ("cancel", {"mode": "conflict", "times": 2}, 1),
    ("refund", {"mode": "drop"}, 1),
    ("refund", {"mode": "delay", "delay_ms": 700}, 1),
    ("refund", {"mode": "error", "status": 502}, 1),
    ("refund", {"mode": "error", "status": 500}, 2),
    ("refund", {"mode": "error", "status": 503, "times": 3}, 1),
    ("refund", {"mode": "answer", "body": "<html>a proxy's page</html>"}, 1),
]


async def unseen(till: Till, basket: Basket, taken: bool) -> Basket:
    """An order that waits in real time, whose money is held or taken at the gateway, and that has not heard of it."""
    lost = await till.fault(basket, "webhook", "lose", times=FOREVER)
    await till.waiting(basket, "pm_sim_never" if taken else "pm_sim_silent")
    if taken:
        await till.force(basket, "succeeded")
    await till.shop.heal(lost)
    return basket


async def cancel(till: Till, *baskets: Basket) -> None:
    """The shoppers cancel."""
    answers = await asyncio.gather(*(till.shop.cancel(basket.order_id) for basket in baskets))
    assert {status for status, _ in answers} == {202}


async def test_an_answer_lost_late_refused_or_broken_gives_the_money_back_once(till: Till) -> None:
    baskets = await till.baskets(len(MISHAPS))
    taken = [op == "refund" for op, _, _ in MISHAPS]
    await asyncio.gather(*(unseen(till, *one) for one in zip(baskets, taken, strict=True)))
    for basket, (op, mishap, _) in zip(baskets, MISHAPS, strict=True):
        await till.fault(basket, op, **mishap)
    await cancel(till, *baskets)
    # What the gateway does not serve is waited for in the order's own time.
    await asyncio.gather(*(till.forward(basket, 60) for basket in baskets))
    await till.undone(*baskets, reason="CANCELLED_BY_CUSTOMER")
    for basket, (op, mishap, keys) in zip(baskets, MISHAPS, strict=True):
        assert len(set(await till.keys(basket, op))) == keys, (op, mishap)
        assert len(await till.refunds(basket)) == (1 if op == "refund" else 0)
        told = (await till.shop.view(basket.order_id)).payment.status
        assert told == ("REFUNDED" if op == "refund" else "VOIDED"), (op, mishap)


async def test_money_that_is_taken_while_its_hold_is_being_cancelled_is_refunded(till: Till) -> None:
    basket = await unseen(till, await till.shop.basket(), False)
    hang = await till.fault(basket, "cancel", "hang", times=FOREVER)
    await cancel(till, basket)
    await till.held_up(hang)
    await till.force(basket, "succeeded")
    await till.shop.heal(hang)
    await till.undone(basket, reason="CANCELLED_BY_CUSTOMER")
    assert [refund["status"] for refund in await till.refunds(basket)] == ["succeeded"]


async def test_a_payment_that_still_processes_is_given_back_when_it_has_become_something(till: Till) -> None:
    basket = await till.waiting(await till.shop.basket(), "pm_sim_never")
    await cancel(till, basket)
    item = await till.parked(basket, "release_payment")
    assert item.kind == "TECHNICAL"
    await till.authenticate(basket, "success")
    await till.undone(basket, reason="CANCELLED_BY_CUSTOMER")
    assert (await till.intent(basket))["status"] == "canceled"


async def test_a_refund_that_fails_for_ever_parks_alone_and_is_made_once_when_redriven_twice(till: Till) -> None:
    """S70: everything else is given back meanwhile."""
    basket = await unseen(till, await till.shop.basket(), True)
    down = await till.fault(basket, "refund", "error", status=500, times=FOREVER)
    await cancel(till, basket)
    item = await till.parked(basket, "release_payment")
    assert (item.kind, item.error) == ("TECHNICAL", "PaymentServiceUnavailable")
    view = await till.shop.view(basket.order_id)
    assert view.payment.status == "CAPTURED"
    await till.stock_is_back(basket)
    await till.shop.heal(down)
    first = await till.shop.redrive(basket.order_id, "release_payment", "retry")
    second = await till.shop.redrive(basket.order_id, "release_payment", "retry")
    assert (first, second) == (202, 409)
    await till.undone(basket, reason="CANCELLED_BY_CUSTOMER")
    assert len(await till.refunds(basket)) == 1


async def test_a_refund_is_pending_until_the_bank_says_so(till: Till) -> None:
    basket = await unseen(till, await till.shop.basket(), True)
    await till.fault(basket, "refund", "pending")
    await cancel(till, basket)
    view = await till.shop.ended(basket.order_id)
    assert (view.status, view.payment.status, view.payment.refunded) == ("CANCELLED_COMPENSATED", "REFUND_PENDING", 0)
    assert "not confirmed by the bank" in view.message
    await till.decide_refund(basket, "succeeded")
    assert await till.payment_becomes(basket, "REFUNDED")
    await till.undone(basket, reason="CANCELLED_BY_CUSTOMER")


async def test_a_refund_that_the_bank_fails_later_waits_for_a_person_and_is_made_again(till: Till) -> None:
    basket = await unseen(till, await till.shop.basket(), True)
    await till.fault(basket, "refund", "pending")
    await cancel(till, basket)
    await till.shop.ended(basket.order_id)
    await till.decide_refund(basket, "failed")
    item = await till.parked(basket, "settle_late_money", status="CANCELLED_COMPENSATED")
    assert (item.kind, item.error) == ("DECISION", "RefundFailed")
    assert "you get the money back" in (await till.shop.view(basket.order_id)).message
    assert (await till.intent(basket))["refunded"] == 0
    assert await till.shop.redrive(basket.order_id, "settle_late_money", "retry") == 202
    assert await till.payment_becomes(basket, "REFUNDED")
    await till.settled(basket)
    await till.undone(basket, reason="CANCELLED_BY_CUSTOMER")
    assert sorted(refund["status"] for refund in await till.refunds(basket)) == ["failed", "succeeded"]


async def test_an_undone_order_cannot_be_captured_any_more(till: Till) -> None:
    """S40: cancelled while its money was held."""
    basket = await unseen(till, await till.shop.basket(), False)
    await cancel(till, basket)
    await till.undone(basket, reason="CANCELLED_BY_CUSTOMER")
    assert await till.shop.redrive(basket.order_id, "capture_payment", "retry") == 409
    assert await till.calls(basket, "capture") == []
