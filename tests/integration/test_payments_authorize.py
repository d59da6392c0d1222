"""Holding the money: one intent an order, confirmed once, whatever is lost, repeated or late."""

import asyncio
from typing import Any

import pytest

from domain.errors import (
    AuthenticationFailed,
    CardDeclined,
    DatabaseUnavailable,
    GatewayProtocolError,
    NotServed,
    OrderNotFound,
    PaymentFraudBlocked,
    PaymentMismatch,
    PaymentServiceUnavailable,
    Refusal,
    StepFenced,
)
from domain.order import CancelReason, PaymentStatus
from tests.builders import a_customer
from tests.integration.till import DUE, Till


async def test_the_amount_due_is_held_and_nothing_is_taken(till: Till) -> None:
    order_id = await till.order()
    assert (await till.authorize(order_id)).status in {PaymentStatus.PROCESSING, PaymentStatus.AUTHORIZED}
    view = await till.read_until(order_id, PaymentStatus.AUTHORIZED)
    row = await till.row(order_id)
    assert (row.intent_id, row.status, row.authorized, row.captured) == (view.intent_id, "AUTHORIZED", DUE, 0)
    assert await till.movements(order_id) == [("authorized", DUE)]
    assert ("authorize_payment", "done") in await till.stamps(order_id)
    assert await till.held(order_id) == DUE
    assert await till.kept(order_id) == 0


@pytest.mark.parametrize("op", ["create", "confirm"])
async def test_a_lost_answer_and_another_attempt_hold_the_money_once(till: Till, op: str) -> None:
    order_id = await till.order()
    await till.desk.fault(op=op, mode="drop")
    with pytest.raises(PaymentServiceUnavailable):
        await till.authorize(order_id)
    await till.authorize(order_id)
    await till.read_until(order_id, PaymentStatus.AUTHORIZED)
    assert (await till.at_gateway(order_id))["authorized"] == DUE


async def test_an_answer_lost_in_the_look_up_before_the_confirm_holds_the_money_once(till: Till) -> None:
    order_id = await till.order()
    await till.desk.fault(op="confirm", mode="error", status=503)
    with pytest.raises(NotServed):
        await till.authorize(order_id)
    await till.desk.fault(op="read", mode="error", status=502)
    with pytest.raises(PaymentServiceUnavailable):
        await till.authorize(order_id)
    await till.authorize(order_id)
    await till.read_until(order_id, PaymentStatus.AUTHORIZED)
    assert (await till.at_gateway(order_id))["authorized"] == DUE


@pytest.mark.parametrize("op", ["create", "confirm"])
async def test_a_500_that_the_gateway_keeps_under_the_key_does_not_stop_the_next_attempt(till: Till, op: str) -> None:
    order_id = await till.order()
    await till.desk.fault(op=op, mode="error", status=500)
    with pytest.raises(PaymentServiceUnavailable):
        await till.authorize(order_id)
    await till.authorize(order_id)
    await till.read_until(order_id, PaymentStatus.AUTHORIZED)
    assert await till.held(order_id) == DUE
    keys = [call["key"] for call in await till.calls(order_id, op)]
    assert keys == [keys[0], keys[0], f"{keys[0]}:2"]


@pytest.mark.parametrize("op", ["create", "confirm"])
@pytest.mark.parametrize(
    "body", ["<html>All good.</html>", {"object": "balance", "id": "x"}, {"object": "payment_intent", "id": "pi_1"}]
)
async def test_a_200_that_is_not_understood_is_unknown_and_looked_up(till: Till, op: str, body: object) -> None:
    order_id = await till.order()
    await till.desk.fault(op=op, mode="answer", status=200, body=body)
    with pytest.raises(GatewayProtocolError):
        await till.authorize(order_id)
    await till.authorize(order_id)
    await till.read_until(order_id, PaymentStatus.AUTHORIZED)
    assert await till.held(order_id) == DUE


@pytest.mark.parametrize(
    ("fault", "retry_after"),
    [
        ({"mode": "error", "status": 429, "retry_after": 7}, 7),
        ({"mode": "error", "status": 503, "retry_after": 3}, 3),
        ({"mode": "error", "status": 503}, None),
        ({"mode": "conflict"}, None),
    ],
)
async def test_not_now_is_told_with_the_gateways_own_time_and_nothing_happens(
    till: Till, fault: dict[str, Any], retry_after: float | None
) -> None:
    order_id = await till.order()
    await till.desk.fault(op="create", **fault)
    with pytest.raises(NotServed) as error:
        await till.authorize(order_id)
    assert error.value.retry_after_seconds == retry_after
    assert await till.row(order_id) is None


