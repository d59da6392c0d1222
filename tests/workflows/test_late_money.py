"""Money that moves when nobody waits for it any more, and what long times do to holds and keys."""

import asyncio
from datetime import timedelta

import pytest

from domain.keys import Step
from domain.policy import OrderPolicy
from tests.baskets import Basket
from tests.gates import database_down
from tests.workflows.till import CAPTURABLE, FOREVER, Till

DAY = 24 * 3600


@pytest.fixture
def till(patient_till: Till) -> Till:
    """The payments of a shop whose gateway's clock these tests turn."""
    return patient_till


async def days_go_by(till: Till, days: float) -> None:
    """At the gateway: holds expire, keys are forgotten."""
    await till.shop.sim("clock", advance_seconds=days * DAY)


async def undone(till: Till) -> Basket:
    """An order that was cancelled while its shopper paid; nothing is held for it."""
    basket = await till.waiting(await till.shop.basket(), "pm_card_authenticationRequired", "REQUIRES_ACTION")
    assert (await till.shop.cancel(basket.order_id))[0] == 202
    await till.undone(basket, reason="CANCELLED_BY_CUSTOMER")
    return basket


async def test_money_taken_after_the_undo_is_refunded_once_however_often_it_is_told(till: Till) -> None:
    """S20: three times, one of them two days later."""
    basket = await undone(till)
    await till.force(basket, "succeeded")
    for _ in range(2):
        assert await till.became(await till.event(basket, "payment_intent.succeeded")) == "delivered"
    assert await till.payment_becomes(basket, "REFUNDED")
    await days_go_by(till, 2)
    assert await till.became(await till.event(basket, "payment_intent.succeeded")) == "delivered"
    await till.settled(basket)
    await till.undone(basket, reason="CANCELLED_BY_CUSTOMER")
    assert len(await till.refunds(basket)) == 1
    assert len(await till.calls(basket, "refund")) == 1


async def test_money_held_after_the_undo_is_freed_once(till: Till) -> None:
    """S20: only held."""
    basket = await undone(till)
    await till.force(basket, "requires_capture")
    for _ in range(2):
        assert await till.became(await till.event(basket, CAPTURABLE)) == "delivered"
    await till.settled(basket)
    await till.undone(basket, reason="CANCELLED_BY_CUSTOMER")
    # The first end of the intent was the undo's own.
    assert (await till.sent(basket)).count("payment_intent.canceled") == 2


async def test_late_money_that_cannot_be_given_back_yet_is_shown_and_given_back_when_it_can(till: Till) -> None:
    basket = await undone(till)
    down = await till.fault(basket, "refund", "error", status=502, times=FOREVER)
    with till.shop.standing_still():
        await till.force(basket, "succeeded")
        await till.shop.gates.ended(basket.order_id, Step.SETTLE_LATE_MONEY, 1)
    await till.environment.fast_forward(await till.late_money(basket), timedelta(seconds=120))
    item = await till.parked(basket, "settle_late_money", status="CANCELLED_COMPENSATED")
    assert item.kind == "TECHNICAL"
    await till.shop.heal(down)
    assert await till.shop.redrive(basket.order_id, "settle_late_money", "retry") == 202
    await till.settled(basket)
    await till.undone(basket, reason="CANCELLED_BY_CUSTOMER")


async def test_events_about_a_confirmed_order_move_nothing(till: Till) -> None:
    """S18: late ones, and those that say the opposite."""
    basket = await till.shop.basket()
    await till.pay_at_once(basket)
    await till.confirmed(basket)
    for kind in ("payment_intent.payment_failed", "payment_intent.canceled", "charge.expired"):
        assert await till.became(await till.event(basket, kind)) == "delivered"
    await till.settled(basket)
    await till.confirmed(basket)
    assert await till.calls(basket, "cancel") == await till.calls(basket, "refund") == []


async def test_a_hold_that_expires_before_the_courier_answers_undoes_the_order(till: Till) -> None:
    """S33: after eight days."""
    basket = await till.shop.basket()
    courier = till.shop.gates.hold(basket.order_id, Step.BOOK_SHIPMENT)
    await till.shop.place_in_real_time(basket)
    await courier.reached()
    await days_go_by(till, 8)
    courier.open()
    await till.undone(basket, reason="AUTHORIZATION_EXPIRED")
    assert await till.calls(basket, "capture") == []


async def test_a_capture_is_made_once_when_the_gateway_has_forgotten_its_key(till: Till) -> None:
    basket = await till.shop.basket()
    first = till.shop.gates.hold(basket.order_id, Step.CAPTURE_PAYMENT, times=1)
    await till.shop.place_in_real_time(basket)
    await first.reached()
    await till.fault(basket, "capture", "drop")
    second = till.shop.gates.hold(basket.order_id, Step.CAPTURE_PAYMENT)
    first.open()
    await second.reached()
    await till.captured(basket)
    await days_go_by(till, 25 / 24)
    second.open()
    await till.confirmed(basket)
    assert len(await till.calls(basket, "capture")) == 1


