"""What travels between workflows and activities, and into workflows from outside.

Ids, amounts and enums only: histories are read by many people and kept for long, so no line, name or address is here.
"""

from datetime import datetime

from pydantic import BaseModel, ConfigDict

from domain.keys import Step
from domain.order import CancelReason, OrderStatus, ParkKind, PaymentStatus, RedriveAction, RefundRefusal
from domain.policy import OrderPolicy


class _Message(BaseModel):
    model_config = ConfigDict(frozen=True)


class OrderInput(_Message):
    """Starts one order's saga. The order itself stays in its table (claim check).

    `found_dead`: the order's run had ended before the order did; this one lets an operator decide first. `warehouses`:
    from where the courier has parcels of it, which our books may not know.
    """

    order_id: str
    found_dead: bool = False
    warehouses: list[str] = []


class OrderResult(_Message):
    """How an order ended."""

    order_id: str
    status: OrderStatus
    reason: CancelReason | None = None


class BegunEffect(_Message):
    """A step that an earlier run of the order has begun, or may have on its way: its undo may have work to do."""

    step: Step
    item: str = ""


class OpenedOrder(_Message):
    """The order as accepted: frozen amounts in the smallest unit, and the policy it runs under.

    `closed`: nothing is left to do, `status` and `reason` are the result. `begun`: what earlier runs of the order may
    have begun, in the order of the saga; empty in its first run.
    """

    order_id: str
    customer_id: str
    currency: str
    total: int
    amount_due: int
    points: int
    store_credit: int
    status: OrderStatus
    reason: CancelReason | None
    closed: bool
    policy: OrderPolicy
    correlation_id: str = ""
    begun: list[BegunEffect] = []


class StepInput(_Message):
    """One call of a step or an undo: the order, the part of it, and the revision of its key at the provider."""

    order_id: str
    revision: int = 1
    item: str = ""
    correlation_id: str = ""


class Screening(_Message):
    """The fraud scorer's word: 0 (good) to 100 (bad)."""

    score: int


class Reservation(_Message):
    """Stock is set aside in these warehouses, sorted."""

    warehouses: list[str]


class PaymentView(_Message):
    """The intent as the gateway tells it now. `reason` says why, when it was declined or voided."""

    status: PaymentStatus
    intent_id: str | None = None
    captured: int = 0
    refunded: int = 0
    reason: CancelReason | None = None
    #: The order's newest refund by an operator, by its name: its workflow wants to know of news, if it still runs.
    refund_under_way: str | None = None


class ShipmentBooked(_Message):
    """The courier's own id of the parcel."""

    warehouse: str
    shipment_id: str


class ShipmentCancelled(_Message):
    """The courier has no live parcel.

    `look_again_after_seconds` is set when it knew none although a booking was sent and never answered: the booking may
    still land, so the undo is called once more after that long.
    """

    look_again_after_seconds: float | None = None


class StatusChange(_Message):
    """A new stage of the order, written with its event in one transaction. `note` stands in the timeline only."""

    order_id: str
    status: OrderStatus
    reason: CancelReason | None = None
    actor: str = "system"
    note: str | None = None


class StatusRecorded(_Message):
    """The status that stands now: the one asked for, or the later one that was already there."""

    status: OrderStatus
    reason: CancelReason | None = None


class Redriven(_Message):
    """An operator's word that a parked step has followed, the `number`th of this park."""

    number: int
    actor: str
    action: RedriveAction
    reason: str


class ParkedStep(_Message):
    """A step that cannot go on by itself: opens one review item (or renews its error).

    `since` tells this park from earlier ones of the same step: what was closed stays closed, however late it arrives.
    `redriven`: it was parked before, followed this word, and came back.
    """

    order_id: str
    step: Step
    item: str = ""
    kind: ParkKind
    error: str
    since: datetime
    redriven: Redriven | None = None


class ParkClosed(_Message):
    """The parked step went on: closes its review item with who decided what."""

    order_id: str
    step: Step
    item: str = ""
    actor: str
    action: RedriveAction
    since: datetime
    reason: str | None = None


#: What only repeats that a payment went well: nothing new for an order whose whole amount is captured.
GOOD_NEWS = frozenset({"payment_intent.amount_capturable_updated", "payment_intent.succeeded"})


class PaymentUpdated(_Message):
    """Signal `payment_updated`: something happened to the intent. A wake-up only; the gateway is asked."""

    event_id: str
    type: str
    intent_id: str


class CancelOrder(_Message):
    """Update `cancel_order`. `note`: an operator's own words, for the timeline."""

    reason: CancelReason = CancelReason.CANCELLED_BY_CUSTOMER
    actor: str = "customer"
    note: str | None = None


class CancelAnswer(_Message):
    """The order's status at the moment the cancel was accepted."""

    order_id: str
    status: OrderStatus


class DecideReview(_Message):
    """Update `decide_review`."""

    approve: bool
    actor: str
    reason: str


class ReviewDecided(_Message):
    """A reviewer's word, as it is kept in the order's timeline."""

    order_id: str
    approve: bool
    actor: str
    reason: str


class RedriveStep(_Message):
    """Update `redrive_step`: what an operator wants done with a parked step."""

    step: Step
    action: RedriveAction
    actor: str
    reason: str
    item: str | None = None


class ReviewItem(_Message):
    """One parked step, as the query `status` tells it."""

    step: str
    kind: ParkKind
    error: str
    since: datetime


class OrderState(_Message):
    """Query `status`."""

    status: OrderStatus
    reason: CancelReason | None
    payment: PaymentStatus
    needs_review: list[ReviewItem]


class TimelineEntry(_Message):
    """One line of query `timeline`."""

    at: str
    step: str
    state: str


class RefundAsked(_Message):
    """An operator's refund, by its name within the order. `amount` None: all that is left."""

    refund_id: str
    amount: int | None
    actor: str
    reason: str


class MoneyInput(_Message):
    """Starts `MoneyWorkflow`: money moved on this intent after its saga had ended, or an operator gives some back."""

    order_id: str
    intent_id: str
    revision: int = 1
    refund: RefundAsked | None = None


class RefundOpened(_Message):
    """The answer to an operator's refund: its amount, or why there is none. `asked` is what was asked under its key."""

    amount: int = 0
    refusal: RefundRefusal | None = None
    left: int = 0
    asked: RefundAsked | None = None


class RefundView(_Message):
    """Where one refund stands at the provider: `pending` is neither yes nor no."""

    pending: bool


class RefundRecorded(_Message):
    """A refund that the provider has carried out. With the last of the money the order is REFUNDED."""

    order_id: str
    refund_id: str
    amount: int
    actor: str
