"""What the shopper is told: never more than is known, and always where the money is."""

import itertools

import pytest

from domain.messages import OrderState, TimelineEntry
from domain.order import CancelReason, OrderStatus, PaymentStatus
from domain.views import shopper_message
from workflows.details import describe


@pytest.mark.parametrize(("status", "payment"), list(itertools.product(OrderStatus, PaymentStatus)))
def test_every_state_has_a_word_and_nothing_is_promised_before_confirmed(
    status: OrderStatus, payment: PaymentStatus
) -> None:
    message = shopper_message(status, None, payment, 4500)
    assert message.endswith(".")
    assert message.startswith("Your order is confirmed.") == (status is OrderStatus.CONFIRMED)


@pytest.mark.parametrize(
    ("payment", "mark"),
    [
        (PaymentStatus.REQUIRES_ACTION, "… waits for the gateway"),
        (PaymentStatus.PROCESSING, "… waits for the gateway"),
        (PaymentStatus.AUTHORIZED, "✓ done"),
    ],
)
def test_a_payment_that_nobody_holds_yet_is_not_called_done_in_the_web_ui(payment: PaymentStatus, mark: str) -> None:
    state = OrderState(status=OrderStatus.AWAITING_PAYMENT, reason=None, payment=payment, needs_review=[])
    timeline = [TimelineEntry(at="2026-11-30T12:00:00", step="authorize_payment", state="done")]
    assert f"| authorize_payment | {mark} |" in describe(None, state, timeline, [])


@pytest.mark.parametrize("reason", CancelReason)
def test_a_cancelled_order_says_why(reason: CancelReason) -> None:
    with_reason = shopper_message(OrderStatus.CANCELLED_COMPENSATED, reason, PaymentStatus.VOIDED, 4500)
    without = shopper_message(OrderStatus.CANCELLED_COMPENSATED, None, PaymentStatus.VOIDED, 4500)
    assert len(with_reason) > len(without)
    assert reason.value not in with_reason


def test_a_declined_card_was_not_charged() -> None:
    message = shopper_message(
        OrderStatus.CANCELLED_COMPENSATED, CancelReason.CARD_DECLINED, PaymentStatus.DECLINED, 4500
    )
    assert message == "Your order was cancelled: your card was declined. Your card was not charged."


def test_a_pending_refund_is_not_called_refunded() -> None:
    message = shopper_message(
        OrderStatus.CANCELLED_COMPENSATED, CancelReason.CANCELLED_BY_CUSTOMER, PaymentStatus.REFUND_PENDING, 4500
    )
    assert "not confirmed by the bank yet" in message


def test_while_a_payment_is_under_way_nobody_claims_that_nothing_was_taken() -> None:
    for status in (OrderStatus.AWAITING_PAYMENT, OrderStatus.NEEDS_REVIEW, OrderStatus.COMPENSATING):
        assert "Nothing was taken" not in shopper_message(status, None, PaymentStatus.NONE, 4500)


def test_an_undone_order_does_not_ask_the_shopper_to_confirm_the_payment() -> None:
    message = shopper_message(
        OrderStatus.COMPENSATING, CancelReason.PAYMENT_TIMED_OUT, PaymentStatus.REQUIRES_ACTION, 4500
    )
    assert "do not confirm the payment" in message


@pytest.mark.parametrize(
    ("payment", "word", "never"),
    [
        (PaymentStatus.REQUIRES_ACTION, "do not confirm the payment", "wants you to confirm"),
        (PaymentStatus.CAPTURED, "you get the money back", "has been charged"),
    ],
)
def test_an_order_that_is_parked_while_it_is_undone_tells_where_the_money_goes(
    payment: PaymentStatus, word: str, never: str
) -> None:
    undoing = shopper_message(OrderStatus.NEEDS_REVIEW, CancelReason.CANCELLED_BY_CUSTOMER, payment, 4500)
    assert word in undoing
    assert never not in undoing
    assert never in shopper_message(OrderStatus.NEEDS_REVIEW, None, payment, 4500)


def test_an_order_paid_by_points_had_nothing_left_to_pay() -> None:
    message = shopper_message(OrderStatus.CONFIRMED, None, PaymentStatus.NONE, 0)
    assert message == "Your order is confirmed. There was nothing left to pay."
