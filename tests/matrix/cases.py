"""Which cases there are: each thing that may go wrong alone, each with each undo's trouble, and all pairs beyond."""

import random
from collections.abc import Iterator
from dataclasses import fields
from functools import cache
from itertools import product

from domain.keys import UNDO_OF, Step
from tests.matrix.dimensions import (
    AFTER_THE_PIVOT,
    FORWARD,
    MOMENTS,
    OVERDUE,
    PLACES,
    SEVERAL_REQUESTS,
    SLOW,
    UNDO_STEPS,
    WRITES,
    Caller,
    Case,
    Fault,
    Payment,
    Trigger,
    Word,
    possible,
)
from tests.matrix.expect import fault_ends, reached
from tests.matrix.pairs import cover_pairs

SEED = 4
#: So many draws have 97 of 100 of the pairs that there are (by trial: eight times as many have them all), in a second.
DRAWN = 40_000
#: So many of all cases are enough to see, within a minute, that something is wrong.
SAMPLE = 200

#: Words that change something, by the fault of the step that they are said about.
_WORDS = (Word.RETRY, Word.COMPENSATE, Word.CANCEL, Word.SKIP)


@cache
def all_cases() -> tuple[Case, ...]:
    """Every case, once, in an order that does not change."""
    return tuple(dict.fromkeys([*_singles(), *_with_each_undo(), *_pairs()]))


@cache
def sample() -> frozenset[Case]:
    """The cases that are played whenever all tests are."""
    return frozenset(random.Random(SEED).sample(all_cases(), SAMPLE))


def part_of(case: Case) -> str:
    """The file that plays it: what it is about in the first place."""
    if case.place is None:
        return "undoing" if case.undo else "cancelling"
    if case.undo is not None:
        return f"before_{case.undo}"
    if case.place.step in {Step.BOOK_SHIPMENT, Step.CAPTURE_PAYMENT, *AFTER_THE_PIVOT}:
        return "shipping"
    return "paying" if case.place.step in SEVERAL_REQUESTS else "opening"


def _singles() -> Iterator[Case]:
    for place in PLACES:
        for fault in Fault:
            for word in _WORDS:
                payment = Payment.ABANDONED if place.step is Step.ABANDON_PAYMENT else Payment.AT_ONCE
                payment = Payment.WEBHOOK if place.step is Step.READ_PAYMENT else payment
                trigger = Trigger.COURIER if place in WRITES[1:] else Trigger.NONE
                yield from _if_valid(Case(place, fault, payment=payment, trigger=trigger, word=word))
    for undo in UNDO_OF.values():
        for fault in Fault:
            for trigger in (Trigger.COURIER, Trigger.CAPTURE):
                for word in (Word.RETRY, Word.SKIP):
                    yield from _if_valid(Case(undo=undo, undo_fault=fault, trigger=trigger, word=word))
    for payment in Payment:
        for trigger in Trigger:
            yield from _if_valid(Case(payment=payment, trigger=trigger))
    for moment in MOMENTS:
        for caller in Caller:
            undoing = moment.place is not None and moment.place.step in UNDO_STEPS
            trigger = Trigger.CAPTURE if undoing else Trigger.NONE
            waits = moment.place is not None and moment.place.step is Step.READ_PAYMENT
            payment = Payment.WEBHOOK if waits else Payment.AT_ONCE
            yield from _if_valid(Case(payment=payment, trigger=trigger, caller=caller, moment=moment))


def _with_each_undo() -> Iterator[Case]:
    """Every fault of a step that can still be undone, together with trouble in each undo, in turns."""
    for number, (place, fault, undo) in enumerate(product(FORWARD, Fault, UNDO_OF.values())):
        troubles = [trouble for trouble in Fault if possible(undo, trouble)]
        # Each step meets each trouble of each undo sooner or later, and no two in step.
        step_fault, undo_number = divmod(number, len(UNDO_OF))
        trouble = troubles[(step_fault + 2 * undo_number) % len(troubles)]
        ways_back = product((Payment.WEBHOOK, Payment.ABANDONED), (Trigger.NONE, Trigger.CAPTURE))
        cases = (Case(place, fault, undo, trouble, payment=payment, trigger=back) for payment, back in ways_back)
        yield from [case for case in cases if is_valid(case)][:1]


