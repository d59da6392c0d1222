"""An operator gives captured money back: once, never more than was captured, and told only when it has arrived."""

import asyncio
from datetime import timedelta

import pytest

from domain.keys import Step
from tests.baskets import Basket, fresh
from tests.workflows.refunding import over, refund, sold
from tests.workflows.till import FOREVER, Till
from workflows.names import refund_workflow_id

DAY = 24 * 3600


@pytest.fixture
def till(patient_till: Till) -> Till:
    """The payments of a shop whose gateway's clock these tests turn."""
    return patient_till


async def refunded(till: Till, basket: Basket) -> int:
    return int((await till.intent(basket))["refunded"])


async def test_a_full_refund_makes_the_order_refunded_and_is_told_once(till: Till) -> None:
    basket, key = await sold(till), fresh("refund")
    for _ in range(2):
        assert await refund(till, basket, key=key) == (202, "")
    await over(till, basket, key)
    view = await till.shop.view(basket.order_id)
    assert (view.status, view.payment.status, view.payment.refunded) == ("REFUNDED", "REFUNDED", 5000)
    assert (await till.shop.events(basket.order_id))[1:] == ["OrderConfirmed", "PaymentRefunded", "OrderRefunded"]
    assert await refunded(till, basket) == 5000
    assert len(await till.calls(basket, "refund")) == 1
    lines = [line for line in await till.shop.timeline(basket.order_id) if line.step == "refund_payment"]
    assert [(line.state, line.actor) for line in lines] == [("intended", "olga"), ("done", "system")]
    assert lines[0].reason == "a broken cup"


async def test_partial_refunds_leave_the_order_confirmed_until_all_is_back(till: Till) -> None:
    basket = await sold(till)
    for number, amount in enumerate((1000, 1500)):
        key = f"part-{number}"
        assert await refund(till, basket, amount, key=key) == (202, "")
        await over(till, basket, key)
    view = await till.shop.view(basket.order_id)
    assert (view.status, view.payment.status, view.payment.refunded) == ("CONFIRMED", "CAPTURED", 2500)
    assert await refund(till, basket, 2501) == (422, "above-rest")
    assert await refund(till, basket, key="rest") == (202, "")
    await over(till, basket, "rest")
    assert (await till.shop.view(basket.order_id)).status == "REFUNDED"
    assert await refunded(till, basket) == 5000
    assert await refund(till, basket, 1) == (422, "above-rest")


async def test_of_two_refunds_at_once_that_exceed_the_payment_one_is_taken(till: Till) -> None:
    """S36: concurrent refunds under one cap."""
    basket = await sold(till)
    answers = await asyncio.gather(*(refund(till, basket, 3000, key=f"at-once-{number}") for number in range(2)))
    assert sorted(status for status, _ in answers)[0] == 202
    assert {kind for status, kind in answers if status != 202} <= {"refund-open", "above-rest"}
    assert [status for status, _ in answers].count(202) == 1
    taken = next(number for number, (status, _) in enumerate(answers) if status == 202)
    await over(till, basket, f"at-once-{taken}")
    assert await refunded(till, basket) == 3000


async def test_of_two_full_refunds_at_once_the_money_goes_back_once(till: Till) -> None:
    """S36: a second full refund races the first."""
    basket = await sold(till)
    answers = await asyncio.gather(*(refund(till, basket, key=f"full-{number}") for number in range(3)))
    assert [status for status, _ in answers].count(202) == 1
    taken = next(number for number, (status, _) in enumerate(answers) if status == 202)
    await over(till, basket, f"full-{taken}")
    assert await refunded(till, basket) == 5000
    assert (await till.shop.events(basket.order_id)).count("OrderRefunded") == 1


async def test_a_key_stands_for_one_refund(till: Till) -> None:
    basket = await sold(till)
    assert await refund(till, basket, 1000, key="one/key") == (202, "")
    assert await refund(till, basket, 1200, key="one/key") == (422, "key-reused")
    assert await refund(till, basket, 1000, key="one/key") == (202, "")
    await till.payment_becomes(basket, "CAPTURED")
    assert len(await till.refunds(basket)) == 1


async def test_an_order_that_is_not_confirmed_has_nothing_to_refund(till: Till) -> None:
    basket = await till.waiting(await till.shop.basket(), "pm_card_authenticationRequired", "REQUIRES_ACTION")
    assert await refund(till, basket, key="too-early") == (409, "not-confirmed")
    assert (await till.shop.cancel(basket.order_id))[0] == 202
    await till.undone(basket, reason="CANCELLED_BY_CUSTOMER")
    assert await refund(till, basket) == (409, "not-confirmed")


async def test_a_refund_whose_answer_is_lost_is_found_and_made_once(till: Till) -> None:
    """S05, for a refund: a time-out is no failure."""
    basket = await sold(till)
    await till.fault(basket, "refund", "drop", times=2)
    assert await refund(till, basket, key="lost") == (202, "")
    await over(till, basket, "lost")
    assert await refunded(till, basket) == 5000
    assert len(await till.refunds(basket)) == 1


