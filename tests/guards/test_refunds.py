"""What operators give back, and captured money that does not stay."""

from pathlib import Path

from tests.guards.removal import MARKS, Removal, assert_missed, each

ASKED = "adapters/refunds.py"
REFUNDS = "tests/integration/test_payments_refunds.py"
BY_HTTP = "tests/workflows/test_refunds.py"

REMOVALS = (
    Removal(
        "refunds of one order pass one by one",
        "two operators at once give back more than was taken",
        ASKED,
        old="where(payments.c.order_id == order_id).with_for_update()\n    payment",
        new="where(payments.c.order_id == order_id)\n    payment",
        proof=f"{REFUNDS}::test_of_two_refunds_at_once_the_second_sees_the_first",
    ),
    Removal(
        "refunds stay within what was captured",
        "an operator gives back more than was taken",
        ASKED,
        old="if refusal is None and not 0 < amount <= left:",
        new="if refusal is None and not 0 < amount:",
        proof=f"{BY_HTTP}::test_partial_refunds_leave_the_order_confirmed_until_all_is_back",
    ),
    Removal(
        "one refund is decided before the next",
        "a refund that may come back is taken for one that has arrived",
        ASKED,
        old="return RefundRefusal.REFUND_OPEN if any(row.status in _UNDECIDED for row in rows.values()) else None",
        new="return None",
        proof=f"{REFUNDS}::test_of_two_refunds_at_once_the_second_sees_the_first",
    ),
    Removal(
        "disputed money is not refunded",
        "the shopper gets it back twice, from the bank and from us",
        ASKED,
        old="    if status is PaymentStatus.DISPUTED:\n",
        new="    if False:\n",
        proof=f"{REFUNDS}::test_disputed_money_is_not_refunded_and_a_reading_of_its_intent_does_not_clear_it_up",
    ),
    Removal(
        "a reading clears up no dispute",
        "the next event tells disputed money as captured, and it can be refunded",
        "adapters/payments.py",
        old="status = recorded if recorded in UNSETTLED else captured_status(captured, refunded, pending)",
        new="status = captured_status(captured, refunded, pending)",
        proof=f"{REFUNDS}::test_disputed_money_is_not_refunded_and_a_reading_of_its_intent_does_not_clear_it_up",
    ),
    Removal(
        "a refund's name stands for its first answer",
        "a repeated request is an error, or a second refund",
        ASKED,
        old="    if first := rows.get(key):\n",
        new="    if first := None:\n",
        proof=f"{REFUNDS}::test_a_name_stands_for_the_first_refund_that_was_asked_for_by_it",
    ),
    Removal(
        "a retry of a refund stays within what was captured",
        "a refund that came back is repeated although another one has taken its place",
        ASKED,
        old="    if (await connection.execute(others)).scalar_one() + failed.amount > captured:\n",
        new="    if False:\n",
        proof=f"{REFUNDS}::test_a_retry_of_a_refund_that_came_back_finds_no_room_when_another_has_taken_it",
    ),
)

pytestmark = MARKS


@each(REMOVALS)
def test_without_it_a_test_goes_red(removal: Removal, tmp_path: Path) -> None:
    assert_missed(removal, tmp_path / "copy")
