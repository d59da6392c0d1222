"""Captured money that does not stay: disputed by the shopper's bank, or never there after all."""

from datetime import timedelta

import pytest

from domain.keys import Step
from tests.baskets import Basket
from tests.workflows.refunding import CLOSED, CREATED, refund, sold
from tests.workflows.till import FOREVER, Till


@pytest.fixture
def till(patient_till: Till) -> Till:
    """The payments of a shop whose gateway's clock these tests turn."""
    return patient_till


async def disputed(till: Till) -> Basket:
    basket = await sold(till)
    await till.event(basket, CREATED)
    await till.payment_becomes(basket, "DISPUTED")
    item = await till.parked(basket, "settle_late_money", status="CONFIRMED")
    assert (item.kind, item.error) == ("DECISION", "PaymentDisputed")
    return basket


async def test_a_dispute_is_seen_once_and_nothing_moves_until_it_is_decided(till: Till) -> None:
    """S42: dispute after confirmation; then a refund; then lost, told twice."""
    basket = await disputed(till)
    assert await refund(till, basket) == (409, "disputed")
    for _ in range(2):
        assert await till.became(await till.event(basket, CLOSED, status="lost")) == "delivered"
    view = await till.shop.view(basket.order_id)
    assert (view.status, view.payment.status, view.payment.refunded) == ("CONFIRMED", "DISPUTED", 0)
    assert len(view.needs_review) == 1
    assert await till.money(basket, "disputed") == [5000]
    assert await till.calls(basket, "refund") == []
    assert [await till.shop.pieces(sku) for sku in (basket.a, basket.b)] == [(basket.on_hand - 1, 0)] * 2
    await till.redriven(basket, "settle_late_money", "skip")
    await till.settled(basket)
    assert (await till.shop.view(basket.order_id)).needs_review == []
    assert await refund(till, basket) == (409, "disputed")


async def test_a_dispute_that_is_won_is_over_by_itself(till: Till) -> None:
    basket = await disputed(till)
    await till.event(basket, CLOSED, status="won")
    await till.settled(basket)
    view = await till.shop.view(basket.order_id)
    assert (view.payment.status, view.needs_review) == ("CAPTURED", [])
    await till.confirmed(basket)
    assert (await refund(till, basket))[0] == 202


async def test_a_capture_that_is_contradicted_later_stops_everything_until_a_person_has_looked(till: Till) -> None:
    """S32: success later contradicted."""
    basket = await sold(till)
    await till.force(basket, "requires_payment_method")
    item = await till.parked(basket, "settle_late_money", status="CONFIRMED")
    assert (item.kind, item.error) == ("DECISION", "CaptureContradicted")
    assert (await till.shop.view(basket.order_id)).payment.status == "UNKNOWN"
    assert await refund(till, basket) == (409, "capture-contradicted")
    assert await till.calls(basket, "refund") == await till.calls(basket, "cancel") == []
    assert [one["status"] for one in await till.shop.shipments(basket.order_id)] == ["booked"]
    # The gateway finds the money again, and says so.
    await till.force(basket, "succeeded")
    await till.settled(basket)
    await till.confirmed(basket)
    assert (await till.shop.view(basket.order_id)).payment.status == "CAPTURED"


async def test_old_news_of_a_failure_changes_nothing_of_a_confirmed_order(till: Till) -> None:
    """S18: `failed` is delivered after `succeeded`, and once more an hour after the confirmation."""
    basket = await sold(till)
    for _ in range(2):
        assert await till.became(await till.event(basket, "payment_intent.payment_failed")) == "delivered"
        await till.settled(basket)
        await till.shop.sim("clock", advance_seconds=3600)
    await till.confirmed(basket)


async def test_a_failed_refund_of_an_undone_order_is_owed_until_it_is_paid(till: Till) -> None:
    """S39: the saga's refund is pending; days later it fails, and no webhook tells."""
    basket = await till.shop.basket()
    lost = await till.fault(basket, "webhook", "lose", times=FOREVER)
    await till.waiting(basket, "pm_sim_never")
    await till.force(basket, "succeeded")
    await till.fault(basket, "refund", "pending")
    with till.shop.standing_still():
        assert (await till.shop.cancel(basket.order_id))[0] == 202
        view = await till.shop.ended(basket.order_id)
    assert (view.status, view.payment.status, view.payment.refunded) == ("CANCELLED_COMPENSATED", "REFUND_PENDING", 0)
    await till.stock_is_back(basket)
    await till.decide_refund(basket, "failed")
    await till.environment.fast_forward(await till.late_money(basket), timedelta(days=1, seconds=10))
    item = await till.parked(basket, "settle_late_money", status="CANCELLED_COMPENSATED")
    assert (item.kind, item.error) == ("DECISION", "RefundFailed")
    await till.redriven(basket, "settle_late_money", "retry")
    await till.settled(basket)
    await till.shop.heal(lost)
    view = await till.shop.view(basket.order_id)
    assert (view.payment.status, view.payment.refunded, view.needs_review) == ("REFUNDED", 5000, [])
    assert await till.shop.events(basket.order_id) == ["OrderSubmitted", "OrderCancelled"]


async def test_news_of_the_payment_while_an_order_is_being_confirmed_is_not_lost(till: Till) -> None:
    basket = await till.shop.basket()
    gate = till.shop.gates.hold(basket.order_id, Step.COMMIT_STOCK)
    await till.shop.place_in_real_time(basket)
    await gate.reached()
    assert await till.became(await till.event(basket, CREATED)) == "delivered"
    gate.open()
    await till.payment_becomes(basket, "DISPUTED")
    item = await till.parked(basket, "settle_late_money", status="CONFIRMED")
    assert item.error == "PaymentDisputed"
