"""The rows of docs/failure-table.md that a case proves, by their first two columns."""

from collections.abc import Iterator

from domain.keys import Step
from tests.matrix.dimensions import AFTER_THE_PIVOT, RESERVING, UNDO_STEPS, Case, Fault, Payment, Trigger
from tests.matrix.expect import PIVOT, moment_turn

Row = tuple[str, str]

TRANSIENT = ("any step", "one attempt fails, before its effect or after it, or all tries but the last")
NOT_NOW = ("any step", "not served for a while: 429 with Retry-After, or no connection")
GONE = ("any step", "its worker is killed before or after the effect: the answer never comes")
LATE = ("any step", "an attempt or a call hangs, and lands when the order has ended")

_CANCELLED = (
    (range(PIVOT), ("each step before the pivot", "cancelled while it runs, by the shopper or in Temporal")),
    (range(PIVOT, 10), ("capture, confirm, commit stock", "cancelled after the pivot")),
)
_CANCELLED_WHILE_UNDOING = ("each undo", "cancelled twice while it runs")
_BEFORE_THE_START = ("before the start", "cancelled in the moment of the order")

_PAID = {
    Payment.AT_ONCE: ("payment wait", "the answer says at once that the money is held"),
    Payment.WEBHOOK: ("payment wait", "webhook races the answer, or overtakes it"),
    Payment.TWICE: ("payment wait", "webhook late, twice, twenty times at once"),
    Payment.OUT_OF_ORDER: ("payment wait", "stale or untrue event, before and after the confirmation"),
    Payment.LATE: ("payment wait", "still processing at the deadline"),
    Payment.NEVER: ("payment wait", "webhook never comes"),
    Payment.DECLINED: ("payment wait", "declined after it has processed"),
    Payment.SECURE: ("payment wait", "3-D Secure is wanted and done"),
    Payment.SECURE_FAILED: ("payment wait", "3-D Secure fails"),
    Payment.ABANDONED: ("payment wait", "3-D Secure abandoned"),
}
_TRIGGERED = {
    Trigger.COURIER: ("book", "the courier does not serve the address"),
    Trigger.CAPTURE: ("capture", "refused"),
}
_RESERVED_WRONG = ("reserve", "sold out, too few points, too little credit")
_RESERVED_DOWN = ("reserve", "database down for three tries, before or after the effect")
_UNREADABLE = ("payment wait", "a look-up finds a contradiction or a bug")

