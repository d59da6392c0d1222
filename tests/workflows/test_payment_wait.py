"""Waiting for the gateway's word: webhooks only say when to ask, and what the gateway answers decides."""

import asyncio

import pytest

from domain.keys import Step
from tests.workflows.till import FOREVER, Till

#: A shopper has half an hour to pay (domain.policy).
DEADLINE = 1800


async def test_a_webhook_that_never_comes_is_not_needed(till: Till) -> None:
    """S21: a lost webhook is found by asking."""
    silent, lost = await till.baskets(2)
    await till.fault(lost, "webhook", "lose", times=FOREVER)
    await asyncio.gather(
        till.shop.place(silent, payment_method="pm_sim_silent"),
        till.shop.place(lost),
    )
    await till.confirmed(silent, lost)


async def test_a_silent_gateway_at_the_deadline_parks_the_order_and_heals_by_itself(till: Till) -> None:
    basket = await till.shop.basket()
    down = await till.fault(basket, "read", "error", status=502, times=FOREVER)
    await till.waiting(basket, "pm_sim_silent")
    await till.forward(basket, DEADLINE)
    item = await till.parked(basket, "await_payment")
    assert (item.kind, item.error) == ("TECHNICAL", "PaymentServiceUnavailable")
    assert await till.calls(basket, "cancel") == []
    assert await till.shop.redrive(basket.order_id, "await_payment", "compensate") == 409
    await till.shop.heal(down)
    await till.forward(basket, 900)
    await till.confirmed(basket)


async def test_an_event_wakes_a_parked_wait(till: Till) -> None:
    basket = await till.shop.basket()
    down = await till.fault(basket, "read", "error", status=502, times=FOREVER)
    await till.waiting(basket, "pm_sim_silent")
    await till.forward(basket, DEADLINE)
    await till.parked(basket, "await_payment")
    await till.shop.heal(down)
    await till.event(basket)
    await till.confirmed(basket)


async def test_the_shopper_authenticates_and_the_order_goes_on(till: Till) -> None:
    basket = await till.waiting(await till.shop.basket(), "pm_card_authenticationRequired", "REQUIRES_ACTION")
    view = await till.shop.view(basket.order_id)
    assert view.status == "AWAITING_PAYMENT"
    assert view.payment.next_action is not None
    assert "confirm the payment" in view.message
    await till.authenticate(basket, "success")
    await till.confirmed(basket)
    assert (await till.shop.view(basket.order_id)).payment.next_action is None


async def test_a_failed_authentication_undoes_the_order(till: Till) -> None:
    basket = await till.waiting(await till.shop.basket(), "pm_card_authenticationRequired", "REQUIRES_ACTION")
    await till.authenticate(basket, "fail")
    await till.undone(basket, reason="AUTHENTICATION_FAILED")
    assert len(await till.calls(basket, "confirm")) == 1


async def test_an_abandoned_authentication_ends_at_the_deadline_at_the_gateway_first(till: Till) -> None:
    """S100: never; a later yes is impossible."""
    basket = await till.shop.basket()
    await till.shop.place(basket, payment_method="pm_card_authenticationRequired")
    await till.undone(basket, reason="PAYMENT_TIMED_OUT")
    cancels = await till.calls(basket, "cancel")
    assert [call["key"] for call in cancels] == [f"{basket.order_id}:abandon_payment:1:cancel"]
    released = next(line for line in await till.shop.timeline(basket.order_id) if line.step == "release_payment")
    assert cancels[0]["at"] <= released.at.timestamp()
    with pytest.raises(AssertionError, match="unexpected_state"):
        await till.authenticate(basket, "success")


async def test_authenticating_shortly_before_the_deadline_is_in_time(till: Till) -> None:
    """S100: shortly before."""
    basket = await till.waiting(await till.shop.basket(), "pm_card_authenticationRequired", "REQUIRES_ACTION")
    await till.forward(basket, DEADLINE - 10)
    await till.authenticate(basket, "success")
    await till.confirmed(basket)


@pytest.mark.parametrize("too_late", [False, True])
async def test_at_the_deadline_the_gateway_decides_who_was_first(till: Till, too_late: bool) -> None:
    """S100: at the very instant, and just after it."""
    basket = await till.waiting(await till.shop.basket(), "pm_card_authenticationRequired", "REQUIRES_ACTION")
    await till.fault(basket, "webhook", "lose", times=FOREVER)
    # The saga has decided that time is over; the gateway has heard of it, or not yet.
    gate = till.shop.gates.hold(basket.order_id, Step.ABANDON_PAYMENT, after=too_late)
    passing = asyncio.create_task(till.forward(basket, DEADLINE + 60))
    await gate.reached()
    if too_late:
        with pytest.raises(AssertionError, match="unexpected_state"):
            await till.authenticate(basket, "success")
    else:
        await till.authenticate(basket, "success")
    gate.open()
    await (till.undone(basket, reason="PAYMENT_TIMED_OUT") if too_late else till.confirmed(basket))
    await passing


async def test_somebody_else_takes_or_ends_the_payment_while_we_wait(till: Till) -> None:
    taken, ended = await till.baskets(2)
    await asyncio.gather(
        till.waiting(taken, "pm_sim_never"),
        till.waiting(ended, "pm_card_authenticationRequired", "REQUIRES_ACTION"),
    )
    await till.force(taken, "succeeded")
    await till.cancel_at_gateway(ended)
    await till.confirmed(taken)
    await till.undone(ended, reason="AUTHORIZATION_EXPIRED")
    assert await till.calls(taken, "capture") == []
    assert till.shop.gates.calls(taken.order_id, Step.CAPTURE_PAYMENT) == 1
