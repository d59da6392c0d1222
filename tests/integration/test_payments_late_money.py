"""The deadline, and money that moves after an order has ended."""

import asyncio

import pytest

from adapters.orders import read_timeline
from domain.errors import PaymentMismatch, PaymentServiceUnavailable
from domain.order import CancelReason, PaymentStatus
from tests.integration.till import DUE, Till


async def an_undone_order(till: Till) -> tuple[str, str]:
    """An order whose hold was voided and that is closed: its id and its intent's."""
    order_id = await till.a_held_order()
    view = await till.release(order_id)
    await till.close_undone(order_id)
    assert view.intent_id is not None
    return order_id, view.intent_id


async def test_at_the_deadline_a_payment_that_waits_for_the_shopper_is_ended_at_the_gateway(till: Till) -> None:
    order_id = await till.order("pm_card_authenticationRequired")
    await till.authorize(order_id)
    view = await till.abandon(order_id)
    assert (view.status, view.reason) == (PaymentStatus.VOIDED, None)
    assert (await till.at_gateway(order_id))["status"] == "canceled"


async def test_the_timeline_tells_that_the_deadline_ended_the_payment_even_when_the_answer_was_lost(till: Till) -> None:
    order_id = await till.order("pm_card_authenticationRequired")
    await till.authorize(order_id)
    await till.desk.fault(op="cancel", mode="drop")
    with pytest.raises(PaymentServiceUnavailable):
        await till.abandon(order_id)
    assert ("abandon_payment", "intended") in await till.stamps(order_id)
    assert (await till.abandon(order_id)).status is PaymentStatus.VOIDED
    timeline = await read_timeline(till.database, order_id) or []
    assert [(line.state, line.reason) for line in timeline if line.step == "abandon_payment"] == [
        ("intended", None),
        ("unknown", "PaymentServiceUnavailable"),
        ("done", "PAYMENT_TIMED_OUT"),
    ]


async def test_at_the_deadline_a_hold_is_left_as_it_is(till: Till) -> None:
    order_id = await till.a_held_order()
    assert (await till.abandon(order_id)).status is PaymentStatus.AUTHORIZED
    assert await till.held(order_id) == DUE


async def test_at_the_deadline_a_processing_payment_is_left_as_it_is(till: Till) -> None:
    order_id = await till.order("pm_sim_never")
    await till.authorize(order_id)
    assert (await till.abandon(order_id)).status is PaymentStatus.PROCESSING
    assert await till.calls(order_id, "cancel") == []


async def test_a_payment_without_a_webhook_is_found_by_reading_it(till: Till) -> None:
    order_id = await till.order("pm_sim_silent")
    await till.authorize(order_id)
    await till.read_until(order_id, PaymentStatus.AUTHORIZED)
    assert (await till.abandon(order_id)).status is PaymentStatus.AUTHORIZED


async def test_at_the_deadline_a_decline_keeps_its_reason(till: Till) -> None:
    order_id = await till.order("pm_card_authenticationRequired")
    view = await till.authorize(order_id)
    await till.desk.control("POST", f"intents/{view.intent_id}/authenticate", outcome="fail")
    view = await till.abandon(order_id)
    assert (view.status, view.reason) == (PaymentStatus.DECLINED, CancelReason.AUTHENTICATION_FAILED)


async def test_at_the_deadline_an_order_without_an_intent_has_no_payment(till: Till) -> None:
    order_id = await till.order()
    assert (await till.abandon(order_id)).status is PaymentStatus.NONE


async def test_a_silent_gateway_at_the_deadline_is_never_a_blind_cancel(till: Till) -> None:
    order_id = await till.order("pm_card_authenticationRequired")
    await till.authorize(order_id)
    await till.desk.fault(op="read", mode="error", status=502)
    with pytest.raises(PaymentServiceUnavailable):
        await till.abandon(order_id)
    assert (await till.at_gateway(order_id))["status"] == "requires_action"


