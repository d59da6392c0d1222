"""Every ending that an order can have, and how people from outside bring one order to it."""

from dataclasses import dataclass
from typing import Any

from demo.cases import POINTS, STORE_CREDIT, Case
from domain.keys import Step
from domain.order import CancelReason, OrderStatus, RedriveAction
from tests.e2e import stories
from tests.e2e.stories import Story, authenticated, by_http, by_terminal, parked, reviewed

#: Long enough for the people of the stories on a slow machine, and no longer than the slowest ending needs anyway.
DEADLINES: dict[str, object] = {"payment_deadline_seconds": 45, "review_deadline_seconds": 45}

_S, _R = OrderStatus, CancelReason

#: A score over 90: a reviewer is asked.
_SUSPECT = "-score-95"
#: The same key with other parameters: nobody may guess what that means.
_CONFLICT = {"mode": "answer", "status": 400, "body": {"error": {"type": "idempotency_error", "message": "…"}}}
#: Two pieces a warehouse are too few for three.
_TWO_PARCELS: dict[str, Any] = {"quantity": 3, "stock": {"berlin": 2, "porto": 2}}
#: Outlives every order.
_FOREVER = 100_000


@dataclass(frozen=True)
class Ending:
    """One order that ends so. `passes`: statuses that it stands in long enough for a shopper to see them."""

    sentence: str
    case: Case
    story: Story = by_http
    passes: frozenset[OrderStatus] = frozenset()


@dataclass(frozen=True)
class _UnknownGoods(Case):
    """An order for something that nobody sells."""

    def document(self, customer_id: str) -> dict[str, Any]:
        """Its own shelf stays as it is."""
        return super().document(customer_id) | {"lines": [{"sku": "nobody-sells-this", "quantity": 1}]}


def _confirmed(
    name: str, sentence: str, story: Story = by_http, *, passes: tuple[OrderStatus, ...] = (), **case: Any
) -> Ending:
    return Ending(sentence, Case(name, sentence, **case), story, frozenset(passes))


def _undone(
    name: str,
    sentence: str,
    reason: CancelReason,
    story: Story = by_http,
    *,
    passes: tuple[OrderStatus, ...] = (),
    **case: Any,
) -> Ending:
    """Points are part of it, so that there is always something to give back."""
    order = Case(name, sentence, _S.CANCELLED_COMPENSATED, reason, **{"points": 200, **case})
    return Ending(sentence, order, story, frozenset(passes))


def _rejected(
    name: str,
    sentence: str,
    reason: CancelReason,
    story: Story = by_http,
    *,
    passes: tuple[OrderStatus, ...] = (),
    kind: type[Case] = Case,
) -> Ending:
    return Ending(sentence, kind(name, sentence, _S.REJECTED, reason, intents=0), story, frozenset(passes))


SOLD = (
    _confirmed("webhook", "paid by card, by the gateway's webhook"),
    _confirmed("typed", "typed at a terminal", by_terminal),
    _confirmed("silent", "the webhook never comes", payment_method="pm_sim_silent"),
    _confirmed("parcels", "sent from two warehouses", **_TWO_PARCELS),
    _confirmed(
        "free",
        "points and store credit pay it all",
        unit_price=POINTS + STORE_CREDIT,
        points=POINTS,
        store_credit=STORE_CREDIT,
        intents=0,
    ),
    _confirmed("part", "points and store credit pay a part", quantity=2, points=500, store_credit=300),
    _confirmed(
        "authenticated",
        "the shopper authenticates",
        authenticated("success"),
        payment_method="pm_card_authenticationRequired",
    ),
    _confirmed("approved" + _SUSPECT, "a reviewer approves", reviewed("approve"), passes=(_S.AWAITING_REVIEW,)),
    _confirmed("large", "a reviewer approves a large one", reviewed("approve"), quantity=30, stock={"berlin": 30}),
    _confirmed(
        "unscored",
        "a reviewer approves while nobody can score",
        reviewed("approve"),
        faults=({"op": "score", "mode": "error", "status": 500, "times": _FOREVER},),
    ),
    _confirmed("too-late", "cancelled too late", stories.too_late),
    _confirmed(
        "retried-authorization",
        "retried where the payment could not be authorized",
        parked(Step.AUTHORIZE_PAYMENT, RedriveAction.RETRY),
        faults=({"op": "confirm", **_CONFLICT},),
        passes=(_S.NEEDS_REVIEW,),
    ),
    _confirmed(
        "typed-parked",
        "typed at a terminal and retried where it was parked",
        stories.parked_at_a_terminal,
        faults=({"op": "confirm", **_CONFLICT},),
    ),
    _confirmed(
        "retried-booking",
        "retried where the courier would not have our request",
        parked(Step.BOOK_SHIPMENT, RedriveAction.RETRY),
        faults=({"op": "book", "mode": "error", "status": 400, "times": 3},),
    ),
    _confirmed(
        "retried-capture",
        "retried where the money could not be taken",
        parked(Step.CAPTURE_PAYMENT, RedriveAction.RETRY),
        faults=({"op": "capture", **_CONFLICT},),
    ),
)

