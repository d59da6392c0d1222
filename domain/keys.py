"""Keys of effects: one effect, one key, from the order's id alone.

Everything that must happen once is found again by its key: the row in `order_steps`, the movement in a ledger, the
idempotency key at the gateway, the reference at the courier.
"""

import base64
import hashlib
import re
from dataclasses import dataclass
from enum import StrEnum

from domain.order import RedriveAction


class Step(StrEnum):
    """The steps of the saga, their undos and look-ups, by the name of their activity.

    `await_payment` is a wait of the workflow and has no activity; an order can be parked there.
    """

    OPEN_ORDER = "open_order"
    SCREEN_ORDER = "screen_order"
    RESERVE_STOCK = "reserve_stock"
    BURN_POINTS = "burn_points"
    APPLY_STORE_CREDIT = "apply_store_credit"
    AUTHORIZE_PAYMENT = "authorize_payment"
    READ_PAYMENT = "read_payment"
    ABANDON_PAYMENT = "abandon_payment"
    AWAIT_PAYMENT = "await_payment"
    BOOK_SHIPMENT = "book_shipment"
    CAPTURE_PAYMENT = "capture_payment"
    CONFIRM_ORDER = "confirm_order"
    COMMIT_STOCK = "commit_stock"
    RELEASE_STOCK = "release_stock"
    RESTORE_POINTS = "restore_points"
    REFUND_STORE_CREDIT = "refund_store_credit"
    RELEASE_PAYMENT = "release_payment"
    CANCEL_SHIPMENT = "cancel_shipment"
    SETTLE_LATE_MONEY = "settle_late_money"
    OPEN_REFUND = "open_refund"
    REFUND_PAYMENT = "refund_payment"
    RECORD_REFUND = "record_refund"
    RECORD_STATUS = "record_status"
    RECORD_DECISION = "record_decision"
    PARK_STEP = "park_step"
    CLOSE_PARK = "close_park"


#: What can stand in a key, a workflow's id and a metadata field as it is.
_PLAIN = re.compile(r"[A-Za-z0-9._-]{1,64}", re.ASCII)


@dataclass(frozen=True)
class EffectKey:
    """`<order>:<step>[:<item>]:<revision>`. The item tells the shipments of one order apart (their warehouse)."""

    order_id: str
    step: Step
    item: str = ""
    revision: int = 1

    def __str__(self) -> str:
        parts = [self.order_id, self.step.value, self.item, str(self.revision)]
        return ":".join(part for part in parts if part)


def order_id_for(caller: str, idempotency_key: str) -> str:
    """The order id that (caller, key) always gives: 120 bits of SHA-256 in lower-case base32."""
    digest = hashlib.sha256(f"{caller}\0{idempotency_key}".encode()).digest()
    return base64.b32encode(digest[:15]).decode().lower()


def shipment_reference(order_id: str, warehouse: str) -> str:
    """Our reference at the courier: one booking an order and warehouse, whoever asks and how often."""
    return f"{order_id}:{warehouse}"


def refund_id_for(idempotency_key: str) -> str:
    """The name of an operator's refund within its order: the key itself where it is short and plain, else its hash."""
    if _PLAIN.fullmatch(idempotency_key):
        return idempotency_key
    return base64.b32encode(hashlib.sha256(idempotency_key.encode()).digest()[:15]).decode().lower()


#: Where an order can stand still until somebody or something moves it: each has its entry in docs/runbook.md.
PARKING = tuple(
    step
    for step in Step
    if step
    not in {
        Step.SCREEN_ORDER,
        Step.READ_PAYMENT,
        Step.ABANDON_PAYMENT,
        Step.RECORD_STATUS,
        Step.RECORD_DECISION,
        Step.OPEN_REFUND,
        Step.RECORD_REFUND,
        Step.PARK_STEP,
        Step.CLOSE_PARK,
    }
)

#: Each compensatable step and its undo, in the order of the saga.
UNDO_OF = {
    Step.RESERVE_STOCK: Step.RELEASE_STOCK,
    Step.BURN_POINTS: Step.RESTORE_POINTS,
    Step.APPLY_STORE_CREDIT: Step.REFUND_STORE_CREDIT,
    Step.AUTHORIZE_PAYMENT: Step.RELEASE_PAYMENT,
    Step.BOOK_SHIPMENT: Step.CANCEL_SHIPMENT,
}

#: Parks where the money's state decides whether the order can be undone.
PAYMENT_STEPS = frozenset({Step.AUTHORIZE_PAYMENT, Step.AWAIT_PAYMENT, Step.CAPTURE_PAYMENT})

#: Parks with no way back: what is to be done there was promised, or is owed.
_FORWARD_ONLY = frozenset({Step.CONFIRM_ORDER, Step.COMMIT_STOCK})
_OWED = frozenset({*UNDO_OF.values(), Step.SETTLE_LATE_MONEY, Step.REFUND_PAYMENT})


def actions_at(step: Step) -> frozenset[RedriveAction]:
    """What an operator may tell a step that is parked."""
    if step in _FORWARD_ONLY:
        return frozenset({RedriveAction.RETRY})
    if step in _OWED:
        return frozenset({RedriveAction.RETRY, RedriveAction.SKIP})
    return frozenset({RedriveAction.RETRY, RedriveAction.COMPENSATE})
