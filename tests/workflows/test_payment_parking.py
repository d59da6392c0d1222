"""A payment that cannot go on: parked with a reason, moved on by itself or by a person, and never by guessing."""

import asyncio
from typing import Any

import pytest
from temporalio.client import WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError

from domain.keys import Step
from domain.messages import RedriveStep
from domain.order import RedriveAction
from tests.baskets import Basket
from tests.polling import eventually
from tests.workflows.till import FOREVER, Till
from workflows.order import OrderWorkflow

#: A parked step with a technical cause looks again after a quarter of an hour (domain.policy).
NEXT_LOOK = 900


async def test_a_gateway_that_fails_for_ever_parks_the_order_until_it_heals_by_itself(till: Till) -> None:
    basket = await till.shop.basket()
    down = await till.fault(basket, "confirm", "error", status=500, times=FOREVER)
    await till.shop.place_in_real_time(basket)
    item = await till.parked(basket, "authorize_payment")
    assert (item.kind, item.error) == ("TECHNICAL", "PaymentServiceUnavailable")
    view = await till.shop.view(basket.order_id)
    assert "do not order again" in view.message
    assert till.shop.gates.calls(basket.order_id, Step.BOOK_SHIPMENT) == 0
    await till.shop.heal(down)
    await till.forward(basket, NEXT_LOOK)
    await till.confirmed(basket)


@pytest.mark.parametrize("body", ["<html>fine</html>", {"object": "charge", "id": "ch_1", "status": "succeeded"}])
async def test_an_answer_that_is_not_understood_is_never_success(till: Till, body: Any) -> None:
    """S77: for ever, so that a person decides."""
    basket = await till.shop.basket()
    await till.fault(basket, "confirm", "answer", body=body, times=FOREVER)
    await till.shop.place_in_real_time(basket)
    item = await till.parked(basket, "authorize_payment")
    assert (item.kind, item.error) == ("TECHNICAL", "GatewayProtocolError")
    assert await till.shop.redrive(basket.order_id, "authorize_payment", "skip") == 409
    assert await till.shop.redrive(basket.order_id, "authorize_payment", "compensate") == 202
    await till.undone(basket, reason="CANCELLED_BY_OPERATOR")


async def test_a_retry_by_an_operator_takes_a_healed_order_to_its_end(till: Till) -> None:
    basket = await till.shop.basket()
    down = await till.fault(basket, "create", "error", status=502, times=FOREVER)
    await till.shop.place_in_real_time(basket)
    await till.parked(basket, "authorize_payment")
    await till.shop.heal(down)
    assert await till.shop.redrive(basket.order_id, "authorize_payment", "retry") == 202
    await till.confirmed(basket)


async def test_nothing_is_undone_on_a_guess_while_the_gateway_cannot_be_read(till: Till) -> None:
    basket = await till.shop.basket()
    down = [await till.fault(basket, op, "error", status=502, times=FOREVER) for op in ("confirm", "read")]
    await till.shop.place_in_real_time(basket)
    await till.parked(basket, "authorize_payment")
    assert await till.shop.redrive(basket.order_id, "authorize_payment", "compensate") == 409
    assert await till.calls(basket, "cancel") == []
    await asyncio.gather(*map(till.shop.heal, down))
    assert await till.shop.redrive(basket.order_id, "authorize_payment", "compensate") == 202
    await till.undone(basket, reason="CANCELLED_BY_OPERATOR")


async def test_a_shopper_may_cancel_while_the_payment_is_parked(till: Till) -> None:
    basket = await till.shop.basket()
    await till.fault(basket, "confirm", "error", status=502, times=FOREVER)
    await till.shop.place_in_real_time(basket)
    await till.parked(basket, "authorize_payment")
    assert (await till.shop.cancel(basket.order_id))[0] == 202
    await till.undone(basket, reason="CANCELLED_BY_CUSTOMER")


