"""How each case may end, by the rules of the saga: one way nearly always, and the parks on the way.

Two ways are allowed only where two things are certain to happen at the same time, and either may be first.
"""

from dataclasses import dataclass, field

from domain.keys import Step
from domain.order import CancelReason, OrderStatus, ParkKind
from tests.matrix.dimensions import (
    AFTER_THE_PIVOT,
    OVERDUE,
    RESERVING,
    UNDO_STEPS,
    WAITED_FOR,
    Caller,
    Case,
    Fault,
    Payment,
    Trigger,
    Word,
)

Ending = tuple[OrderStatus, CancelReason | None]
Park = tuple[str, str]

CONFIRMED: Ending = (OrderStatus.CONFIRMED, None)

#: When each step has its turn. Those with one number run side by side, or in turns.
TURN = {
    Step.OPEN_ORDER: 0,
    Step.SCREEN_ORDER: 1,
    **dict.fromkeys(RESERVING, 2),
    Step.RECORD_STATUS: 3,
    Step.AUTHORIZE_PAYMENT: 4,
    Step.READ_PAYMENT: 5,
    Step.ABANDON_PAYMENT: 5,
    Step.BOOK_SHIPMENT: 6,
    Step.CAPTURE_PAYMENT: 7,
    Step.CONFIRM_ORDER: 8,
    Step.COMMIT_STOCK: 9,
}
WAIT, PIVOT, NEVER = TURN[Step.READ_PAYMENT], TURN[Step.CAPTURE_PAYMENT], 99
#: From this turn on the undo has something to undo.
UNDO_FROM = {
    Step.RELEASE_STOCK: 2,
    Step.RESTORE_POINTS: 2,
    Step.REFUND_STORE_CREDIT: 2,
    Step.RELEASE_PAYMENT: 4,
    Step.CANCEL_SHIPMENT: 6,
}

_REFUSED = {
    Step.OPEN_ORDER: CancelReason.UNKNOWN_SKU,
    Step.RESERVE_STOCK: CancelReason.OUT_OF_STOCK,
    Step.BURN_POINTS: CancelReason.INSUFFICIENT_POINTS,
    Step.APPLY_STORE_CREDIT: CancelReason.INSUFFICIENT_CREDIT,
    Step.AUTHORIZE_PAYMENT: CancelReason.CARD_DECLINED,
    Step.BOOK_SHIPMENT: CancelReason.NO_SERVICE_TO_ADDRESS,
    Step.CAPTURE_PAYMENT: CancelReason.CAPTURE_FAILED,
}
_REVIEWED = {
    Word.COMPENSATE: CancelReason.REVIEW_REJECTED,
    Word.SKIP: CancelReason.REVIEW_TIMED_OUT,
    Word.CANCEL: CancelReason.CANCELLED_BY_CUSTOMER,
}
_DECIDED = {Word.COMPENSATE: CancelReason.CANCELLED_BY_OPERATOR, Word.CANCEL: CancelReason.CANCELLED_BY_CUSTOMER}
_PAID = {
    Payment.DECLINED: CancelReason.AUTHENTICATION_FAILED,
    Payment.SECURE_FAILED: CancelReason.AUTHENTICATION_FAILED,
    Payment.ABANDONED: CancelReason.PAYMENT_TIMED_OUT,
}
_TRIGGERED = {
    Trigger.COURIER: (TURN[Step.BOOK_SHIPMENT], CancelReason.NO_SERVICE_TO_ADDRESS),
    Trigger.CAPTURE: (PIVOT, CancelReason.CAPTURE_FAILED),
}
#: A request of Temporal's is accepted by the server; in one batch with an update that follows, the update comes first.
_CANCELLED = {
    Caller.CUSTOMER: (CancelReason.CANCELLED_BY_CUSTOMER,),
    Caller.BOTH: (CancelReason.CANCELLED_BY_CUSTOMER,),
    Caller.TEMPORAL: (CancelReason.CANCELLED_BY_OPERATOR,),
    Caller.BOTH_TURNED: (CancelReason.CANCELLED_BY_OPERATOR, CancelReason.CANCELLED_BY_CUSTOMER),
}
#: Faults that a step does not survive, where it has no park.
_ENDING = frozenset({Fault.RUNS_OUT, Fault.LANDS_LATE})
#: Steps that park once they have run out; the look-up of an authorization or a capture asks once more before.
_PARKS_RUN_OUT = frozenset({Step.OPEN_ORDER, Step.ABANDON_PAYMENT}) | AFTER_THE_PIVOT | UNDO_STEPS
#: Steps with an operator who may compensate.
_NO_PARK = frozenset({Step.SCREEN_ORDER, Step.RECORD_STATUS})
#: A payment that processes until its bank speaks can be released only then.
_PROCESSING = frozenset({Payment.OUT_OF_ORDER, Payment.LATE, Payment.DECLINED})


