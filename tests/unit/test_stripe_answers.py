"""What Stripe's answers mean to us."""

from typing import Any

import pytest

from adapters.stripe_answers import RefundStatus, parse_intent, parse_refund, refusal_for
from domain.errors import AuthenticationFailed, CardDeclined, GatewayProtocolError, PaymentFraudBlocked, Refusal


def an_intent(**changes: Any) -> dict[str, Any]:
    intent = {
        "object": "payment_intent",
        "id": "pi_1",
        "status": "requires_capture",
        "amount": 4500,
        "amount_capturable": 4500,
        "amount_received": 0,
        "currency": "eur",
        "metadata": {"order_id": "o1"},
        "last_payment_error": None,
        "next_action": None,
        "cancellation_reason": None,
    }
    return intent | changes


def test_an_intent_is_read_with_its_order_and_an_upper_case_currency() -> None:
    intent = parse_intent(an_intent())
    assert (intent.id, intent.order_id, intent.amount, intent.currency) == ("pi_1", "o1", 4500, "EUR")


@pytest.mark.parametrize(
    "body",
    [
        None,
        [],
        "OK",
        {},
        an_intent(object="charge"),
        an_intent(id=None),
        an_intent(status="requires_patience"),
        an_intent(amount="4500"),
        an_intent(amount=True),
        an_intent(amount=-1),
        an_intent(amount_received=1.5),
        an_intent(currency=None),
    ],
)
def test_a_body_that_is_no_intent_is_unknown_and_never_success(body: object) -> None:
    with pytest.raises(GatewayProtocolError):
        parse_intent(body)


@pytest.mark.parametrize(
    ("status", "capturable", "received"),
    [("requires_confirmation", 0, 0), ("requires_capture", 4500, 0), ("succeeded", 0, 4500), ("canceled", 0, 0)],
)
def test_a_gateway_that_is_silent_on_sums_holds_or_took_the_whole_amount(
    status: str, capturable: int, received: int
) -> None:
    body = {name: value for name, value in an_intent(status=status).items() if not name.startswith("amount_")}
    intent = parse_intent(body)
    assert (intent.amount_capturable, intent.amount_received) == (capturable, received)


@pytest.mark.parametrize(
    ("error", "refusal"),
    [
        ({"code": "card_declined", "decline_code": "generic_decline"}, CardDeclined),
        ({"code": "expired_card"}, CardDeclined),
        ({}, CardDeclined),
        ({"code": "card_declined", "decline_code": "fraudulent"}, PaymentFraudBlocked),
        ({"code": "card_declined", "charge": {"outcome": {"type": "blocked"}}}, PaymentFraudBlocked),
        (
            {"code": "card_declined", "payment_intent": {"latest_charge": {"outcome": {"type": "blocked"}}}},
            PaymentFraudBlocked,
        ),
        ({"code": "payment_intent_authentication_failure"}, AuthenticationFailed),
        ({"code": "card_declined", "decline_code": "authentication_required"}, AuthenticationFailed),
    ],
)
def test_a_card_error_says_why_the_order_did_not_happen(error: dict[str, Any], refusal: type[Refusal]) -> None:
    assert refusal_for(error) is refusal


def test_only_an_intent_that_nobody_tried_to_pay_is_unconfirmed() -> None:
    assert parse_intent(an_intent(status="requires_confirmation")).unconfirmed
    assert parse_intent(an_intent(status="requires_payment_method")).unconfirmed
    declined = an_intent(status="requires_payment_method", last_payment_error={"code": "card_declined"})
    assert not parse_intent(declined).unconfirmed
    assert not parse_intent(an_intent(status="processing")).unconfirmed


@pytest.mark.parametrize(
    ("told", "kept"),
    [
        ("pending", RefundStatus.PENDING),
        ("requires_action", RefundStatus.PENDING),
        ("succeeded", RefundStatus.SUCCEEDED),
        ("failed", RefundStatus.FAILED),
        ("canceled", RefundStatus.FAILED),
    ],
)
def test_a_refund_is_back_only_when_the_provider_says_so(told: str, kept: RefundStatus) -> None:
    refund = {"object": "refund", "id": "re_1", "status": told, "amount": 100, "metadata": {"refund_key": "k"}}
    assert parse_refund(refund).status is kept


def test_a_refund_that_is_not_ours_goes_by_the_providers_id() -> None:
    refund = parse_refund({"object": "refund", "id": "re_1", "status": "succeeded", "amount": 100, "metadata": None})
    assert refund.refund_key == "re_1"


def test_a_refund_in_a_state_that_we_do_not_know_is_unknown() -> None:
    with pytest.raises(GatewayProtocolError):
        parse_refund({"object": "refund", "id": "re_1", "status": "lost in the post", "amount": 100})
