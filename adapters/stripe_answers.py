"""What Stripe's answers mean: intents and refunds as small values, card errors as refusals of ours.

Nothing here opens a socket, and no message of the provider is kept: ids, statuses, codes and amounts only.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from adapters.http import plain_code
from domain.errors import AuthenticationFailed, CardDeclined, GatewayProtocolError, PaymentFraudBlocked, Refusal


class IntentStatus(StrEnum):
    """Where a PaymentIntent stands (Stripe, "PaymentIntent lifecycle")."""

    REQUIRES_PAYMENT_METHOD = "requires_payment_method"
    REQUIRES_CONFIRMATION = "requires_confirmation"
    REQUIRES_ACTION = "requires_action"
    PROCESSING = "processing"
    REQUIRES_CAPTURE = "requires_capture"
    CANCELED = "canceled"
    SUCCEEDED = "succeeded"


@dataclass(frozen=True)
class Intent:
    """One reading of a PaymentIntent. Amounts in the smallest unit, currency in upper case."""

    id: str
    status: IntentStatus
    amount: int
    currency: str
    amount_capturable: int = 0
    amount_received: int = 0
    order_id: str | None = None
    cancellation_reason: str | None = None
    #: Why the last attempt to pay failed, where one did.
    refusal: type[Refusal] | None = None
    next_action: dict[str, object] | None = None

    @property
    def unconfirmed(self) -> bool:
        """Certainly never confirmed: no money has been asked for."""
        return self.refusal is None and self.status in {
            IntentStatus.REQUIRES_CONFIRMATION,
            IntentStatus.REQUIRES_PAYMENT_METHOD,
        }


class RefundStatus(StrEnum):
    """Whether the money is back, as we keep it (`requires_action` is pending, `canceled` is failed)."""

    PENDING = "pending"
    SUCCEEDED = "succeeded"
    FAILED = "failed"


@dataclass(frozen=True)
class Refund:
    """One reading of a refund. `refund_key` is ours, or the provider's id for a refund that was not made by us."""

    id: str
    status: RefundStatus
    amount: int
    refund_key: str
    intent_id: str | None = None


@dataclass(frozen=True)
class Dispute:
    """One reading of a dispute. `won`: the money stays ours; `closed`: the bank has decided."""

    id: str
    amount: int
    won: bool
    closed: bool


#: Stripe, "The dispute object": every other status is open.
_CLOSED_DISPUTES = frozenset({"won", "lost", "warning_closed", "prevented"})
_LOST_DISPUTE = "lost"


_REFUND_STATUSES = {
    "pending": RefundStatus.PENDING,
    "requires_action": RefundStatus.PENDING,
    "succeeded": RefundStatus.SUCCEEDED,
    "failed": RefundStatus.FAILED,
    "canceled": RefundStatus.FAILED,
}

_AUTHENTICATION_CODES = {"payment_intent_authentication_failure", "authentication_required"}


def parse_intent(body: object) -> Intent:
    """Raises GatewayProtocolError when this is no PaymentIntent that we understand."""
    data = _an_object(body, "payment_intent")
    status = _text(data, "status")
    if status not in set(IntentStatus):
        raise GatewayProtocolError("payment_intent.status")
    error, action, amount = data.get("last_payment_error"), data.get("next_action"), _number(data, "amount")
    return Intent(
        id=_text(data, "id"),
        status=IntentStatus(status),
        amount=amount,
        currency=_text(data, "currency").upper(),
        # Not saying how much it holds or took means all of it: read as nothing, the money would never go back.
        amount_capturable=_number(data, "amount_capturable", default=amount if status == "requires_capture" else 0),
        amount_received=_number(data, "amount_received", default=amount if status == "succeeded" else 0),
        order_id=_metadata(data).get("order_id"),
        cancellation_reason=plain_code(data.get("cancellation_reason")),
        refusal=refusal_for(error) if isinstance(error, dict) else None,
        next_action=action if isinstance(action, dict) else None,
    )


def parse_refund(body: object) -> Refund:
    """Raises GatewayProtocolError when this is no refund that we understand."""
    data = _an_object(body, "refund")
    status = _REFUND_STATUSES.get(_text(data, "status"))
    if status is None:
        raise GatewayProtocolError("refund.status")
    identity = _text(data, "id")
    intent_id, refund_key = data.get("payment_intent"), _metadata(data).get("refund_key") or identity
    return Refund(
        identity, status, _number(data, "amount"), refund_key, intent_id if isinstance(intent_id, str) else None
    )


def parse_dispute(body: object) -> Dispute:
    """Raises GatewayProtocolError when this is no dispute that we understand."""
    data = _an_object(body, "dispute")
    status = _text(data, "status")
    closed = status in _CLOSED_DISPUTES
    return Dispute(_text(data, "id"), _number(data, "amount"), closed and status != _LOST_DISPUTE, closed)


def refusal_for(error: Mapping[str, object]) -> type[Refusal]:
    """What a card error (of a 402, or an intent's `last_payment_error`) means for the order."""
    if error.get("code") in _AUTHENTICATION_CODES or error.get("decline_code") in _AUTHENTICATION_CODES:
        return AuthenticationFailed
    if error.get("decline_code") == "fraudulent" or _blocked(error):
        return PaymentFraudBlocked
    return CardDeclined


def _blocked(error: Mapping[str, object]) -> bool:
    intent = error.get("payment_intent")
    charge = intent.get("latest_charge") if isinstance(intent, dict) else error.get("charge")
    outcome = charge.get("outcome") if isinstance(charge, dict) else error.get("outcome")
    return isinstance(outcome, dict) and outcome.get("type") == "blocked"


def _an_object(body: object, kind: str) -> Mapping[str, object]:
    if not isinstance(body, Mapping) or body.get("object") != kind:
        raise GatewayProtocolError(f"not a {kind}")
    return body


def _text(data: Mapping[str, object], name: str) -> str:
    value = data.get(name)
    if not isinstance(value, str) or not value:
        raise GatewayProtocolError(name)
    return value


def _number(data: Mapping[str, object], name: str, *, default: int | None = None) -> int:
    value = data.get(name, default)
    if type(value) is not int or value < 0:
        raise GatewayProtocolError(name)
    return value


def _metadata(data: Mapping[str, object]) -> dict[str, str]:
    metadata = data.get("metadata")
    return {k: v for k, v in metadata.items() if isinstance(v, str)} if isinstance(metadata, Mapping) else {}
