"""What an operator's word would do to an order, before it is said: from what our books know, nothing is sent.

The undos are those of the saga, by the same table (`domain.keys.UNDO_OF`), newest first. Amounts are what is held now,
so an undo that has nothing left to give back is not listed.
"""

from dataclasses import dataclass, field

from domain.keys import PAYMENT_STEPS, UNDO_OF, EffectKey, Step, actions_at
from domain.money import format_minor
from domain.order import DEAD_RUN, ParkKind, PaymentStatus, RedriveAction, ShipmentStatus, StepState

_NOTHING_LEFT = frozenset({PaymentStatus.VOIDED, PaymentStatus.DECLINED, PaymentStatus.REFUNDED})
#: A booking with one of these is known to be there or not; without any it may still land.
_ANSWERS = frozenset({StepState.DONE, StepState.REFUSED, StepState.NOT_SERVED})


@dataclass(frozen=True)
class Pieces:
    """So many of one SKU that are set aside."""

    warehouse: str
    sku: str
    quantity: int


@dataclass(frozen=True)
class Parcel:
    """A parcel that the courier has, under its own id."""

    warehouse: str
    shipment_id: str
    status: ShipmentStatus


@dataclass(frozen=True)
class Money:
    """The payment as the gateway last told us, in the currency's smallest unit."""

    intent_id: str | None = None
    status: PaymentStatus = PaymentStatus.NONE
    authorized: int = 0
    captured: int = 0
    refunded: int = 0


@dataclass(frozen=True)
class Stamped:
    """One stamp of the order's steps."""

    step: Step
    item: str
    revision: int
    state: StepState


@dataclass(frozen=True)
class Effects:
    """What one order holds. Points and credit are what it took and has not given back, `price_…` what it costs of them;
    stamps the oldest first. `sold`: what happens to its money later is told, and nothing is given back by itself.
    """

    order_id: str
    currency: str
    amount_due: int
    price_points: int = 0
    price_credit: int = 0
    pieces: tuple[Pieces, ...] = ()
    points: int = 0
    store_credit: int = 0
    money: Money = field(default_factory=Money)
    parcels: tuple[Parcel, ...] = ()
    stamps: tuple[Stamped, ...] = ()
    sold: bool = False

    def states(self, step: Step, item: str = "") -> list[StepState]:
        """What is known of one effect, over all its revisions, the oldest first."""
        return [stamp.state for stamp in self.stamps if (stamp.step, stamp.item) == (step, item)]

    def revision(self, step: Step, item: str = "") -> int:
        """The newest revision that was asked for."""
        found = (stamp.revision for stamp in self.stamps if (stamp.step, stamp.item) == (step, item))
        return max(found, default=1)

    def items(self, step: Step) -> list[str]:
        """What was begun of a step that comes in several, as bookings do."""
        return sorted({stamp.item for stamp in self.stamps if stamp.step is step})

    @property
    def pivot_passed(self) -> bool:
        """The capture was sent: a cancel comes too late, unless the gateway refuses it."""
        return bool(self.states(Step.CAPTURE_PAYMENT))


@dataclass(frozen=True)
class UndoLine:
    """One undo that would run, in words with its amount."""

    undo: Step
    item: str
    words: str


@dataclass(frozen=True)
class ActionLine:
    """One thing that an operator may say, and what it does."""

    action: RedriveAction
    words: str
    undos: tuple[UndoLine, ...] = ()


def undos(effects: Effects) -> list[UndoLine]:
    """What undoing the order now would do, in the order in which it is done."""
    lines: list[UndoLine] = []
    for step, undo in reversed(UNDO_OF.items()):
        lines += [UndoLine(undo, item, words) for item, words in _undone(effects, step)]
    return lines


def actions(effects: Effects, step: Step, item: str, kind: ParkKind, error: str) -> list[ActionLine]:
    """What may be said at one parked step, and what it would do."""
    if error == DEAD_RUN:
        return _after_a_dead_run(effects)
    if effects.sold and step is Step.SETTLE_LATE_MONEY:
        return [
            ActionLine(RedriveAction.RETRY, "asks the gateway how the payment stands now; moves no money"),
            ActionLine(RedriveAction.SKIP, "closes the question, and stamps it waived; moves no money"),
        ]
    allowed = actions_at(step)
    lines = [ActionLine(RedriveAction.RETRY, _retry(effects, step, item, kind))]
    if RedriveAction.COMPENSATE in allowed:
        lines.append(_compensate(effects, step))
    if RedriveAction.SKIP in allowed:
        left = "; ".join(_left_by_skip(effects, step, item))
        stays = f"what is NOT done then: {left}" if left else "our books know of nothing that it leaves undone"
        lines.append(ActionLine(RedriveAction.SKIP, f"goes on without it, and stamps it waived; {stays}"))
    return lines


