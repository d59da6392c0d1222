"""The undo of a payment: what is held is cancelled, what is taken is given back, once, and nothing is forgotten."""

import asyncio
from typing import Any

import pytest

from adapters.gateway_effects import KEYS, GatewayEffects
from adapters.stripe_answers import RefundStatus
from domain.errors import PaymentServiceUnavailable, RefundFailed
from domain.order import PaymentStatus
from tests.integration.till import DUE, Till


async def a_pending_refund(till: Till) -> tuple[str, str]:
    """A captured order whose refund the bank has not decided: the order's id and the refund's."""
    order_id = await till.a_captured_order()
    await till.desk.fault(op="refund", mode="pending")
    assert (await till.release(order_id)).status is PaymentStatus.REFUND_PENDING
    intent_id = (await till.row(order_id)).intent_id
    return order_id, (await till.gateway.list_refunds(intent_id))[0].id


async def test_a_hold_is_cancelled_and_told_as_voided(till: Till) -> None:
    order_id = await till.a_held_order()
    assert (await till.release(order_id)).status is PaymentStatus.VOIDED
    assert await till.movements(order_id) == [("authorized", DUE), ("voided", DUE)]
    assert {("authorize_payment", "undone"), ("release_payment", "done")} <= await till.stamps(order_id)
    assert (await till.held(order_id), await till.kept(order_id)) == (0, 0)


async def test_taken_money_is_given_back_in_full(till: Till) -> None:
    order_id = await till.a_captured_order()
    view = await till.release(order_id)
    assert (view.status, view.captured, view.refunded) == (PaymentStatus.REFUNDED, DUE, DUE)
    assert await till.refund_rows(order_id) == [("succeeded", DUE)]
    assert await till.movements(order_id) == [("authorized", DUE), ("captured", DUE), ("refunded", DUE)]
    assert await till.kept(order_id) == 0


async def test_only_what_was_not_given_back_already_is_refunded(till: Till) -> None:
    order_id = await till.a_captured_order()
    intent_id = (await till.row(order_id)).intent_id
    await till.desk.refunds.create_async({"payment_intent": intent_id, "amount": 1500})
    view = await till.release(order_id)
    assert (view.status, view.refunded) == (PaymentStatus.REFUNDED, DUE)
    assert sorted(await till.refund_rows(order_id)) == [("succeeded", 1500), ("succeeded", DUE - 1500)]
    assert await till.kept(order_id) == 0


async def test_where_nothing_happened_there_is_nothing_to_undo(till: Till) -> None:
    order_id = await till.order()
    for _ in range(2):
        assert (await till.release(order_id)).status is PaymentStatus.NONE
    assert {("authorize_payment", "undone"), ("release_payment", "done")} <= await till.stamps(order_id)
    assert await till.movements(order_id) == []


async def test_releasing_twice_changes_nothing_more(till: Till) -> None:
    held, captured = await till.a_held_order(), await till.a_captured_order()
    for _ in range(2):
        assert (await till.release(held)).status is PaymentStatus.VOIDED
        assert (await till.release(captured)).status is PaymentStatus.REFUNDED
    assert len(await till.calls(held, "cancel")) == 1
    assert len(await till.calls(captured, "refund")) == 1


async def test_a_declined_card_stays_declined_when_its_intent_is_ended(till: Till) -> None:
    order_id = await till.order("pm_card_chargeDeclined")
    await asyncio.gather(till.authorize(order_id), return_exceptions=True)
    assert (await till.release(order_id)).status is PaymentStatus.DECLINED
    assert (await till.at_gateway(order_id))["status"] == "canceled"
    assert await till.movements(order_id) == []


@pytest.mark.parametrize("fault", [{"mode": "drop"}, {"mode": "error", "status": 500}, {"mode": "answer", "body": "?"}])
@pytest.mark.parametrize("op", ["cancel", "refund"])
async def test_an_answer_lost_failed_or_garbled_and_another_attempt_give_it_back_once(
    till: Till, op: str, fault: dict[str, Any]
) -> None:
    order_id = await (till.a_held_order() if op == "cancel" else till.a_captured_order())
    await till.desk.fault(op=op, **fault)
    first = await asyncio.gather(till.release(order_id), return_exceptions=True)
    assert isinstance(first[0], Exception)
    await till.release(order_id)
    book = await till.at_gateway(order_id)
    assert (await till.kept(order_id), await till.held(order_id)) == (0, 0)
    assert book["refunded"] == book["captured"] == (0 if op == "cancel" else DUE)
    assert ("release_payment", "done") in await till.stamps(order_id)


async def test_an_answer_lost_in_the_look_up_is_asked_for_again(till: Till) -> None:
    order_id = await till.a_captured_order()
    await till.desk.fault(op="read", mode="error", status=502)
    with pytest.raises(PaymentServiceUnavailable):
        await till.release(order_id)
    assert ("release_payment", "done") not in await till.stamps(order_id)
    await till.release(order_id)
    assert await till.kept(order_id) == 0