@pytest.mark.parametrize(
    ("method", "refusal"), [("pm_card_chargeDeclined", CardDeclined), ("pm_card_radarBlock", PaymentFraudBlocked)]
)
async def test_a_declined_card_is_refused_and_asked_only_once(till: Till, method: str, refusal: type[Refusal]) -> None:
    order_id = await till.order(method)
    for _ in range(2):
        with pytest.raises(refusal):
            await till.authorize(order_id)
    assert len(await till.calls(order_id, "confirm")) == 1
    view = await till.read(order_id)
    assert (view.status, view.reason) == (PaymentStatus.DECLINED, refusal.reason)
    assert (await till.row(order_id)).status == "DECLINED"
    assert ("authorize_payment", "refused") in await till.stamps(order_id)
    assert await till.movements(order_id) == []


async def test_a_decline_whose_answer_was_lost_is_found_by_the_next_attempt(till: Till) -> None:
    order_id = await till.order("pm_card_chargeDeclined")
    await till.desk.fault(op="confirm", mode="drop")
    with pytest.raises(PaymentServiceUnavailable):
        await till.authorize(order_id)
    with pytest.raises(CardDeclined):
        await till.authorize(order_id)
    assert len(await till.calls(order_id, "confirm")) == 1


async def test_a_payment_method_that_the_gateway_does_not_know_is_a_declined_card(till: Till) -> None:
    order_id = await till.order("pm_nobody_has_this")
    with pytest.raises(CardDeclined):
        await till.authorize(order_id)
    assert (await till.read(order_id)).status is PaymentStatus.NONE
    assert await till.intents(order_id) == []


async def test_three_d_secure_reaches_the_shopper_and_its_success_holds_the_money(till: Till) -> None:
    order_id = await till.order("pm_card_authenticationRequired")
    view = await till.authorize(order_id)
    assert view.status is PaymentStatus.REQUIRES_ACTION
    assert (await till.row(order_id)).next_action["type"] == "use_stripe_sdk"
    await till.desk.control("POST", f"intents/{view.intent_id}/authenticate", outcome="success")
    assert (await till.read(order_id)).status is PaymentStatus.AUTHORIZED
    assert (await till.row(order_id)).next_action is None


async def test_three_d_secure_that_fails_is_told_as_such(till: Till) -> None:
    order_id = await till.order("pm_card_authenticationRequired")
    view = await till.authorize(order_id)
    await till.desk.control("POST", f"intents/{view.intent_id}/authenticate", outcome="fail")
    view = await till.read(order_id)
    assert (view.status, view.reason) == (PaymentStatus.DECLINED, CancelReason.AUTHENTICATION_FAILED)
    with pytest.raises(AuthenticationFailed):
        await till.authorize(order_id)


@pytest.mark.parametrize(
    "untrue",
    [{"amount": DUE - 1}, {"currency": "usd"}, {"metadata": {"order_id": "another's"}}],
    ids=["amount", "currency", "order"],
)
async def test_an_intent_over_other_terms_is_never_confirmed(till: Till, untrue: dict[str, Any]) -> None:
    order_id = await till.order()
    intent = await till.gateway.create_intent(order_id, DUE, "EUR", "pm_card_visa", f"somebody's key for {order_id}")
    told = {"object": "payment_intent", "id": intent.id, "status": "requires_confirmation"}
    ours = {"amount": DUE, "currency": "eur", "metadata": {"order_id": order_id}}
    await till.desk.fault(op="create", mode="answer", status=200, body=told | ours | untrue)
    with pytest.raises(PaymentMismatch):
        await till.authorize(order_id)
    assert await till.calls(order_id, "confirm") == []
    assert await till.held(order_id) == 0


async def test_an_order_that_is_paid_with_points_and_credit_never_reaches_the_gateway(till: Till) -> None:
    await a_customer(till.database, points=2000, store_credit=3000)
    order_id = await till.order(points=2000, store_credit=3000)
    assert (await till.authorize(order_id)).status is PaymentStatus.NONE
    assert await till.intents(order_id) == []


async def test_an_order_that_nobody_has_accepted_is_never_paid(till: Till) -> None:
    with pytest.raises(OrderNotFound):
        await till.authorize("nobodys")


