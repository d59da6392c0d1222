"""The shopper's money at the gateway: held once, taken once, given back once."""

from pathlib import Path

from tests.guards.removal import MARKS, Removal, assert_missed, each

PAYMENTS, RECORDS = "activities/payments.py", "adapters/payments.py"
HOLDING = "tests/integration/test_payments_authorize.py"
TAKING = "tests/integration/test_payments_capture.py"
RETURNING = "tests/integration/test_payments_release.py"
LATE = "tests/integration/test_payments_late_money.py"
READINGS = "tests/integration/test_payments_readings.py"

REMOVALS = (
    Removal(
        "no attempt to hold after the undo",
        "the gateway is asked for the money of an order that is undone",
        PAYMENTS,
        old="            await enter_forward(connection, key)\n            terms",
        new="            await enter(connection, key)\n            terms",
        proof=f"{HOLDING}::test_an_attempt_after_the_undo_is_refused_before_it_reaches_the_gateway",
    ),
    Removal(
        "an undo of the payment leaves a tombstone where nothing was",
        "a late attempt holds money that nobody knows of",
        PAYMENTS,
        old="            await stamp(connection, forward, StepState.UNDONE, provider_reference=intent_id)\n",
        new="",
        proof=f"{HOLDING}::test_an_attempt_after_the_undo_is_refused_before_it_reaches_the_gateway",
    ),
    Removal(
        "an intent is stored behind the fence before it is confirmed",
        "an attempt that hung while its order was undone holds money that nobody knows of",
        PAYMENTS,
        old="                await enter_forward(connection, key)\n                stored",
        new="                await enter(connection, key)\n                stored",
        proof=f"{HOLDING}::test_an_attempt_that_hangs_while_the_order_is_undone_cannot_hold_money[create]",
    ),
    Removal(
        "one intent an order",
        "two attempts under different keys each hold the money",
        PAYMENTS,
        old="return intent if stored == intent.id else await self._gateway.read_intent(stored)",
        new="return intent",
        proof=f"{HOLDING}::test_an_attempt_that_hangs_while_the_next_key_is_asked_holds_the_money_once",
    ),
    Removal(
        "an intent over another amount is not ours",
        "the shopper pays what nobody ordered",
        RECORDS,
        old="intent.amount == terms.amount and intent.currency",
        new="intent.currency",
        proof=f"{HOLDING}::test_an_intent_over_other_terms_is_never_confirmed[amount]",
    ),
    Removal(
        "an intent in another currency is not ours",
        "the shopper pays 50.00 of something else",
        RECORDS,
        old=" and intent.currency == terms.currency",
        new="",
        proof=f"{HOLDING}::test_an_intent_over_other_terms_is_never_confirmed[currency]",
    ),
    Removal(
        "an intent that names another order is not ours",
        "two orders are paid by one intent",
        RECORDS,
        old="ours = intent.order_id in {None, order_id}",
        new="ours = True",
        proof=f"{HOLDING}::test_an_intent_over_other_terms_is_never_confirmed[order]",
    ),
    Removal(
        "only the whole amount is a payment",
        "an order is sold for a part of its price",
        RECORDS,
        old="whole = intent.status is not IntentStatus.SUCCEEDED or intent.amount_received == terms.amount",
        new="whole = True",
        proof=f"{TAKING}::test_a_capture_over_another_amount_is_not_ours_to_go_on_with",
    ),
    Removal(
        "a confirmed intent is only read",
        "a declined card is asked again",
        PAYMENTS,
        old="                if intent.unconfirmed:\n",
        new="                if True:\n",
        proof=f"{HOLDING}::test_a_declined_card_is_refused_and_asked_only_once[pm_card_chargeDeclined-CardDeclined]",
    ),
    Removal(
        "a late refusal says nothing about money that is held",
        "a payment is told as declined whose money is held",
        RECORDS,
        old="payments.c.order_id == order_id, payments.c.authorized == 0)",
        new="payments.c.order_id == order_id)",
        proof=f"{READINGS}::test_a_refusal_that_is_recorded_late_says_nothing_about_money_that_is_held",
    ),
    Removal(
        "no capture after the undo",
        "the gateway is asked to take the money of an order that is undone",
        PAYMENTS,
        old="await enter_forward(connection, forward)",
        new="await enter(connection, forward)",
        proof=f"{TAKING}::test_after_the_undo_a_capture_is_refused_before_it_reaches_the_gateway",
    ),
    Removal(
        "a capture is looked up before it is asked for",
        "money that is taken is asked for again",
        PAYMENTS,
        old="                if intent.status is IntentStatus.REQUIRES_CAPTURE:\n",
        new="                if True:\n",
        proof=f"{TAKING}::test_capturing_twice_takes_the_money_once_and_asks_once",
    ),
    Removal(
        "a payment that processes is not cancelled in vain",
        "the answers of then stand under every key, and the hold that comes of it stays",
        PAYMENTS,
        old="            if intent.status is IntentStatus.PROCESSING:\n",
        new="            if False:\n",
        proof=f"{RETURNING}::test_a_payment_that_still_processes_is_not_forgotten",
    ),
    Removal(
        "after its tombstone a hold is not told as done",
        "whoever reads the order's timeline believes that its money is held",
        PAYMENTS,
        old="            if stamps.undone:\n                return view\n",
        new="",
        proof=f"{RETURNING}::test_a_hold_that_only_the_undo_has_seen_is_not_told_as_done_after_it",
    ),
    Removal(
        "only what is owed is refunded",
        "what was given back by hand is given back again",
        PAYMENTS,
        old="owed = intent.amount_received - sum(r.amount for r in refunds if r.status is not RefundStatus.FAILED)",
        new="owed = intent.amount_received",
        proof=f"{RETURNING}::test_only_what_was_not_given_back_already_is_refunded",
    ),
    Removal(
        "a refund that came back is a person's to repeat",
        "the shop sends money again and again to an account that is closed",
        PAYMENTS,
        old="        if failed >= number:\n",
        new="        if False:\n",
        proof=f"{RETURNING}::test_a_refund_that_comes_back_is_owed_until_an_operator_asks_for_another",
    ),
    Removal(
        "one retry allows one refund",
        "an attempt of a retry that is repeated asks for one more each time",
        RECORDS,
        old="    return int((await connection.execute(given)).scalar_one())",
        new="    return failed + 1",
        proof=f"{RETURNING}::test_each_retry_by_an_operator_makes_exactly_one_new_refund_however_many_failed_before",
    ),
    Removal(
        "an older reading takes no money out of the books",
        "a reading that is recorded late tells captured money as not taken",
        RECORDS,
        old="captured = max(row.captured, intent.amount_received)",
        new="captured = intent.amount_received",
        proof=f"{READINGS}::test_an_older_reading_that_is_recorded_later_takes_nothing_back",
    ),
    Removal(
        "a status never goes back",
        "a payment that was let go is told as held",
        RECORDS,
        old="    return told if _RANKS.get(told, 0) >= _RANKS.get(recorded, 0) else recorded",
        new="    return told",
        proof=f"{READINGS}::test_an_older_reading_that_is_recorded_later_takes_nothing_back",
    ),
    Removal(
        "a refund's status never goes back",
        "a refund that the bank sent back is told as arrived",
        RECORDS,
        old="_REFUND_RANKS[refund.status] <= _REFUND_RANKS[before]:",
        new="refund.status is before:",
        proof=f"{READINGS}::test_an_older_reading_of_a_refund_that_is_recorded_later_takes_nothing_back",
    ),
    Removal(
        "readings of one payment are recorded one by one",
        "the older of two readings at once overwrites the newer",
        RECORDS,
        old="where(payments.c.order_id == order_id).with_for_update())).one()",
        new="where(payments.c.order_id == order_id))).one()",
        proof=f"{READINGS}::test_two_readings_at_once_are_recorded_one_after_the_other",
    ),
    Removal(
        "the deadline is decided by the gateway",
        "a hold that the gateway has is ended because our clock says so",
        PAYMENTS,
        old="            if intent.status in WAITING_FOR_THE_SHOPPER:\n",
        new="            if True:\n",
        proof=f"{LATE}::test_at_the_deadline_a_hold_is_left_as_it_is",
    ),
    Removal(
        "late money of another intent is left alone",
        "an event that names the wrong order moves that order's money",
        "activities/late_money.py",
        old="        if intent_id != money.intent_id:\n",
        new="        if False:\n",
        proof=f"{LATE}::test_an_intent_that_is_not_the_orders_own_is_never_touched",
    ),
)

pytestmark = MARKS


@each(REMOVALS)
def test_without_it_a_test_goes_red(removal: Removal, tmp_path: Path) -> None:
    assert_missed(removal, tmp_path / "copy")