@dataclass(frozen=True)
class Expected:
    """`endings`: status and reason. Parks by step and kind: those that must be on record, and those that may be.

    `turn`: the last one that the order reaches on its way forward.
    """

    endings: frozenset[Ending]
    turn: int
    must_park: frozenset[Park]
    may_park: frozenset[Park] = field(default_factory=frozenset)

    @property
    def undone(self) -> bool:
        """Whether undos run."""
        return any(status is OrderStatus.CANCELLED_COMPENSATED for status, _ in self.endings)


def expect(case: Case, *, cancel_sent: bool) -> Expected:
    """What the case must come to; `cancel_sent`: its moment came."""
    turn, reason = _forward_end(case)
    endings = {_ending(turn, reason, cancelled=case.word is Word.CANCEL)}
    if cancel_sent and case.caller is not None and cancel_counts(case):
        turn, endings = _cancelled_end(case, turn, reason)
    parks = _parks(case, turn)
    undone = any(status is OrderStatus.CANCELLED_COMPENSATED for status, _ in endings)
    may = frozenset[Park]()
    if cancel_sent and case.place is not None and TURN.get(case.place.step) == turn:
        parks, may = frozenset(), parks
    if undone:
        parks |= _undo_parks(case, turn)
    if undone and case.payment in _PROCESSING and turn in {TURN[Step.AUTHORIZE_PAYMENT], WAIT}:
        may |= {(Step.RELEASE_PAYMENT.value, ParkKind.TECHNICAL.value)}
    return Expected(frozenset(endings), turn, parks - may, may)


def cancel_counts(case: Case) -> bool:
    """Whether a cancel at the case's moment undoes an order that would have been confirmed."""
    return moment_turn(case) < PIVOT


def moment_turn(case: Case) -> int:
    """The turn in which the cancel comes; NEVER while undoing."""
    if case.moment is None:
        return NEVER
    return TURN.get(case.moment.place.step, NEVER) if case.moment.place else 0


def _ending(turn: int, reason: CancelReason | None, *, cancelled: bool) -> Ending:
    if reason is None:
        return CONFIRMED
    rejected = turn <= TURN[Step.SCREEN_ORDER] and not cancelled
    return (OrderStatus.REJECTED if rejected else OrderStatus.CANCELLED_COMPENSATED), reason


def _forward_end(case: Case) -> tuple[int, CancelReason | None]:
    """The first thing that sends the order back, were there no cancel, and its turn."""
    ends: list[tuple[int, CancelReason]] = []
    own = fault_ends(case)
    if own is not None and case.place is not None:
        ends.append((TURN[case.place.step], own))
    if case.payment in _PAID:
        ends.append((WAIT, _PAID[case.payment]))
    if case.trigger in _TRIGGERED:
        ends.append(_TRIGGERED[case.trigger])
    return min(ends, key=lambda end: end[0]) if ends else (NEVER, None)


def fault_ends(case: Case) -> CancelReason | None:
    """Why the order does not happen, if its fault ends it."""
    if case.place is None:
        return None
    step, fault, reason = case.place.step, case.fault, None
    if fault is Fault.REFUSAL and step is Step.SCREEN_ORDER:
        reason = _REVIEWED.get(case.word)
    elif fault is Fault.REFUSAL:
        reason = _REFUSED.get(step) or (_DECIDED.get(case.word) if TURN[step] == WAIT else None)
    elif step in RESERVING and fault in _ENDING:
        reason = CancelReason.SERVICE_UNAVAILABLE
    elif step is Step.BOOK_SHIPMENT and fault in _ENDING | {Fault.HANGS}:
        reason = CancelReason.COURIER_UNAVAILABLE
    elif fault in {Fault.BUG, Fault.OUTAGE} and step not in _NO_PARK | AFTER_THE_PIVOT:
        reason = _DECIDED.get(case.word)
    return reason


