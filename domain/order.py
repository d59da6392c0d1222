"""What an order is: its states, its reasons, and the one table of allowed changes.

The table `ALLOWED` is shared with the database: a migration writes it into `status_transitions`, and a trigger
refuses any pair that is not there. A test holds the two against each other.
"""

from enum import StrEnum


class OrderStatus(StrEnum):
    """Where an order stands, as the shopper and the operator see it."""

    PENDING = "PENDING"
    AWAITING_REVIEW = "AWAITING_REVIEW"
    AWAITING_PAYMENT = "AWAITING_PAYMENT"
    CONFIRMED = "CONFIRMED"
    REFUNDED = "REFUNDED"
    COMPENSATING = "COMPENSATING"
    CANCELLED_COMPENSATED = "CANCELLED_COMPENSATED"
    REJECTED = "REJECTED"
    NEEDS_REVIEW = "NEEDS_REVIEW"


class CancelReason(StrEnum):
    """Why an order did not happen. Never free text: mails, metrics and reports group by it."""

    OUT_OF_STOCK = "OUT_OF_STOCK"
    INSUFFICIENT_POINTS = "INSUFFICIENT_POINTS"
    INSUFFICIENT_CREDIT = "INSUFFICIENT_CREDIT"
    CARD_DECLINED = "CARD_DECLINED"
    FRAUD_BLOCKED = "FRAUD_BLOCKED"
    AUTHENTICATION_FAILED = "AUTHENTICATION_FAILED"
    PAYMENT_TIMED_OUT = "PAYMENT_TIMED_OUT"
    AUTHORIZATION_EXPIRED = "AUTHORIZATION_EXPIRED"
    CAPTURE_FAILED = "CAPTURE_FAILED"
    NO_SERVICE_TO_ADDRESS = "NO_SERVICE_TO_ADDRESS"
    COURIER_UNAVAILABLE = "COURIER_UNAVAILABLE"
    REVIEW_REJECTED = "REVIEW_REJECTED"
    REVIEW_TIMED_OUT = "REVIEW_TIMED_OUT"
    CANCELLED_BY_CUSTOMER = "CANCELLED_BY_CUSTOMER"
    CANCELLED_BY_OPERATOR = "CANCELLED_BY_OPERATOR"
    UNKNOWN_SKU = "UNKNOWN_SKU"
    SERVICE_UNAVAILABLE = "SERVICE_UNAVAILABLE"


class PaymentStatus(StrEnum):
    """What the gateway last said about the order's money."""

    NONE = "NONE"
    REQUIRES_ACTION = "REQUIRES_ACTION"
    PROCESSING = "PROCESSING"
    AUTHORIZED = "AUTHORIZED"
    CAPTURED = "CAPTURED"
    VOIDED = "VOIDED"
    DECLINED = "DECLINED"
    REFUND_PENDING = "REFUND_PENDING"
    REFUNDED = "REFUNDED"
    DISPUTED = "DISPUTED"
    UNKNOWN = "UNKNOWN"


class ShipmentStatus(StrEnum):
    """Where one parcel stands at the courier."""

    BOOKED = "BOOKED"
    CANCELLED = "CANCELLED"
    DISPATCHED = "DISPATCHED"
    DELIVERED = "DELIVERED"


class StepState(StrEnum):
    """What is known about one effect.

    `INTENDED` is written before a provider is called, `NOT_SERVED` when all calls so far certainly had no effect, and
    `UNKNOWN` when one ended without an answer.
    """

    INTENDED = "intended"
    NOT_SERVED = "not_served"
    DONE = "done"
    REFUSED = "refused"
    UNKNOWN = "unknown"
    UNDONE = "undone"
    WAIVED = "waived"


class ParkKind(StrEnum):
    """TECHNICAL retries by itself; DECISION moves only when an operator acts."""

    TECHNICAL = "TECHNICAL"
    DECISION = "DECISION"


#: The error of the park in which a run begins that follows one which somebody ended.
DEAD_RUN = "DeadRun"


class RedriveAction(StrEnum):
    """What an operator may tell a parked step to do."""

    RETRY = "retry"
    COMPENSATE = "compensate"
    SKIP = "skip"


class RefundRefusal(StrEnum):
    """Why an operator's refund is not begun. Nothing has moved then."""

    NOT_CONFIRMED = "not-confirmed"
    DISPUTED = "disputed"
    CONTRADICTED = "capture-contradicted"
    REFUND_OPEN = "refund-open"
    ABOVE_REST = "above-rest"


_S = OrderStatus

#: The stages an order can be parked in: NEEDS_REVIEW covers one of them and returns to it.
PARKABLE = frozenset({_S.PENDING, _S.AWAITING_REVIEW, _S.AWAITING_PAYMENT, _S.COMPENSATING})

#: Forward moves between stages. Nothing un-confirms an order.
FORWARD: dict[OrderStatus, frozenset[OrderStatus]] = {
    _S.PENDING: frozenset({_S.AWAITING_REVIEW, _S.AWAITING_PAYMENT, _S.CONFIRMED, _S.COMPENSATING, _S.REJECTED}),
    _S.AWAITING_REVIEW: frozenset({_S.AWAITING_PAYMENT, _S.CONFIRMED, _S.COMPENSATING, _S.REJECTED}),
    _S.AWAITING_PAYMENT: frozenset({_S.CONFIRMED, _S.COMPENSATING}),
    _S.COMPENSATING: frozenset({_S.CANCELLED_COMPENSATED}),
    _S.CONFIRMED: frozenset({_S.REFUNDED}),
}

#: Every pair of public statuses that may follow each other, parking included.
ALLOWED: frozenset[tuple[OrderStatus, OrderStatus]] = frozenset(
    {(old, new) for old, news in FORWARD.items() for new in news}
    | {(stage, _S.NEEDS_REVIEW) for stage in PARKABLE}
    | {(_S.NEEDS_REVIEW, new) for new in PARKABLE}
    | {(_S.NEEDS_REVIEW, new) for stage in PARKABLE for new in FORWARD[stage]}
)

#: The order did not happen: nothing was kept, nothing will ship.
UNDONE_STATUSES = frozenset({_S.CANCELLED_COMPENSATED, _S.REJECTED})

#: The order counts as sold.
SOLD_STATUSES = frozenset({_S.CONFIRMED, _S.REFUNDED})

#: No run of the saga is needed any more (CONFIRMED still commits its stock).
CLOSED_STATUSES = UNDONE_STATUSES | SOLD_STATUSES
