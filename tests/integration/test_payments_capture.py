"""The pivot: the held money is taken once, or it is certain that it was not."""

import asyncio

import pytest

from domain.errors import (
    AuthorizationExpired,
    CaptureFailed,
    GatewayProtocolError,
    NotServed,
    PaymentMismatch,
    PaymentServiceUnavailable,
    StepFenced,
)
from domain.order import CancelReason, PaymentStatus
from tests.integration.till import DUE, Till

EIGHT_DAYS = 8 * 24 * 3600


async def test_the_held_money_is_taken_in_full(till: Till) -> None:
    order_id = await till.a_held_order()
    view = await till.capture(order_id)
    assert (view.status, view.captured, view.refunded) == (PaymentStatus.CAPTURED, DUE, 0)
    row = await till.row(order_id)
    assert (row.status, row.authorized, row.captured) == ("CAPTURED", DUE, DUE)
    assert await till.movements(order_id) == [("authorized", DUE), ("captured", DUE)]
    assert ("capture_payment", "done") in await till.stamps(order_id)
    assert (await till.kept(order_id), await till.held(order_id)) == (DUE, 0)


async def test_capturing_twice_takes_the_money_once_and_asks_once(till: Till) -> None:
    order_id = await till.a_held_order()
    views = [await till.capture(order_id) for _ in range(2)]
    assert [view.status for view in views] == [PaymentStatus.CAPTURED] * 2
    assert len(await till.calls(order_id, "capture")) == 1
    assert await till.kept(order_id) == DUE


async def test_a_lost_answer_and_another_attempt_take_the_money_once(till: Till) -> None:
    order_id = await till.a_held_order()
    await till.desk.fault(op="capture", mode="drop")
    with pytest.raises(PaymentServiceUnavailable):
        await till.capture(order_id)
    assert (await till.capture(order_id)).status is PaymentStatus.CAPTURED
    assert await till.kept(order_id) == DUE
    assert await till.movements(order_id) == [("authorized", DUE), ("captured", DUE)]


async def test_a_200_that_is_not_understood_is_not_success(till: Till) -> None:
    order_id = await till.a_held_order()
    await till.desk.fault(op="capture", mode="answer", status=200, body="OK")
    with pytest.raises(GatewayProtocolError):
        await till.capture(order_id)
    assert (await till.read(order_id)).status is PaymentStatus.AUTHORIZED
    assert (await till.capture(order_id)).status is PaymentStatus.CAPTURED
    assert await till.kept(order_id) == DUE


async def test_a_500_that_the_gateway_keeps_under_the_key_does_not_stop_the_next_attempt(till: Till) -> None:
    order_id = await till.a_held_order()
    await till.desk.fault(op="capture", mode="error", status=500)
    with pytest.raises(PaymentServiceUnavailable):
        await till.capture(order_id)
    assert (await till.capture(order_id)).status is PaymentStatus.CAPTURED
    keys = [call["key"] for call in await till.calls(order_id, "capture")]
    assert keys == [keys[0], keys[0], f"{keys[0]}:2"]


async def test_while_the_outcome_is_unknown_the_key_stays(till: Till) -> None:
    order_id = await till.a_held_order()
    await till.desk.fault(op="capture", mode="error", status=502, times=3)
    for _ in range(3):
        with pytest.raises(PaymentServiceUnavailable):
            await till.capture(order_id)
    await till.capture(order_id)
    assert len({call["key"] for call in await till.calls(order_id, "capture")}) == 1


async def test_a_capture_in_flight_is_waited_for(till: Till) -> None:
    order_id = await till.a_held_order()
    await till.desk.fault(op="capture", mode="conflict")
    with pytest.raises(NotServed):
        await till.capture(order_id)
    assert (await till.capture(order_id)).status is PaymentStatus.CAPTURED


async def test_two_captures_at_once_take_the_money_once(till: Till) -> None:
    order_id = await till.a_held_order()
    await asyncio.gather(*(till.capture(order_id) for _ in range(5)), return_exceptions=True)
    assert (await till.capture(order_id)).status is PaymentStatus.CAPTURED
    assert await till.kept(order_id) == DUE


async def test_an_expired_hold_is_refused_as_such(till: Till) -> None:
    order_id = await till.a_held_order()
    await till.desk.control("POST", "clock", advance_seconds=EIGHT_DAYS)
    with pytest.raises(AuthorizationExpired):
        await till.capture(order_id)
    view = await till.read(order_id)
    assert (view.status, view.reason) == (PaymentStatus.VOIDED, CancelReason.AUTHORIZATION_EXPIRED)
    assert ("capture_payment", "refused") in await till.stamps(order_id)
    assert await till.movements(order_id) == [("authorized", DUE), ("voided", DUE)]


async def test_a_capture_that_the_issuer_refuses_did_not_happen(till: Till) -> None:
    order_id = await till.a_held_order()
    body = {"error": {"type": "card_error", "code": "card_declined", "message": "Ada's card"}}
    await till.desk.fault(op="capture", mode="error", status=402, body=body)
    with pytest.raises(CaptureFailed) as error:
        await till.capture(order_id)
    assert "Ada" not in str(error.value)
    assert await till.kept(order_id) == 0


async def test_an_intent_that_the_shopper_never_finished_cannot_be_captured(till: Till) -> None:
    order_id = await till.order("pm_card_authenticationRequired")
    await till.authorize(order_id)
    with pytest.raises(CaptureFailed):
        await till.capture(order_id)


async def test_an_order_without_an_intent_cannot_be_captured(till: Till) -> None:
    order_id = await till.order()
    with pytest.raises(CaptureFailed):
        await till.capture(order_id)


async def test_an_intent_that_still_processes_is_neither_captured_nor_refused(till: Till) -> None:
    order_id = await till.order("pm_sim_never")
    await till.authorize(order_id)
    with pytest.raises(PaymentServiceUnavailable):
        await till.capture(order_id)
    assert ("capture_payment", "refused") not in await till.stamps(order_id)


async def test_a_capture_over_another_amount_is_not_ours_to_go_on_with(till: Till) -> None:
    order_id = await till.a_held_order()
    intent_id = (await till.row(order_id)).intent_id
    await till.desk.intents.capture_async(intent_id, {"amount_to_capture": DUE - 1})
    with pytest.raises(PaymentMismatch):
        await till.capture(order_id)
    with pytest.raises(PaymentMismatch):
        await till.read(order_id)
    await till.release(order_id)
    assert await till.kept(order_id) == 0


async def test_after_the_undo_a_capture_is_refused_before_it_reaches_the_gateway(till: Till) -> None:
    order_id = await till.a_held_order()
    await till.release(order_id)
    with pytest.raises(StepFenced):
        await till.capture(order_id)
    assert await till.calls(order_id, "capture") == []


async def test_a_capture_that_hangs_while_the_order_is_undone_takes_nothing(till: Till) -> None:
    order_id = await till.a_held_order()
    fault = await till.hanging("capture")
    late = asyncio.create_task(till.capture(order_id))
    await till.until_held_up(fault)
    await till.release(order_id)
    await till.let_go(fault)
    with pytest.raises(AuthorizationExpired):
        await late
    assert (await till.kept(order_id), await till.held(order_id)) == (0, 0)
