"""Waiting for the gateway's word: webhooks only say when to ask, and what the gateway answers decides."""

import asyncio

import pytest

from domain.keys import Step
from tests.workflows.till import CAPTURABLE, FOREVER, Till

#: A shopper has half an hour to pay (domain.policy).
DEADLINE = 1800

#: Sooner than a payment is looked up without a webhook, which is after five seconds.
BEFORE_THE_FIRST_LOOK = 4


async def test_a_webhook_wakes_the_order_at_once_late_or_twice(till: Till) -> None:
    at_once, late, twice = await till.baskets(3)
    await till.fault(late, "webhook", "delay", delay_ms=500)
    await till.fault(twice, "webhook", "duplicate")
    async with asyncio.timeout(BEFORE_THE_FIRST_LOOK):
        with till.shop.standing_still():
            await till.pay_at_once(at_once, late, twice)
            await asyncio.gather(*(till.shop.started(one.order_id) for one in (at_once, late, twice)))
        await till.confirmed(at_once, late, twice)
    assert len(await till.calls(twice, "capture")) == 1


async def test_a_webhook_that_never_comes_is_not_needed(till: Till) -> None:
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


async def test_stale_and_untrue_events_change_nothing(till: Till) -> None:
    basket = await till.waiting(await till.shop.basket(), "pm_sim_never")
    assert await till.became(await till.event(basket, CAPTURABLE)) == "delivered"
    assert await till.became(await till.event(basket, "payment_intent.payment_failed")) == "delivered"
    assert await till.became(await till.event(basket, CAPTURABLE, amount=1, currency="usd")) == "delivered"
    assert (await till.shop.view(basket.order_id)).payment.status == "PROCESSING"
    await till.authenticate(basket, "success")
    await till.confirmed(basket)
    stale = await till.event(basket, "payment_intent.payment_failed", status="requires_payment_method")
    repeated = await till.event(basket, CAPTURABLE)
    assert (await till.became(stale), await till.became(repeated)) == ("delivered", "ignored")
    await till.settled(basket)
    await till.confirmed(basket)


async def test_an_event_about_another_intent_never_touches_the_order(till: Till) -> None:
    basket, stranger = await till.baskets(2)
    await asyncio.gather(till.waiting(basket, "pm_sim_never"), till.waiting(stranger, "pm_sim_never"))
    reads = len(await till.calls(basket, "read"))
    named = {"order_id": basket.order_id}
    events = [
        await till.event(stranger, metadata=named),
        await till.event(basket, intent="pi_nobody_has_it", metadata=named),
    ]
    assert [await till.became(event) for event in events] == ["ignored", "ignored"]
    assert len(await till.calls(basket, "read")) == reads
    for one in (basket, stranger):
        await till.authenticate(one, "success")
    await till.confirmed(basket, stranger)


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
    basket = await till.shop.basket()
    await till.shop.place(basket, payment_method="pm_card_authenticationRequired")
    await till.undone(basket, reason="PAYMENT_TIMED_OUT")
    cancels = await till.calls(basket, "cancel")
    assert [call["key"] for call in cancels] == [f"{basket.order_id}:abandon_payment:1:cancel"]
    released = next(line for line in await till.shop.timeline(basket.order_id) if line.step == "release_payment")
    assert cancels[0]["at"] <= released.at.timestamp()
    late = f"intents/{(await till.intent(basket))['id']}/authenticate"
    with pytest.raises(AssertionError, match="unexpected_state"):
        await till.shop.sim(late, outcome="success")


async def test_authenticating_a_second_before_the_deadline_is_in_time(till: Till) -> None:
    basket = await till.waiting(await till.shop.basket(), "pm_card_authenticationRequired", "REQUIRES_ACTION")
    await till.forward(basket, DEADLINE - 2)
    await till.authenticate(basket, "success")
    await till.confirmed(basket)


@pytest.mark.parametrize(
    ("op", "outcome"), [("read", "CONFIRMED"), ("cancel", "PAYMENT_TIMED_OUT")], ids=["before", "after"]
)
async def test_at_the_deadline_the_gateway_decides_who_was_first(till: Till, op: str, outcome: str) -> None:
    basket = await till.waiting(await till.shop.basket(), "pm_card_authenticationRequired", "REQUIRES_ACTION")
    await till.forward(basket, DEADLINE - 60)
    await till.fault(basket, "webhook", "lose", times=FOREVER)
    # The deadline's own call stands at the gateway when the shopper authenticates.
    hang = await till.fault(basket, op, "hang")
    passing = asyncio.create_task(till.forward(basket, 120))
    await till.held_up(hang)
    await till.authenticate(basket, "success")
    await till.shop.heal(hang)
    await (till.confirmed(basket) if outcome == "CONFIRMED" else till.undone(basket, reason=outcome))
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