def _cancelled_end(case: Case, turn: int, reason: CancelReason | None) -> tuple[int, set[Ending]]:
    """The end of an order that was cancelled before the pivot, at the latest in the turn that would have ended it."""
    assert case.caller is not None
    at = moment_turn(case)
    cancelled = {_ending(at, told, cancelled=True) for told in _CANCELLED[case.caller]}
    if reason is None or at < turn:
        return at, cancelled
    own = _ending(turn, reason, cancelled=False)
    if at == WAIT and fault_ends(case) is None:
        # A word of the bank may be read before the cancel is. A deadline is not over while it is read.
        return at, cancelled if case.payment is Payment.ABANDONED else {own} | cancelled
    return at, cancelled if _waits(case) else {own}


def _waits(case: Case) -> bool:
    """Whether the step's own end would have been a wait that the cancel wakes: a review or a park."""
    ends = case.place is not None and TURN[case.place.step] == moment_turn(case) and fault_ends(case) is not None
    return ends and (case.breaks(Step.SCREEN_ORDER) or case.fault in {Fault.BUG, Fault.OUTAGE})


def _parks(case: Case, turn: int) -> frozenset[Park]:
    """What must park on the way forward."""
    parks: set[Park] = set()
    if case.place is not None and TURN.get(case.place.step, NEVER) <= turn and case.fault is not None:
        kind = _kind(case.place.step, case.fault)
        if kind is not None and (case.place.step is not Step.RECORD_STATUS):
            parks.add((_parked_at(case.place.step), kind.value))
    if case.payment is Payment.LATE and turn > WAIT:
        parks.add((Step.AWAIT_PAYMENT.value, ParkKind.TECHNICAL.value))
    return frozenset(parks)


def _undo_parks(case: Case, turn: int) -> frozenset[Park]:
    if case.undo is None or case.undo_fault is None or UNDO_FROM[case.undo] > turn:
        return frozenset()
    kind = _kind(case.undo, case.undo_fault)
    return frozenset({(case.undo.value, kind.value)} if kind else ())


def _kind(step: Step, fault: Fault) -> ParkKind | None:
    """How this fault parks this step, if it does."""
    if step in _NO_PARK:
        return None
    asks = step in {Step.READ_PAYMENT, Step.ABANDON_PAYMENT}
    if fault is Fault.BUG:
        return ParkKind.DECISION
    if fault is Fault.REFUSAL and (asks or step in AFTER_THE_PIVOT | UNDO_STEPS):
        return ParkKind.DECISION
    if fault is Fault.OUTAGE or (fault is Fault.RUNS_OUT and step in _PARKS_RUN_OUT):
        return ParkKind.TECHNICAL
    return None


def _parked_at(step: Step) -> str:
    """Look-ups of the payment park its wait."""
    return (Step.AWAIT_PAYMENT if step in {Step.READ_PAYMENT, Step.ABANDON_PAYMENT} else step).value


def reached(case: Case) -> bool:
    """Whether all that the case is about has its turn: what never happens proves nothing."""
    turn, reason = _forward_end(case)
    if case.place is not None and TURN[case.place.step] > turn and not _is_back(case):
        return False
    if case.breaks(Step.READ_PAYMENT) and case.payment not in WAITED_FOR:
        return False
    if case.breaks(Step.ABANDON_PAYMENT) and case.payment not in OVERDUE:
        return False
    if case.moment is not None and not _comes(case, turn, reason):
        return False
    if case.moment is not None and cancel_counts(case):
        turn, reason = min(turn, moment_turn(case)), CancelReason.CANCELLED_BY_CUSTOMER
    if _is_back(case) and (reason is None or turn <= TURN[Step.SCREEN_ORDER]):
        return False
    return case.undo is None or (reason is not None and UNDO_FROM[case.undo] <= turn)


def _comes(case: Case, turn: int, reason: CancelReason | None) -> bool:
    """Whether the moment of the cancel comes, of an order that would end so without it."""
    assert case.moment is not None
    place = case.moment.place
    if place is None:
        return True
    if place.step in UNDO_FROM:
        waived = case.word is Word.SKIP and place.step is case.undo and case.moment.after
        return reason is not None and UNDO_FROM[place.step] <= turn and not waived
    if place.step is Step.READ_PAYMENT and case.payment not in WAITED_FOR:
        return False
    # What ends the order in its turn has no answer that one could come after.
    answers = TURN[place.step] < turn or not case.moment.after or turn == WAIT
    beside = turn == TURN[Step.RESERVE_STOCK] and case.place is not None and place.step is not case.place.step
    return TURN[place.step] <= turn and (answers or beside)


def _is_back(case: Case) -> bool:
    """Whether it is a status of the way back that cannot be written."""
    return case.place is not None and case.place.item in {"COMPENSATING", "CANCELLED_COMPENSATED"}