async def test_a_refund_asked_for_by_many_at_once_is_made_once(till: Till) -> None:
    order_id = await till.a_captured_order()
    revisions = (1, 1, 2, 2, 3)
    await asyncio.gather(*(till.release(order_id, revision) for revision in revisions), return_exceptions=True)
    assert (await till.release(order_id)).status is PaymentStatus.REFUNDED
    assert await till.refund_rows(order_id) == [("succeeded", DUE)]
    assert (await till.at_gateway(order_id))["refunded"] == DUE


async def test_a_refund_is_found_by_our_key_when_the_gateway_has_forgotten_its_own(till: Till) -> None:
    order_id = await till.a_captured_order()
    await till.desk.fault(op="refund", mode="drop")
    with pytest.raises(PaymentServiceUnavailable):
        await till.release(order_id)
    await till.desk.control("POST", "clock", advance_seconds=3 * 24 * 3600)
    for _ in range(2):
        assert (await till.release(order_id)).status is PaymentStatus.REFUNDED
    assert await till.refund_rows(order_id) == [("succeeded", DUE)]
    assert (await till.at_gateway(order_id))["refunded"] == DUE


async def test_a_refund_that_came_in_between_is_not_asked_for_under_the_next_key(till: Till) -> None:
    order_id = await till.a_captured_order()
    intent = await till.gateway.read_intent((await till.row(order_id)).intent_id)
    part = f"{order_id}:part"
    for _ in range(2):
        # Both have read the list before there was a refund.
        await GatewayEffects(till.gateway).refund(intent, 1500, [], refund_key=part, key=part)
    assert (await till.at_gateway(order_id))["refunded"] == 1500


async def test_money_that_somebody_gives_back_in_that_moment_is_not_owed(till: Till) -> None:
    order_id = await till.a_captured_order()
    fault = await till.hanging("refund")
    undo = asyncio.create_task(till.release(order_id))
    await till.until_held_up(fault)
    await till.desk.refunds.create_async({"payment_intent": (await till.row(order_id)).intent_id})
    await till.let_go(fault)
    assert (await undo).status is PaymentStatus.REFUNDED
    assert (await till.at_gateway(order_id))["refunded"] == DUE


async def test_money_taken_while_the_hold_is_being_cancelled_is_refunded(till: Till) -> None:
    order_id = await till.a_held_order()
    fault = await till.hanging("cancel")
    undo = asyncio.create_task(till.release(order_id))
    await till.until_held_up(fault)
    await till.desk.intents.capture_async((await till.row(order_id)).intent_id)
    await till.let_go(fault)
    assert (await undo).status is PaymentStatus.REFUNDED
    assert (await till.kept(order_id), await till.held(order_id)) == (0, 0)


async def test_an_old_answer_about_the_state_of_then_does_not_keep_the_money_held(till: Till) -> None:
    order_id = await till.order("pm_sim_never")
    slow_confirm = await till.hanging("confirm")
    late = asyncio.create_task(till.authorize(order_id))
    await till.until_held_up(slow_confirm)
    slow_cancel = await till.hanging("cancel")
    undo = asyncio.create_task(till.release(order_id))
    await till.until_held_up(slow_cancel)
    await till.let_go(slow_confirm)
    intent_id = (await late).intent_id
    await till.let_go(slow_cancel)
    with pytest.raises(PaymentServiceUnavailable):
        await undo
    # The gateway now keeps "it is processing" under the key of the cancel.
    await till.desk.control("POST", f"intents/{intent_id}/authenticate", outcome="success")
    assert await till.held(order_id) == DUE
    assert (await till.release(order_id)).status is PaymentStatus.VOIDED
    assert await till.held(order_id) == 0


async def test_a_payment_that_still_processes_is_not_forgotten(till: Till) -> None:
    order_id = await till.order("pm_sim_never")
    view = await till.authorize(order_id)
    # Asked to cancel now, the gateway would keep its "no" under every key, and tell it again when it is true no more.
    for _ in range(KEYS + 1):
        with pytest.raises(PaymentServiceUnavailable):
            await till.release(order_id)
    assert await till.calls(order_id, "cancel") == []
    assert ("release_payment", "done") not in await till.stamps(order_id)
    await till.desk.control("POST", f"intents/{view.intent_id}/authenticate", outcome="success")
    assert (await till.release(order_id)).status is PaymentStatus.VOIDED
    assert await till.held(order_id) == 0


async def test_a_hold_that_only_the_undo_has_seen_is_not_told_as_done_after_it(till: Till) -> None:
    order_id = await till.order("pm_sim_never")
    view = await till.authorize(order_id)
    await till.desk.control("POST", f"intents/{view.intent_id}/authenticate", outcome="success")
    assert (await till.release(order_id)).status is PaymentStatus.VOIDED
    assert await till.movements(order_id) == [("authorized", DUE), ("voided", DUE)]
    assert ("authorize_payment", "done") not in await till.stamps(order_id)