async def test_an_order_ends_when_the_operators_word_about_it_is_answered(till: Till) -> None:
    basket = await till.shop.basket()
    await till.fault(basket, "confirm", "error", status=502, times=FOREVER)
    await till.shop.place_in_real_time(basket)
    await till.parked(basket, "authorize_payment")
    saga, look = till.shop.saga(basket.order_id), till.shop.gates.hold(basket.order_id, Step.READ_PAYMENT)
    compensate = RedriveStep(
        step=Step.AUTHORIZE_PAYMENT, action=RedriveAction.COMPENSATE, actor="tests", reason="a test"
    )
    word = asyncio.create_task(saga.execute_update("redrive_step", compensate))
    await look.reached()
    assert (await till.shop.cancel(basket.order_id))[0] == 202
    await till.shop.reaches(basket.order_id, "CANCELLED_COMPENSATED")

    async def nothing_else_is_left() -> bool:
        pending = (await saga.describe()).raw_description.pending_activities
        return {one.activity_type.name for one in pending} <= {Step.READ_PAYMENT.value}

    await eventually(nothing_else_is_left)
    # A query is answered when everything before it was seen.
    await saga.query(OrderWorkflow.status)
    look.open()
    with pytest.raises(WorkflowUpdateFailedError) as refusal:
        await word
    assert isinstance(refusal.value.cause, ApplicationError)
    assert refusal.value.cause.type == "NoSuchWait"
    await till.undone(basket, reason="CANCELLED_BY_CUSTOMER")


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        ({"status": 400, "body": {"error": {"type": "idempotency_error", "message": "…"}}}, "IdempotencyConflict"),
        ({"status": 401, "times": 3}, "ProviderRequestRefused"),
    ],
)
async def test_a_contradiction_or_a_bug_waits_for_a_person_and_cancels_nothing(
    till: Till, fault: dict[str, Any], error: str
) -> None:
    basket = await till.shop.basket()
    await till.fault(basket, "confirm", "error", **fault)
    await till.shop.place_in_real_time(basket)
    item = await till.parked(basket, "authorize_payment")
    assert (item.kind, item.error) == ("DECISION", error)
    # It does not move by itself, however long nobody looks.
    await till.forward(basket, 100 * NEXT_LOOK)
    await till.parked(basket, "authorize_payment")
    assert await till.shop.redrive(basket.order_id, "authorize_payment", "retry") == 202
    # The key is known with other parameters for as long as the gateway keeps it: the intent itself tells.
    await till.confirmed(basket)


async def mismatched(till: Till, basket: Basket) -> str:
    """The order waits, and the gateway says another amount about the order's own intent; the fault's id."""
    await till.waiting(basket, "pm_sim_silent")
    intent = await till.read(basket)
    fault = await till.fault(basket, "read", "answer", body=intent | {"amount": intent["amount"] + 1}, times=FOREVER)
    await till.event(basket)
    item = await till.parked(basket, "await_payment")
    assert (item.kind, item.error) == ("DECISION", "PaymentMismatch")
    return fault


async def test_another_amount_on_our_own_intent_waits_for_a_person(till: Till) -> None:
    retried, given_up = await till.baskets(2)
    faults = [await mismatched(till, basket) for basket in (retried, given_up)]
    reads = till.shop.gates.calls(retried.order_id, Step.READ_PAYMENT)
    assert await till.shop.redrive(retried.order_id, "await_payment", "retry") == 202
    await till.shop.gates.ended(retried.order_id, Step.READ_PAYMENT, reads + 1)
    await till.parked(retried, "await_payment")
    await asyncio.gather(*map(till.shop.heal, faults))
    await till.redriven(retried, "await_payment", "retry")
    await till.confirmed(retried)
    unread = await till.fault(given_up, "read", "error", status=502, times=FOREVER)
    assert await till.shop.redrive(given_up.order_id, "await_payment", "compensate") == 409
    await till.shop.heal(unread)
    assert await till.shop.redrive(given_up.order_id, "await_payment", "compensate") == 202
    await till.undone(given_up, reason="CANCELLED_BY_OPERATOR")


async def test_an_operator_s_retry_of_a_conflict_of_keys_asks_under_the_next_key(till: Till) -> None:
    basket = await till.shop.basket()
    conflict = {"error": {"type": "idempotency_error", "message": "…"}}
    await till.fault(basket, "confirm", "answer", status=400, body=conflict, times=1)
    await till.shop.place_in_real_time(basket)
    item = await till.parked(basket, "authorize_payment")
    assert (item.kind, item.error) == ("DECISION", "IdempotencyConflict")
    assert await till.shop.redrive(basket.order_id, "authorize_payment", "retry") == 202
    await till.confirmed(basket)
    first, second = await till.keys(basket, "confirm")
    assert first != second