async def test_two_attempts_at_once_hold_the_money_once(till: Till) -> None:
    order_id = await till.order()
    await asyncio.gather(*(till.authorize(order_id) for _ in range(5)), return_exceptions=True)
    await till.authorize(order_id)
    await till.read_until(order_id, PaymentStatus.AUTHORIZED)
    assert await till.held(order_id) == DUE


@pytest.mark.parametrize("op", ["create", "confirm"])
async def test_an_attempt_that_hangs_while_the_order_is_undone_cannot_hold_money(till: Till, op: str) -> None:
    order_id = await till.order()
    fault = await till.hanging(op)
    late = asyncio.create_task(till.authorize(order_id))
    await till.until_held_up(fault)
    await till.release(order_id)
    await till.let_go(fault)
    if op == "create":
        with pytest.raises(StepFenced):
            await late
    else:
        assert (await late).status is PaymentStatus.VOIDED
    assert await till.held(order_id) == 0
    assert all(intent["status"] == "canceled" for intent in await till.intents(order_id))


async def test_an_attempt_after_the_undo_is_refused_before_it_reaches_the_gateway(till: Till) -> None:
    order_id = await till.order()
    await till.release(order_id)
    with pytest.raises(StepFenced):
        await till.authorize(order_id)
    assert await till.intents(order_id) == []


async def test_the_look_up_says_none_when_an_intent_was_created_and_lost(till: Till) -> None:
    order_id = await till.order()
    await till.desk.fault(op="create", mode="drop")
    with pytest.raises(PaymentServiceUnavailable):
        await till.authorize(order_id)
    assert (await till.read(order_id)).status is PaymentStatus.NONE


async def test_the_look_up_says_none_for_an_intent_that_was_never_confirmed(till: Till) -> None:
    order_id = await till.order()
    await till.desk.fault(op="confirm", mode="error", status=500)
    with pytest.raises(PaymentServiceUnavailable):
        await till.authorize(order_id)
    assert (await till.read(order_id)).status is PaymentStatus.NONE


async def test_the_next_revision_of_the_key_confirms_the_same_intent(till: Till) -> None:
    order_id = await till.order()
    await till.desk.fault(op="confirm", mode="error", status=500)
    with pytest.raises(PaymentServiceUnavailable):
        await till.authorize(order_id)
    await till.authorize(order_id, revision=2)
    await till.read_until(order_id, PaymentStatus.AUTHORIZED)
    assert (await till.at_gateway(order_id))["authorized"] == DUE


async def test_an_attempt_that_hangs_while_the_next_key_is_asked_holds_the_money_once(till: Till) -> None:
    order_id = await till.order()
    fault = await till.hanging("create")
    late = asyncio.create_task(till.authorize(order_id))
    await till.until_held_up(fault)
    await till.authorize(order_id, revision=2)
    await till.let_go(fault)
    await late
    await till.read_until(order_id, PaymentStatus.AUTHORIZED)
    assert await till.held(order_id) == DUE
    assert len(await till.calls(order_id, "confirm")) == 1


async def test_a_database_that_fails_between_the_create_and_the_store_costs_the_shopper_nothing(
    till: Till, monkeypatch: pytest.MonkeyPatch
) -> None:
    order_id = await till.order()

    async def broken(*_: object) -> str:
        raise DatabaseUnavailable("OperationalError")

    with monkeypatch.context() as outage:
        outage.setattr("activities.payments.store_intent", broken)
        with pytest.raises(DatabaseUnavailable):
            await till.authorize(order_id)
    assert await till.calls(order_id, "cancel") == []
    await till.authorize(order_id)
    await till.read_until(order_id, PaymentStatus.AUTHORIZED)
    assert (await till.at_gateway(order_id))["authorized"] == DUE


async def test_an_intent_that_was_ended_before_it_was_ours_is_replaced_by_a_new_one(
    till: Till, monkeypatch: pytest.MonkeyPatch
) -> None:
    order_id = await till.order()

    async def broken(*_: object) -> str:
        raise DatabaseUnavailable("OperationalError")

    with monkeypatch.context() as outage:
        outage.setattr("activities.payments.store_intent", broken)
        with pytest.raises(DatabaseUnavailable):
            await till.authorize(order_id)
    ended = (await till.at_gateway(order_id))["id"]
    await till.desk.intents.cancel_async(ended)
    await till.authorize(order_id)
    view = await till.read_until(order_id, PaymentStatus.AUTHORIZED)
    assert view.intent_id != ended
    assert await till.held(order_id) == DUE