async def test_a_refund_is_made_once_when_the_gateway_has_forgotten_its_key(till: Till) -> None:
    basket = await till.shop.basket()
    lost = await till.fault(basket, "webhook", "lose", times=FOREVER)
    await till.waiting(basket, "pm_sim_never")
    await till.force(basket, "succeeded")
    await till.shop.heal(lost)
    hang = await till.fault(basket, "refund", "hang", times=FOREVER)
    assert (await till.shop.cancel(basket.order_id))[0] == 202
    await till.held_up(hang)
    down = await till.fault(basket, "read", "error", status=502, times=FOREVER)
    await till.shop.gates.ended(basket.order_id, Step.RELEASE_PAYMENT, 1)
    await till.shop.heal(hang)
    await till.parked(basket, "release_payment")
    await days_go_by(till, 3)
    await till.shop.heal(down)
    assert await till.shop.redrive(basket.order_id, "release_payment", "retry") == 202
    await till.undone(basket, reason="CANCELLED_BY_CUSTOMER")
    assert len(await till.refunds(basket)) == 1


async def test_a_payment_that_processes_for_too_long_parks_and_goes_on_with_the_banks_word(till: Till) -> None:
    basket = await till.waiting(await till.shop.basket(), "pm_sim_never")
    await till.forward(basket, 1800)
    looks = till.shop.gates.calls(basket.order_id, Step.ABANDON_PAYMENT)
    await till.forward(basket, 1801)
    item = await till.parked(basket, "await_payment")
    assert (item.kind, item.error) == ("TECHNICAL", "StillProcessing")
    # Every five minutes in the half hour between.
    assert till.shop.gates.calls(basket.order_id, Step.ABANDON_PAYMENT) - looks in {5, 6, 7}
    assert await till.calls(basket, "cancel") == []
    await till.authenticate(basket, "success")
    await till.confirmed(basket)
    assert OrderPolicy().processing_limit_seconds == DAY


async def test_a_gateway_that_refuses_connections_is_waited_for(till: Till) -> None:
    ten_minutes, over_an_hour = await till.baskets(2)
    gates = [till.shop.gates.hold(basket.order_id, Step.AUTHORIZE_PAYMENT) for basket in (ten_minutes, over_an_hour)]
    for basket, gate in zip((ten_minutes, over_an_hour), gates, strict=True):
        await till.shop.place_in_real_time(basket)
        await gate.reached()
    await till.shop.simulators.stop()
    for gate in gates:
        gate.open()
    await asyncio.gather(till.forward(ten_minutes, 600), till.forward(over_an_hour, 3700))
    item = await till.parked(over_an_hour, "authorize_payment")
    assert (item.kind, item.error) == ("TECHNICAL", "NotServed")
    assert (await till.shop.view(ten_minutes.order_id)).status == "AWAITING_PAYMENT"
    await till.shop.simulators.start()
    await asyncio.gather(till.forward(ten_minutes, 120), till.forward(over_an_hour, 900))
    await till.confirmed(ten_minutes, over_an_hour)


async def test_money_that_moves_while_another_undo_is_parked_is_given_back_before_the_order_closes(till: Till) -> None:
    basket = await till.shop.basket()
    outage = till.shop.gates.fail(basket.order_id, Step.RELEASE_STOCK, database_down)
    await till.waiting(basket, "pm_card_authenticationRequired", "REQUIRES_ACTION")
    assert (await till.shop.cancel(basket.order_id))[0] == 202
    await till.parked(basket, "release_stock")
    await till.force(basket, "succeeded")
    assert await till.became(await till.event(basket, "payment_intent.succeeded")) == "delivered"
    end = till.shop.gates.hold(basket.order_id, Step.RECORD_STATUS, item="CANCELLED_COMPENSATED")
    outage.open()
    await till.shop.retry(basket.order_id, "release_stock")
    await end.reached()
    assert len(await till.refunds(basket)) == 1
    end.open()
    await till.shop.ended(basket.order_id)
    await till.undone(basket, reason="CANCELLED_BY_CUSTOMER")
    assert len(await till.refunds(basket)) == 1


async def test_money_that_moves_while_the_end_of_its_order_is_written_is_given_back(till: Till) -> None:
    basket = await till.shop.basket()
    end = till.shop.gates.hold(basket.order_id, Step.RECORD_STATUS, item="CANCELLED_COMPENSATED")
    await till.waiting(basket, "pm_card_authenticationRequired", "REQUIRES_ACTION")
    assert (await till.shop.cancel(basket.order_id))[0] == 202
    await end.reached()
    await till.force(basket, "succeeded")
    assert await till.became(await till.event(basket, "payment_intent.succeeded")) == "delivered"
    end.open()
    await till.shop.ended(basket.order_id)
    await till.undone(basket, reason="CANCELLED_BY_CUSTOMER")
    assert len(await till.refunds(basket)) == 1