def _pairs() -> Iterator[Case]:
    """Of many cases drawn by chance those in which each two values meet that can meet at all."""
    chance = random.Random(SEED)
    drawn = (_draw(chance) for _ in range(DRAWN))
    pool = dict.fromkeys(case for case in drawn if is_valid(case))
    rows = [tuple(getattr(case, field.name) for field in fields(Case)) for case in pool]
    yield from (Case(*row) for row in cover_pairs(rows, SEED))


def _draw(chance: random.Random) -> Case:
    """A case that may still make no sense. Half of what may be quiet is, so that what is not finds room."""

    def loud() -> bool:
        return chance.random() < 0.5

    place = chance.choice(PLACES) if loud() else None
    undo = chance.choice(tuple(UNDO_OF.values())) if loud() else None
    caller = chance.choice(tuple(Caller)) if loud() else None
    overdue = place is not None and place.step is Step.ABANDON_PAYMENT
    return Case(
        place,
        chance.choice(_faults_of(place.step)) if place else None,
        undo,
        chance.choice(_faults_of(undo)) if undo else None,
        chance.choice(tuple(OVERDUE) if overdue else tuple(Payment)),
        chance.choice(tuple(Trigger)),
        caller,
        chance.choice(MOMENTS) if caller else None,
        chance.choice(_WORDS) if loud() and loud() else Word.RETRY,
    )


@cache
def _faults_of(step: Step) -> tuple[Fault, ...]:
    return tuple(fault for fault in Fault if possible(step, fault))


def _if_valid(case: Case) -> Iterator[Case]:
    if is_valid(case):
        yield case


def is_valid(case: Case) -> bool:
    """Whether all of it can happen, happens, and is said in one way only."""
    return (
        (case.place is None or possible(case.place.step, case.fault or Fault.BUG))
        and (case.undo is None or possible(case.undo, case.undo_fault or Fault.BUG))
        and _says_something(case)
        and _is_told_apart(case)
        and _moment_is_sure(case)
        and reached(case)
    )


def _says_something(case: Case) -> bool:
    """A word other than *retry* needs a step that can hear it."""
    if case.word is Word.RETRY:
        return True
    if case.word is Word.SKIP:
        waived = case.undo_fault is Fault.BUG and not case.breaks(Step.SCREEN_ORDER, Fault.REFUSAL)
        return waived or (case.undo is None and case.breaks(Step.SCREEN_ORDER, Fault.REFUSAL))
    if case.caller is not None or fault_ends(case) is None:
        return False
    if case.fault is Fault.OUTAGE and (
        # An order that stands still until the word comes would wait for its tries, or for its bank, in real time.
        case.breaks(Step.OPEN_ORDER) or case.payment not in {Payment.AT_ONCE, Payment.WEBHOOK}
    ):
        return False
    retried = Case(case.place, case.fault, payment=case.payment)
    return fault_ends(retried) is None and not (case.word is Word.CANCEL and case.breaks(Step.CAPTURE_PAYMENT))


def _is_told_apart(case: Case) -> bool:
    """Two disturbances of one call are one, or the first hides the second."""
    if case.breaks(Step.BOOK_SHIPMENT, Fault.REFUSAL) and case.trigger is Trigger.COURIER:
        return False
    if case.breaks(Step.CAPTURE_PAYMENT, Fault.REFUSAL, Fault.ANSWER_LOST) and case.trigger is Trigger.CAPTURE:
        return False
    return not (case.breaks(Step.AUTHORIZE_PAYMENT, Fault.REFUSAL) and case.payment is not Payment.AT_ONCE)


def _moment_is_sure(case: Case) -> bool:
    """A cancel must come while its step stands, and its step must not run out of time meanwhile."""
    if case.moment is None:
        return True
    place = case.moment.place
    if place is None:
        return not case.breaks(Step.OPEN_ORDER)
    slow = {
        step
        for step, fault in ((case.place.step if case.place else None, case.fault), (case.undo, case.undo_fault))
        if fault in SLOW
    }
    short = {step in SEVERAL_REQUESTS for step in slow if step is not None}
    return (place.step in SEVERAL_REQUESTS) not in short