async def test_a_refund_that_is_retried_days_later_is_found_by_our_own_reference(till: Till) -> None:
    """S12, S15: the gateway has forgotten its keys; the refund was committed, its answer lost; retried twice."""
    basket = await sold(till)
    first = till.shop.gates.hold(basket.order_id, Step.REFUND_PAYMENT, times=1)
    with till.shop.standing_still():
        assert await refund(till, basket, key="later") == (202, "")
        await first.reached()
    lost = await till.fault(basket, "refund", "drop", times=FOREVER)
    following = till.shop.gates.hold(basket.order_id, Step.REFUND_PAYMENT)
    first.open()
    await following.reached()
    assert len(await till.refunds(basket)) == 1
    down = await till.fault(basket, "read", "error", status=502, times=FOREVER)
    following.open()
    handle = till.shop.client.get_workflow_handle(refund_workflow_id(basket.order_id, "later"))
    await till.environment.fast_forward(handle, timedelta(seconds=120))
    item = await till.parked(basket, "refund_payment", status="CONFIRMED")
    assert (item.kind, item.item) == ("TECHNICAL", "later")
    await till.shop.sim("clock", advance_seconds=3 * DAY)
    await till.shop.heal(down)
    await till.shop.heal(lost)
    await till.shop.retry(basket.order_id, "refund_payment")
    await over(till, basket, "later")
    assert await till.shop.redrive(basket.order_id, "refund_payment", "retry") == 409
    view = await till.shop.view(basket.order_id)
    assert (view.status, view.needs_review) == ("REFUNDED", [])
    assert await refunded(till, basket) == 5000
    assert len(await till.refunds(basket)) == 1


async def test_a_pending_refund_is_told_when_it_has_arrived(till: Till) -> None:
    basket = await sold(till)
    await till.fault(basket, "refund", "pending")
    with till.shop.standing_still():
        assert await refund(till, basket, key="slow") == (202, "")
        await till.payment_becomes(basket, "REFUND_PENDING")
        assert (await till.shop.view(basket.order_id)).status == "CONFIRMED"
        assert await refund(till, basket, 100) == (409, "refund-open")
        await till.decide_refund(basket, "succeeded")
        await over(till, basket, "slow")
    assert (await till.shop.view(basket.order_id)).status == "REFUNDED"


async def test_a_pending_refund_whose_webhook_is_lost_is_asked_after_each_day(till: Till) -> None:
    basket = await sold(till)
    await till.fault(basket, "refund", "pending")
    with till.shop.standing_still():
        assert await refund(till, basket, key="quiet") == (202, "")
        await till.payment_becomes(basket, "REFUND_PENDING")
    await till.fault(basket, "webhook", "lose", times=FOREVER)
    await till.decide_refund(basket, "succeeded")
    handle = till.shop.client.get_workflow_handle(refund_workflow_id(basket.order_id, "quiet"))
    await till.environment.fast_forward(handle, timedelta(days=1, seconds=10))
    await handle.result()
    assert (await till.shop.view(basket.order_id)).status == "REFUNDED"


async def test_a_refund_that_the_bank_sends_back_waits_for_an_operator_who_asks_anew(till: Till) -> None:
    basket = await sold(till)
    await till.fault(basket, "refund", "pending")
    with till.shop.standing_still():
        assert await refund(till, basket, key="back") == (202, "")
        await till.payment_becomes(basket, "REFUND_PENDING")
        await till.decide_refund(basket, "failed")
        item = await till.parked(basket, "refund_payment", status="CONFIRMED")
        assert (item.kind, item.error) == ("DECISION", "RefundFailed")
        await till.redriven(basket, "refund_payment", "retry")
        await over(till, basket, "back")
    view = await till.shop.view(basket.order_id)
    assert (view.status, view.payment.refunded, view.needs_review) == ("REFUNDED", 5000, [])
    assert await refunded(till, basket) == 5000


async def test_a_failed_refund_that_an_operator_skips_is_waived(till: Till) -> None:
    basket = await sold(till)
    await till.fault(basket, "refund", "pending")
    with till.shop.standing_still():
        assert await refund(till, basket, 1000, key="skipped") == (202, "")
        await till.payment_becomes(basket, "REFUND_PENDING")
        await till.decide_refund(basket, "failed")
        await till.parked(basket, "refund_payment", status="CONFIRMED")
        await till.redriven(basket, "refund_payment", "skip")
        await over(till, basket, "skipped")
    view = await till.shop.view(basket.order_id)
    assert (view.status, view.payment.refunded, view.needs_review) == ("CONFIRMED", 0, [])
    assert "waived" in [line.state for line in await till.shop.timeline(basket.order_id)]
    await till.confirmed(basket)
