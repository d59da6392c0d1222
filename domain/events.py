"""The facts that the shop tells the world, with CloudEvents 1.0's attribute names.

Ids, amounts and enums only. Each is written to the outbox in the transaction that made it true, under an id that
says which fact it is: the same fact cannot be told twice.
"""

from enum import StrEnum

from pydantic import BaseModel, ConfigDict

from domain.order import CancelReason, OrderStatus


class EventType(StrEnum):
    """CloudEvents `type`."""

    ORDER_SUBMITTED = "OrderSubmitted"
    ORDER_CONFIRMED = "OrderConfirmed"
    ORDER_CANCELLED = "OrderCancelled"
    ORDER_REJECTED = "OrderRejected"
    ORDER_REFUNDED = "OrderRefunded"
    PAYMENT_REFUNDED = "PaymentRefunded"


#: The stage that each fact announces. An order gets one of the first three, once.
STAGE_EVENTS: dict[OrderStatus, EventType] = {
    OrderStatus.CONFIRMED: EventType.ORDER_CONFIRMED,
    OrderStatus.CANCELLED_COMPENSATED: EventType.ORDER_CANCELLED,
    OrderStatus.REJECTED: EventType.ORDER_REJECTED,
    OrderStatus.REFUNDED: EventType.ORDER_REFUNDED,
}


class OrderFacts(BaseModel):
    """CloudEvents `data`: one shape for every event of an order, on every route to it. Amounts in smallest units."""

    model_config = ConfigDict(frozen=True)

    order_id: str
    customer_id: str
    currency: str
    total: int
    points: int
    store_credit: int
    amount_due: int
    reason: CancelReason | None = None


class RefundFacts(BaseModel):
    """CloudEvents `data` of one refund that arrived. Amounts in smallest units."""

    model_config = ConfigDict(frozen=True)

    order_id: str
    customer_id: str
    refund_id: str
    currency: str
    amount: int


class OrderEvent(BaseModel):
    """One event about one order (`subject`)."""

    model_config = ConfigDict(frozen=True)

    id: str
    type: EventType
    subject: str
    data: OrderFacts | RefundFacts


def event_id(order_id: str, type_: EventType) -> str:
    """`<order>:<type>`: one fact of a kind an order."""
    return f"{order_id}:{type_}"


def order_event(type_: EventType, facts: OrderFacts) -> OrderEvent:
    """The event under its id."""
    return OrderEvent(id=event_id(facts.order_id, type_), type=type_, subject=facts.order_id, data=facts)


def refund_event(facts: RefundFacts) -> OrderEvent:
    """One refund's event: an order may have several, each told once."""
    type_ = EventType.PAYMENT_REFUNDED
    identity = f"{event_id(facts.order_id, type_)}:{facts.refund_id}"
    return OrderEvent(id=identity, type=type_, subject=facts.order_id, data=facts)