async def test_a_refund_is_pending_until_the_bank_says_so(till: Till) -> None:
    order_id, refund_id = await a_pending_refund(till)
    row = await till.row(order_id)
    assert (row.status, row.refunded) == ("REFUND_PENDING", 0)
    assert ("release_payment", "done") not in await till.stamps(order_id)
    await till.desk.control("POST", f"refunds/{refund_id}", status="succeeded")
    assert (await till.release(order_id)).status is PaymentStatus.REFUNDED
    assert (await till.row(order_id)).refunded == DUE
    assert len(await till.calls(order_id, "refund")) == 1


async def test_a_refund_that_comes_back_is_owed_until_an_operator_asks_for_another(till: Till) -> None:
    order_id, refund_id = await a_pending_refund(till)
    await till.desk.control("POST", f"refunds/{refund_id}", status="failed")
    for _ in range(2):
        with pytest.raises(RefundFailed):
            await till.release(order_id)
    assert await till.kept(order_id) == DUE
    assert (await till.row(order_id)).status == "CAPTURED"
    assert (await till.release(order_id, revision=2)).status is PaymentStatus.REFUNDED
    assert await till.refund_rows(order_id) == [("failed", DUE), ("succeeded", DUE)]
    assert await till.kept(order_id) == 0


async def test_an_old_reading_that_is_recorded_late_takes_nothing_back(till: Till) -> None:
    order_id = await till.a_held_order()
    fault = await till.hanging("read")
    late = asyncio.create_task(till.read(order_id))
    await till.until_held_up(fault)
    await till.capture(order_id)
    await till.let_go(fault)
    await late
    row = await till.row(order_id)
    assert (row.status, row.authorized, row.captured) == ("CAPTURED", DUE, DUE)


async def a_refund_that_fails(till: Till, order_id: str, revision: int, *, of_run: str) -> None:
    """This retry asks for a refund, the bank takes it and then sends the money back."""
    await till.desk.fault(op="refund", mode="pending")
    assert (await till.release(order_id, revision, of_run=of_run)).status is PaymentStatus.REFUND_PENDING
    refunds = await till.gateway.list_refunds((await till.row(order_id)).intent_id)
    (pending,) = [refund for refund in refunds if refund.status is RefundStatus.PENDING]
    await till.desk.control("POST", f"refunds/{pending.id}", status="failed")


async def test_each_retry_by_an_operator_makes_exactly_one_new_refund_however_many_failed_before(till: Till) -> None:
    order_id = await till.a_captured_order()
    for revision in (1, 2, 3):
        await a_refund_that_fails(till, order_id, revision, of_run="saga")
        for _ in range(2):
            with pytest.raises(RefundFailed):
                await till.release(order_id, revision, of_run="saga")
    # A later run begins at its first revision: nobody has asked it for a refund yet.
    with pytest.raises(RefundFailed):
        await till.release(order_id, of_run="late money")
    await a_refund_that_fails(till, order_id, 2, of_run="late money")
    for run, revision in (("late money", 2), ("late money", 1), ("saga", 3), ("saga", 2)):
        with pytest.raises(RefundFailed):
            await till.release(order_id, revision, of_run=run)
    assert (await till.release(order_id, 3, of_run="late money")).status is PaymentStatus.REFUNDED
    assert sorted(await till.refund_rows(order_id)) == [("failed", DUE)] * 4 + [("succeeded", DUE)]
    assert await till.kept(order_id) == 0


async def test_two_retries_at_once_of_a_failed_refund_give_the_money_back_once(till: Till) -> None:
    order_id = await till.a_captured_order()
    await a_refund_that_fails(till, order_id, 1, of_run="saga")
    retries = (till.release(order_id, revision, of_run=run) for run in ("saga", "late money") for revision in (2, 2))
    await asyncio.gather(*retries, return_exceptions=True)
    assert (await till.release(order_id, 2, of_run="saga")).status is PaymentStatus.REFUNDED
    assert sorted(await till.refund_rows(order_id)) == [("failed", DUE), ("succeeded", DUE)]
    assert await till.kept(order_id) == 0


async def test_an_undo_without_an_answer_is_told_as_unknown_and_then_as_done(till: Till) -> None:
    order_id = await till.a_captured_order()
    await till.desk.fault(op="refund", mode="drop")
    with pytest.raises(PaymentServiceUnavailable):
        await till.release(order_id)
    stamps = await till.stamps(order_id)
    assert {("release_payment", "intended"), ("release_payment", "unknown")} <= stamps
    assert ("release_payment", "done") not in stamps
    await till.release(order_id)
    assert ("release_payment", "done") in await till.stamps(order_id)