UNDONE = (
    _undone("sold-out", "one piece too few", _R.OUT_OF_STOCK, quantity=6, intents=0),
    _undone("poor", "too few points", _R.INSUFFICIENT_POINTS, points=POINTS + 1, intents=0),
    _undone("no-credit", "too little credit", _R.INSUFFICIENT_CREDIT, store_credit=STORE_CREDIT + 1, intents=0),
    _undone("declined", "the card is declined", _R.CARD_DECLINED, payment_method="pm_card_chargeDeclined"),
    _undone(
        "typed-declined", "typed, and declined", _R.CARD_DECLINED, by_terminal, payment_method="pm_card_chargeDeclined"
    ),
    _undone("blocked", "the card is blocked", _R.FRAUD_BLOCKED, payment_method="pm_card_radarBlock"),
    _undone(
        "not-authenticated",
        "the shopper fails to authenticate",
        _R.AUTHENTICATION_FAILED,
        authenticated("fail"),
        payment_method="pm_card_authenticationRequired",
    ),
    _undone(
        "abandoned",
        "the shopper never comes back",
        _R.PAYMENT_TIMED_OUT,
        payment_method="pm_card_authenticationRequired",
        passes=(_S.AWAITING_PAYMENT,),
    ),
    _undone(
        "silent-gateway",
        "the gateway is silent at the deadline, and retried",
        _R.PAYMENT_TIMED_OUT,
        stories.silent_gateway_at_the_deadline,
        payment_method="pm_card_authenticationRequired",
        faults=tuple({"op": op, "mode": "error", "status": 502, "times": _FOREVER} for op in ("read", "cancel")),
        passes=(_S.NEEDS_REVIEW,),
    ),
    _undone(
        "hold-ended",
        "somebody ends the hold at the gateway",
        _R.AUTHORIZATION_EXPIRED,
        stories.hold_ended_by_somebody,
        faults=({"op": "book", "mode": "error", "status": 503, "retry_after": 20},),
    ),
    _undone(
        "capture-refused",
        "the money cannot be taken",
        _R.CAPTURE_FAILED,
        faults=({"op": "capture", "mode": "error", "status": 402},),
    ),
    _undone("no-service", "the courier does not go there", _R.NO_SERVICE_TO_ADDRESS, postcode="00000"),
    _undone(
        "courier-down",
        "the courier is down",
        _R.COURIER_UNAVAILABLE,
        postcode="50000",
        passes=(_S.COMPENSATING,),
    ),
    _undone(
        "courier-busy",
        "the courier takes nothing for more than two minutes",
        _R.COURIER_UNAVAILABLE,
        faults=({"op": "book", "mode": "error", "status": 503, "retry_after": 200},),
        **_TWO_PARCELS,
    ),
    _undone(
        "customer",
        "the shopper cancels while paying; the bank's yes is too late",
        _R.CANCELLED_BY_CUSTOMER,
        stories.cancelled_while_paying,
        payment_method="pm_sim_never",
    ),
    _undone(
        "customer" + _SUSPECT,
        "the shopper cancels while a reviewer is asked",
        _R.CANCELLED_BY_CUSTOMER,
        stories.cancelled_in_review,
        intents=0,
    ),
    _undone(
        "web-ui",
        "cancelled in Temporal's Web UI",
        _R.CANCELLED_BY_OPERATOR,
        stories.cancelled_in_temporal,
        payment_method="pm_card_authenticationRequired",
    ),
    _undone(
        "given-up-authorization",
        "given up where the payment could not be authorized",
        _R.CANCELLED_BY_OPERATOR,
        parked(Step.AUTHORIZE_PAYMENT, RedriveAction.COMPENSATE),
        faults=({"op": "confirm", **_CONFLICT},),
    ),
    _undone(
        "given-up-booking",
        "given up where the courier would not have our request",
        _R.CANCELLED_BY_OPERATOR,
        parked(Step.BOOK_SHIPMENT, RedriveAction.COMPENSATE),
        faults=({"op": "book", "mode": "error", "status": 400, "times": 3},),
    ),
    _undone(
        "given-up-capture",
        "given up where the money could not be taken",
        _R.CANCELLED_BY_OPERATOR,
        parked(Step.CAPTURE_PAYMENT, RedriveAction.COMPENSATE),
        faults=({"op": "capture", **_CONFLICT},),
    ),
    _undone(
        "retried-release",
        "retried where the hold could not be freed",
        _R.NO_SERVICE_TO_ADDRESS,
        parked(Step.RELEASE_PAYMENT, RedriveAction.RETRY),
        postcode="00000",
        faults=({"op": "cancel", **_CONFLICT},),
    ),
    _undone(
        "by-phone",
        "skipped where the courier would not take a cancel",
        _R.CAPTURE_FAILED,
        stories.parcel_cancelled_by_phone,
        faults=({"op": "capture", "mode": "error", "status": 402},),
    ),
    _undone(
        "locked",
        "the database does not answer",
        _R.SERVICE_UNAVAILABLE,
        stories.points_locked,
        intents=0,
        passes=(_S.PENDING,),
    ),
)

REJECTED = (
    _rejected("unknown", "nobody sells it", _R.UNKNOWN_SKU, kind=_UnknownGoods),
    _rejected("refused" + _SUSPECT, "a reviewer rejects", _R.REVIEW_REJECTED, reviewed("reject")),
    _rejected("ignored" + _SUSPECT, "no reviewer comes", _R.REVIEW_TIMED_OUT, passes=(_S.AWAITING_REVIEW,)),
)

ENDINGS = (*SOLD, *UNDONE, *REJECTED)

#: Ages every hold at the gateway: not beside other orders.
ALONE = _undone(
    "outlived",
    "the courier takes longer than the hold lives",
    _R.AUTHORIZATION_EXPIRED,
    stories.hold_outlived,
    faults=({"op": "book", "mode": "error", "status": 503, "retry_after": 20},),
)