async def test_money_taken_in_the_moment_of_the_deadline_goes_on(till: Till) -> None:
    order_id = await till.order("pm_card_authenticationRequired")
    view = await till.authorize(order_id)
    fault = await till.hanging("cancel")
    deadline = asyncio.create_task(till.abandon(order_id))
    await till.until_held_up(fault)
    await till.desk.control("POST", f"intents/{view.intent_id}/authenticate", outcome="success")
    await till.desk.intents.capture_async(str(view.intent_id))
    await till.let_go(fault)
    assert (await deadline).status is PaymentStatus.CAPTURED
    assert {("abandon_payment", "intended"), ("abandon_payment", "refused")} <= await till.stamps(order_id)


async def test_at_the_deadline_an_intent_over_another_amount_is_not_ours_to_go_on_with(till: Till) -> None:
    order_id = await till.a_held_order()
    await till.desk.intents.capture_async((await till.row(order_id)).intent_id, {"amount_to_capture": DUE - 1})
    with pytest.raises(PaymentMismatch):
        await till.abandon(order_id)


@pytest.mark.parametrize("status", ["requires_capture", "succeeded"])
async def test_money_that_comes_after_the_order_was_undone_goes_back_once(till: Till, status: str) -> None:
    order_id, intent_id = await an_undone_order(till)
    await till.desk.control("POST", f"intents/{intent_id}/force", status=status)
    await asyncio.gather(*(till.settle(order_id, intent_id) for _ in range(3)), return_exceptions=True)
    view = await till.settle(order_id, intent_id)
    taken = DUE if status == "succeeded" else 0
    assert (view.captured, view.refunded) == (taken, taken)
    assert (await till.held(order_id), await till.kept(order_id)) == (0, 0)
    assert (await till.at_gateway(order_id))["refunded"] == taken


async def test_late_money_and_the_undo_at_once_give_it_back_once(till: Till) -> None:
    order_id, intent_id = await an_undone_order(till)
    await till.desk.control("POST", f"intents/{intent_id}/force", status="succeeded")
    await asyncio.gather(
        till.settle(order_id, intent_id), till.release(order_id), till.release(order_id, 2), return_exceptions=True
    )
    await till.settle(order_id, intent_id)
    assert await till.refund_rows(order_id) == [("succeeded", DUE)]
    assert await till.kept(order_id) == 0


async def test_money_of_an_order_that_stands_is_left_where_it_is(till: Till) -> None:
    order_id = await till.a_captured_order()
    view = await till.settle(order_id, (await till.row(order_id)).intent_id)
    assert view.status is PaymentStatus.CAPTURED
    assert await till.kept(order_id) == DUE


async def test_a_refund_made_by_hand_reaches_the_books(till: Till) -> None:
    order_id = await till.a_captured_order()
    intent_id = (await till.row(order_id)).intent_id
    await till.desk.refunds.create_async({"payment_intent": intent_id})
    view = await till.settle(order_id, intent_id)
    assert (view.status, view.refunded) == (PaymentStatus.REFUNDED, DUE)
    assert ("refunded", DUE) in await till.movements(order_id)


async def test_an_intent_that_is_not_the_orders_own_is_never_touched(till: Till) -> None:
    undone, _ = await an_undone_order(till)
    other = await till.a_held_order()
    view = await till.settle(undone, (await till.row(other)).intent_id)
    assert view.status is PaymentStatus.NONE
    assert await till.held(other) == DUE


async def test_an_intent_of_another_order_does_not_become_the_orders_own(till: Till) -> None:
    order_id, other = await till.order(), await till.order("pm_sim_never")
    intent = await till.gateway.create_intent(other, DUE, "EUR", "pm_card_visa", f"somebody's key for {other}")
    await till.close_undone(order_id)
    assert (await till.settle(order_id, intent.id)).status is PaymentStatus.NONE
    assert await till.row(order_id) is None