#: What a fault is to a step, where it is not the same to all of them.
_OWN: dict[tuple[Step, Fault], Row] = {
    (Step.OPEN_ORDER, Fault.REFUSAL): ("open", "a SKU that the catalogue does not have"),
    (Step.OPEN_ORDER, Fault.RUNS_OUT): ("open", "database down for 12 tries"),
    (Step.OPEN_ORDER, Fault.OUTAGE): ("open", "database down for 12 tries"),
    (Step.OPEN_ORDER, Fault.BUG): ("open", "a bug"),
    (Step.SCREEN_ORDER, Fault.REFUSAL): ("screen", "score over 90"),
    **{(step, Fault.REFUSAL): _RESERVED_WRONG for step in RESERVING},
    **{(step, Fault.RUNS_OUT): _RESERVED_DOWN for step in RESERVING},
    **{(step, Fault.LANDS_LATE): ("reserve", "an attempt arrives after the undo") for step in RESERVING},
    **{(step, Fault.BUG): ("reserve", "a bug") for step in RESERVING},
    (Step.AUTHORIZE_PAYMENT, Fault.REFUSAL): ("authorize", "card declined, blocked as fraud, unknown token"),
    (Step.AUTHORIZE_PAYMENT, Fault.RUNS_OUT): (
        "authorize",
        "tries run out, and the look-up says that nothing was asked for",
    ),
    (Step.AUTHORIZE_PAYMENT, Fault.OUTAGE): ("authorize", "fails for ever"),
    (Step.AUTHORIZE_PAYMENT, Fault.BUG): (
        "authorize",
        "our key with other parameters; a request that the gateway will not have",
    ),
    (Step.READ_PAYMENT, Fault.RUNS_OUT): ("payment wait", "the gateway cannot be read before the deadline"),
    (Step.READ_PAYMENT, Fault.REFUSAL): _UNREADABLE,
    (Step.READ_PAYMENT, Fault.BUG): _UNREADABLE,
    (Step.ABANDON_PAYMENT, Fault.RUNS_OUT): ("payment wait", "deadline, and the gateway is silent"),
    (Step.ABANDON_PAYMENT, Fault.OUTAGE): ("payment wait", "deadline, and the gateway is silent"),
    (Step.ABANDON_PAYMENT, Fault.REFUSAL): _UNREADABLE,
    (Step.ABANDON_PAYMENT, Fault.BUG): _UNREADABLE,
    (Step.BOOK_SHIPMENT, Fault.REFUSAL): ("book", "the courier does not serve the address"),
    (Step.BOOK_SHIPMENT, Fault.RUNS_OUT): (
        "book",
        "courier answers 5xx, breaks off or is not understood, three tries (about 5 s)",
    ),
    (Step.BOOK_SHIPMENT, Fault.LANDS_LATE): ("book", "an attempt arrives after the undo"),
    (Step.BOOK_SHIPMENT, Fault.HANGS): ("book", "hangs, and lands after the undo found nothing"),
    (Step.BOOK_SHIPMENT, Fault.BUG): ("book", "the courier will not have our request (4xx), or a bug"),
    (Step.CAPTURE_PAYMENT, Fault.REFUSAL): ("capture", "refused"),
    (Step.CAPTURE_PAYMENT, Fault.RUNS_OUT): ("capture", "tries run out"),
    (Step.CAPTURE_PAYMENT, Fault.OUTAGE): ("capture", "fails for ever, certainly not taken"),
    (Step.CAPTURE_PAYMENT, Fault.BUG): ("capture", "a bug"),
}
_SCREEN_DOWN = (
    "screen",
    "scorer down, or its answer not understood",
)
_WRITE_DOWN = ("any status", "database down while a status is written")
_LAST_DOWN = ("confirm, commit stock", "database down for 25 tries, before or after the effect")
_UNDO_DOWN = ("each undo", "five tries fail, before or after the effect")
_UNDO_OUTAGE = ("each undo", "it stays down")
_UNDO_BUG = ("each undo", "a bug")

_EVERYWHERE = {
    Fault.FAILS_BEFORE: TRANSIENT,
    Fault.ANSWER_LOST: TRANSIENT,
    Fault.TRANSIENT: TRANSIENT,
    Fault.RATE_LIMITED: NOT_NOW,
    Fault.NOT_REACHED: NOT_NOW,
    Fault.DIES: GONE,
    Fault.KILLED: GONE,
    Fault.LANDS_LATE: LATE,
    Fault.HANGS: LATE,
}


def rows_of(case: Case) -> Iterator[Row]:
    """One row for each thing that the case disturbs."""
    yield _PAID[case.payment]
    if case.trigger in _TRIGGERED:
        yield _TRIGGERED[case.trigger]
    if case.place is not None and case.fault is not None:
        yield row_of(case.place.step, case.fault)
    if case.undo is not None and case.undo_fault is not None:
        yield row_of(case.undo, case.undo_fault)
    if case.moment is not None:
        turns = [row for turns, row in _CANCELLED if moment_turn(case) in turns]
        yield _BEFORE_THE_START if case.moment.place is None else turns[0] if turns else _CANCELLED_WHILE_UNDOING


def row_of(step: Step, fault: Fault) -> Row:
    """The row of one fault of one step."""
    own = _OWN.get((step, fault)) or _EVERYWHERE.get(fault)
    if own is not None:
        return own
    if step is Step.SCREEN_ORDER:
        return _SCREEN_DOWN
    if step is Step.RECORD_STATUS:
        return _WRITE_DOWN
    if step in AFTER_THE_PIVOT:
        bug = ("confirm" if step is Step.CONFIRM_ORDER else "commit stock", "a bug")
        return _LAST_DOWN if fault is Fault.RUNS_OUT else bug
    assert step in UNDO_STEPS, (step, fault)
    return {Fault.RUNS_OUT: _UNDO_DOWN, Fault.OUTAGE: _UNDO_OUTAGE}.get(fault, _UNDO_BUG)