def _after_a_dead_run(effects: Effects) -> list[ActionLine]:
    """Our books need not know all that the ended run did: the undo asks the providers, whatever is written here."""
    known = tuple(undos(effects))
    return [
        ActionLine(RedriveAction.RETRY, "goes through all steps: each finds what it did already, or does it"),
        ActionLine(
            RedriveAction.COMPENSATE,
            f"undoes whatever the ended run did: the gateway and the courier are asked, and {_known_of(known)}",
            known,
        ),
    ]


def _known_of(known: tuple[UndoLine, ...]) -> str:
    return "our books know of:" if known else "our books know of nothing"


def _left_by_skip(effects: Effects, step: Step, item: str) -> list[str]:
    if step is Step.REFUND_PAYMENT:
        return [f"the refund {item}"]
    if step is Step.SETTLE_LATE_MONEY:
        step = Step.RELEASE_PAYMENT
    return [line.words for line in undos(effects) if (line.undo, line.item) == (step, item)]


def _compensate(effects: Effects, step: Step) -> ActionLine:
    if step is Step.OPEN_ORDER and not undos(effects):
        return ActionLine(RedriveAction.COMPENSATE, "rejects the order: nothing was taken")
    condition = " (refused while the gateway cannot be read)" if step in PAYMENT_STEPS else ""
    return ActionLine(RedriveAction.COMPENSATE, f"undoes the order{condition}:", tuple(undos(effects)))


def _undone(effects: Effects, step: Step) -> list[tuple[str, str]]:
    match step:
        case Step.BOOK_SHIPMENT:
            return [(item, words) for item in effects.items(step) if (words := _parcel(effects, item))]
        case Step.AUTHORIZE_PAYMENT:
            words = _payment(effects)
            return [("", words)] if words else []
        case Step.APPLY_STORE_CREDIT if effects.store_credit:
            return [("", f"give back {format_minor(effects.store_credit, effects.currency)} of store credit")]
        case Step.BURN_POINTS if effects.points:
            return [("", f"restore {effects.points} points")]
        case Step.RESERVE_STOCK:
            return [("", f"release {one.quantity} × {one.sku} in {one.warehouse}") for one in effects.pieces]
        case _:
            return []


def _parcel(effects: Effects, warehouse: str) -> str | None:
    for parcel in effects.parcels:
        if parcel.warehouse == warehouse and parcel.status is not ShipmentStatus.CANCELLED:
            return f"cancel parcel {parcel.shipment_id} from {warehouse}"
    unanswered = not _ANSWERS & set(effects.states(Step.BOOK_SHIPMENT, warehouse))
    return f"look for a parcel from {warehouse} at the courier, and cancel it if there is one" if unanswered else None


def _payment(effects: Effects) -> str | None:
    money, currency = effects.money, effects.currency
    left = money.captured - money.refunded
    if money.status is PaymentStatus.REFUND_PENDING:
        return "wait for the refund that is on its way"
    if left > 0:
        return f"refund {format_minor(left, currency)}"
    if money.status is PaymentStatus.AUTHORIZED:
        return f"void the hold of {format_minor(money.authorized, currency)}"
    if money.status in _NOTHING_LEFT or not effects.states(Step.AUTHORIZE_PAYMENT):
        return None
    return "ask the gateway, and void or refund whatever it holds or took"


def _retry(effects: Effects, step: Step, item: str, kind: ParkKind) -> str:
    revision = effects.revision(step, item)
    key = EffectKey(effects.order_id, step, item, revision)
    again = EffectKey(effects.order_id, step, item, revision + 1)
    if step is Step.AWAIT_PAYMENT:
        return "asks the gateway what became of the payment, and goes on by its answer"
    if step in PAYMENT_STEPS:
        after = f"only what is certainly not done is asked for, under the key {again}"
        return f"asks the gateway first; {after}" if kind is ParkKind.DECISION else f"{_same(key)}; {after}"
    if step is Step.BOOK_SHIPMENT:
        return f"looks for our reference at the courier, and books only if there is none ({key})"
    if kind is ParkKind.DECISION and step not in UNDO_OF and RedriveAction.SKIP in actions_at(step):
        return f"looks first, and does what is still owed as a new effect under the key {again}"
    return _same(key)


def _same(key: EffectKey) -> str:
    return f"looks, and tries again under the same key {key}: what took effect already is found, not repeated"
