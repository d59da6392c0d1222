"""Every name that crosses a process boundary in Temporal: queues, ids, search attributes."""

from enum import StrEnum

from temporalio.common import SearchAttributeKey


class Queue(StrEnum):
    """One task queue a party, so that a party's worker can run alone with its own role and secrets."""

    ORDERS = "orders"
    INVENTORY = "inventory"
    LOYALTY = "loyalty"
    PAYMENTS = "payments"
    SHIPPING = "shipping"


ORDER_STATUS = SearchAttributeKey.for_keyword("OrderStatus")
CUSTOMER_ID = SearchAttributeKey.for_keyword("CustomerId")
CANCEL_REASON = SearchAttributeKey.for_keyword("CancelReason")
ORDER_TOTAL = SearchAttributeKey.for_int("OrderTotal")
PARKED_STEP = SearchAttributeKey.for_keyword_list("ParkedStep")

SEARCH_ATTRIBUTES = (ORDER_STATUS, CUSTOMER_ID, CANCEL_REASON, ORDER_TOTAL, PARKED_STEP)


def order_workflow_id(order_id: str) -> str:
    """The id under which an order's saga runs, once."""
    return f"order-{order_id}"


def refund_workflow_id(order_id: str, refund_id: str) -> str:
    """The id under which an operator's refund runs, once for each key."""
    return f"refund-{order_id}-{refund_id}"


def money_workflow_id(intent_id: str) -> str:
    """The id under which late money on one intent is handled."""
    return f"money-{intent_id}"


def leftovers_workflow_id(order_id: str) -> str:
    """The id under which what an undone order still has is given back."""
    return f"leftovers-{order_id}"
