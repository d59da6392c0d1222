"""What an order looks like from outside: to the shopper, to the operator, to the command line.

`shopper_message` is the one place that words a status for the shopper. It promises nothing before CONFIRMED and says
where the money is as far as the gateway told us, no further.
"""

from datetime import datetime
from typing import Any

from pydantic import BaseModel, ConfigDict

from domain.order import SOLD_STATUSES, CancelReason, OrderStatus, ParkKind, PaymentStatus, ShipmentStatus


class _View(BaseModel):
    model_config = ConfigDict(frozen=True)


class LineView(_View):
    """One line. `unit_price` is null where the catalogue has no such SKU."""

    sku: str
    quantity: int
    unit_price: int | None


class PaymentSummary(_View):
    """The order's money as the gateway last told it, in the currency's smallest unit."""

    id: str | None = None
    status: PaymentStatus = PaymentStatus.NONE
    authorized: int = 0
    captured: int = 0
    refunded: int = 0
    next_action: dict[str, Any] | None = None


class ShipmentView(_View):
    """One parcel under the courier's id."""

    id: str
    warehouse: str
    status: ShipmentStatus


class NeedsReview(_View):
    """One step that waits for a person or for a dependency. `error` is a class name."""

    step: str
    item: str = ""
    kind: ParkKind
    error: str
    since: datetime


class OrderView(_View):
    """The answer of `GET /orders/{id}`. No personal data."""

    order_id: str
    customer_id: str
    status: OrderStatus
    reason: CancelReason | None
    message: str
    currency: str
    total: int
    amount_due: int
    lines: list[LineView]
    payment: PaymentSummary
    shipments: list[ShipmentView]
    needs_review: list[NeedsReview]
    created_at: datetime
    updated_at: datetime


class TimelineLine(_View):
    """One line of `GET /orders/{id}/timeline`: a stamp of a step, or a review that opened or closed."""

    at: datetime
    step: str
    item: str = ""
    state: str
    attempt: int
    actor: str
    reason: str | None


class OrderSummary(_View):
    """One order in a list."""

    order_id: str
    customer_id: str
    status: OrderStatus
    reason: CancelReason | None
    currency: str
    total: int
    amount_due: int
    created_at: datetime


_STAGE_WORDS = {
    OrderStatus.PENDING: "We have received your order and are checking it.",
    OrderStatus.AWAITING_REVIEW: "A colleague is looking at your order before we accept it.",
    OrderStatus.AWAITING_PAYMENT: "We are waiting for your payment.",
    OrderStatus.CONFIRMED: "Your order is confirmed.",
    OrderStatus.REFUNDED: "Your order was refunded.",
    OrderStatus.COMPENSATING: "Your order is being cancelled",
    OrderStatus.CANCELLED_COMPENSATED: "Your order was cancelled",
    OrderStatus.REJECTED: "We could not accept your order",
    OrderStatus.NEEDS_REVIEW: "We are looking into a problem with your order. Please do not order again.",
}

_REASON_WORDS = {
    CancelReason.OUT_OF_STOCK: "something in it is sold out",
    CancelReason.INSUFFICIENT_POINTS: "you do not have enough points",
    CancelReason.INSUFFICIENT_CREDIT: "you do not have enough store credit",
    CancelReason.CARD_DECLINED: "your card was declined",
    CancelReason.FRAUD_BLOCKED: "the payment was not accepted",
    CancelReason.AUTHENTICATION_FAILED: "your bank could not confirm that it was you",
    CancelReason.PAYMENT_TIMED_OUT: "the payment was not completed in time",
    CancelReason.AUTHORIZATION_EXPIRED: "the amount set aside on your card expired",
    CancelReason.CAPTURE_FAILED: "the payment could not be completed",
    CancelReason.NO_SERVICE_TO_ADDRESS: "our courier does not deliver to this address",
    CancelReason.COURIER_UNAVAILABLE: "no courier could take it",
    CancelReason.REVIEW_REJECTED: "it did not pass our checks",
    CancelReason.REVIEW_TIMED_OUT: "we could not check it in time",
    CancelReason.CANCELLED_BY_CUSTOMER: "you asked us to",
    CancelReason.CANCELLED_BY_OPERATOR: "we had to",
    CancelReason.UNKNOWN_SKU: "we do not sell something in it",
    CancelReason.SERVICE_UNAVAILABLE: "a service that we need did not answer",
}

_MONEY_WORDS = {
    PaymentStatus.NONE: "Nothing was taken from your card.",
    PaymentStatus.REQUIRES_ACTION: "Your bank wants you to confirm the payment.",
    PaymentStatus.PROCESSING: "Your bank is still working on the payment.",
    PaymentStatus.AUTHORIZED: "The amount is set aside on your card and not charged yet.",
    PaymentStatus.CAPTURED: "Your card has been charged.",
    PaymentStatus.VOIDED: "Your card was not charged; an amount set aside is free again.",
    PaymentStatus.DECLINED: "Your card was not charged.",
    PaymentStatus.REFUND_PENDING: "Your refund is on its way and not confirmed by the bank yet.",
    PaymentStatus.REFUNDED: "Your money was sent back to your card.",
    PaymentStatus.DISPUTED: "The payment is in dispute with your bank.",
    PaymentStatus.UNKNOWN: "We are asking the bank what became of the payment.",
}

_UNDONE_MONEY_WORDS = _MONEY_WORDS | {
    PaymentStatus.REQUIRES_ACTION: "Please do not confirm the payment any more.",
    PaymentStatus.PROCESSING: "Your bank is still working on the payment; whatever it takes, you get back.",
    PaymentStatus.AUTHORIZED: "The amount set aside on your card is being freed.",
    PaymentStatus.CAPTURED: "Your card was charged, and you get the money back.",
    PaymentStatus.UNKNOWN: "We are asking the bank what became of the payment; whatever it took, you get back.",
}

_UNDONE = frozenset({OrderStatus.COMPENSATING, OrderStatus.CANCELLED_COMPENSATED, OrderStatus.REJECTED})
#: The intent is on record and its confirmation may be under way: NONE does not mean that nothing was taken.
_MONEY_UNDER_WAY = frozenset({OrderStatus.AWAITING_PAYMENT, OrderStatus.NEEDS_REVIEW, OrderStatus.COMPENSATING})


def is_undone(status: OrderStatus, reason: CancelReason | None) -> bool:
    """The order is being undone or was: also under a park, where only its reason tells."""
    return status in _UNDONE or (status is OrderStatus.NEEDS_REVIEW and reason is not None)


def shopper_message(status: OrderStatus, reason: CancelReason | None, payment: PaymentStatus, amount_due: int) -> str:
    """The honest word to the shopper: what became of the order, why, and where the money is."""
    words = _STAGE_WORDS[status]
    money = _UNDONE_MONEY_WORDS if is_undone(status, reason) else _MONEY_WORDS
    if status in _UNDONE:
        words += f": {_REASON_WORDS[reason]}." if reason else "."
    if payment is not PaymentStatus.NONE:
        return f"{words} {money[payment]}"
    if status in SOLD_STATUSES:
        return words if amount_due else f"{words} There was nothing left to pay."
    return words if status in _MONEY_UNDER_WAY else f"{words} {_MONEY_WORDS[payment]}"
