"""Taking the money, the pivot: what is unknown is looked up, and only a certain no leads back."""

import asyncio

import pytest

from domain.errors import PaymentServiceUnavailable
from domain.keys import Step
from tests.baskets import Basket
from tests.gates import Gate
from tests.workflows.till import FOREVER, Till
from workflows.options import CAPTURE_TRIES


def unavailable() -> Exception:
    return PaymentServiceUnavailable("lost")


async def before_the_capture(till: Till, basket: Basket) -> Gate:
    """The order in real time: its money is held, its parcel booked, and the capture stands at this gate."""
    gate = till.shop.gates.hold(basket.order_id, Step.CAPTURE_PAYMENT)
    await till.shop.place_in_real_time(basket)
    await gate.reached()
    return gate


async def test_a_refused_capture_undoes_the_order_and_tells_nobody_that_it_was_sold(till: Till) -> None:
    basket = await till.shop.basket()
    await till.fault(basket, "capture", "error", status=402)
    await till.pay_at_once(basket)
    await till.undone(basket, reason="CAPTURE_FAILED")
    assert (await till.intent(basket))["status"] == "canceled"


async def test_a_hold_that_somebody_else_ended_undoes_the_order(till: Till) -> None:
    basket = await till.shop.basket()
    gate = await before_the_capture(till, basket)
    await till.cancel_at_gateway(basket)
    gate.open()
    await till.undone(basket, reason="AUTHORIZATION_EXPIRED")
    assert await till.calls(basket, "capture") == []


async def test_money_that_somebody_else_took_in_full_confirms_the_order(till: Till) -> None:
    basket = await till.shop.basket()
    gate = await before_the_capture(till, basket)
    await till.force(basket, "succeeded")
    gate.open()
    await till.confirmed(basket)
    assert await till.calls(basket, "capture") == []


@pytest.mark.parametrize("action", ["retry", "compensate"])
async def test_money_that_somebody_else_took_in_part_is_for_a_person_to_decide(till: Till, action: str) -> None:
    basket = await till.shop.basket()
    gate = await before_the_capture(till, basket)
    await till.take_at_gateway(basket, 1000)
    gate.open()
    item = await till.parked(basket, "capture_payment")
    assert (item.kind, item.error) == ("DECISION", "PaymentMismatch")
    assert await till.shop.redrive(basket.order_id, "capture_payment", action) == 202
    if action == "retry":
        # It is looked at, and the same again.
        await till.redriven(basket, "capture_payment", "compensate")
    await till.undone(basket, reason="CANCELLED_BY_OPERATOR")
    assert (await till.intent(basket))["refunded"] == 1000


async def test_when_tries_run_out_the_look_up_decides(till: Till) -> None:
    taken, not_taken = await till.baskets(2)
    for basket, after in ((taken, True), (not_taken, False)):
        till.shop.gates.fail(basket.order_id, Step.CAPTURE_PAYMENT, unavailable, after=after, times=CAPTURE_TRIES)
    await till.pay_at_once(taken, not_taken)
    await till.confirmed(taken, not_taken)
    assert [await till.shop.reviews(basket.order_id) for basket in (taken, not_taken)] == [[], []]
    assert await till.keys(taken, "capture") == [f"{taken.order_id}:capture_payment:1:capture"]
    # Certainly not done: the next series asks under the next key.
    assert await till.keys(not_taken, "capture") == [f"{not_taken.order_id}:capture_payment:2:capture"]


async def test_a_capture_that_stays_unknown_parks_and_cannot_be_compensated(till: Till) -> None:
    basket = await till.shop.basket()
    down = await captured_unseen(till, basket)
    item = await till.parked(basket, "capture_payment")
    assert (item.kind, item.error) == ("TECHNICAL", "PaymentServiceUnavailable")
    assert await till.shop.redrive(basket.order_id, "capture_payment", "compensate") == 409
    assert await till.shop.redrive(basket.order_id, "capture_payment", "skip") == 409
    assert (await till.shop.cancel(basket.order_id))[0] == 409
    await till.shop.saga(basket.order_id).cancel()
    assert (await till.shop.view(basket.order_id)).status == "NEEDS_REVIEW"
    await till.shop.heal(down)
    await till.forward(basket, 900)
    await till.confirmed(basket)
    assert len(set(await till.keys(basket, "capture"))) == 1


async def captured_unseen(till: Till, basket: Basket) -> str:
    """The capture lands when nobody listens to its call any more, and the gateway cannot be read; the fault's id."""
    hang = await till.fault(basket, "capture", "hang", times=FOREVER)
    await till.shop.place_in_real_time(basket)
    await till.held_up(hang)
    down = await till.fault(basket, "read", "error", status=502, times=FOREVER)
    await till.shop.gates.ended(basket.order_id, Step.CAPTURE_PAYMENT, 1)
    await till.shop.heal(hang)
    return down


async def test_a_capture_that_fails_for_ever_parks_and_can_be_compensated_or_heals(till: Till) -> None:
    given_up, healed = await till.baskets(2)
    gates = [till.shop.gates.fail(one.order_id, Step.CAPTURE_PAYMENT, unavailable) for one in (given_up, healed)]
    await asyncio.gather(*(till.shop.place_in_real_time(basket) for basket in (given_up, healed)))
    for basket in (given_up, healed):
        item = await till.parked(basket, "capture_payment")
        assert (item.kind, item.error) == ("TECHNICAL", "PaymentServiceUnavailable")
    assert await till.shop.redrive(given_up.order_id, "capture_payment", "compensate") == 202
    await till.undone(given_up, reason="CANCELLED_BY_OPERATOR")
    gates[1].open()
    await till.forward(healed, 900)
    await till.confirmed(healed)
