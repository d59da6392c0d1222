"""What an operator's word would do, told from our books alone."""

from dataclasses import replace

import pytest

from domain.errors import ContradictionError, IntakeHeld, NotServed, OnHold, TransientError, names_under
from domain.keys import PARKING, UNDO_OF, Step, actions_at
from domain.order import DEAD_RUN, ParkKind, PaymentStatus, RedriveAction, ShipmentStatus, StepState
from domain.preview import Effects, Money, Parcel, Pieces, Stamped, actions, undos
from domain.words import ERROR_WORDS, STEP_WORDS

DONE = StepState.DONE


def effects(*stamps: Stamped, **changes: object) -> Effects:
    """An order of 45.00 EUR, with what is changed."""
    return Effects(**{"order_id": "o1", "currency": "EUR", "amount_due": 4500, "stamps": stamps, **changes})  # type: ignore[arg-type]


def stamped(step: Step, state: StepState = DONE, *, item: str = "", revision: int = 1) -> Stamped:
    """One stamp."""
    return Stamped(step, item, revision, state)


def told(found: Effects) -> list[str]:
    """The words of the undos."""
    return [line.words for line in undos(found)]


EVERYTHING = effects(
    stamped(Step.RESERVE_STOCK),
    stamped(Step.AUTHORIZE_PAYMENT),
    stamped(Step.BOOK_SHIPMENT, item="berlin"),
    stamped(Step.BOOK_SHIPMENT, StepState.UNKNOWN, item="porto"),
    pieces=(Pieces("berlin", "A", 1), Pieces("porto", "B", 2)),
    points=500,
    store_credit=1000,
    money=Money("pi_1", PaymentStatus.AUTHORIZED, 4500),
    parcels=(Parcel("berlin", "shp_1", ShipmentStatus.BOOKED),),
)


def test_undos_are_told_newest_first_with_what_each_gives_back() -> None:
    assert [(line.undo, line.item, line.words) for line in undos(EVERYTHING)] == [
        (Step.CANCEL_SHIPMENT, "berlin", "cancel parcel shp_1 from berlin"),
        (Step.CANCEL_SHIPMENT, "porto", "look for a parcel from porto at the courier, and cancel it if there is one"),
        (Step.RELEASE_PAYMENT, "", "void the hold of 45.00 EUR"),
        (Step.REFUND_STORE_CREDIT, "", "give back 10.00 EUR of store credit"),
        (Step.RESTORE_POINTS, "", "restore 500 points"),
        (Step.RELEASE_STOCK, "", "release 1 × A in berlin"),
        (Step.RELEASE_STOCK, "", "release 2 × B in porto"),
    ]


@pytest.mark.parametrize(
    ("money", "words"),
    [
        (Money("pi", PaymentStatus.CAPTURED, 4500, 4500), ["refund 45.00 EUR"]),
        (Money("pi", PaymentStatus.CAPTURED, 4500, 4500, 1500), ["refund 30.00 EUR"]),
        (Money("pi", PaymentStatus.REFUND_PENDING, 4500, 4500), ["wait for the refund that is on its way"]),
        (Money("pi", PaymentStatus.REFUNDED, 4500, 4500, 4500), []),
        (Money("pi", PaymentStatus.VOIDED, 4500), []),
        (Money("pi", PaymentStatus.DECLINED), []),
        (Money("pi", PaymentStatus.PROCESSING), ["ask the gateway, and void or refund whatever it holds or took"]),
        (Money("pi", PaymentStatus.UNKNOWN), ["ask the gateway, and void or refund whatever it holds or took"]),
        (Money(), ["ask the gateway, and void or refund whatever it holds or took"]),
    ],
)
def test_the_undo_of_a_payment_is_told_by_where_its_money_is(money: Money, words: list[str]) -> None:
    assert told(effects(stamped(Step.AUTHORIZE_PAYMENT, StepState.INTENDED), money=money)) == words


def test_nothing_is_told_of_what_was_never_begun_or_is_given_back_already() -> None:
    assert told(effects()) == []
    cancelled = Parcel("berlin", "shp_1", ShipmentStatus.CANCELLED)
    refused = stamped(Step.BOOK_SHIPMENT, StepState.REFUSED, item="porto")
    assert told(effects(stamped(Step.BOOK_SHIPMENT, item="berlin"), refused, parcels=(cancelled,))) == []


@pytest.mark.parametrize("step", PARKING)
@pytest.mark.parametrize("kind", ParkKind)
def test_every_step_that_can_be_parked_tells_each_word_that_is_allowed_there(step: Step, kind: ParkKind) -> None:
    lines = actions(EVERYTHING, step, "berlin" if "shipment" in step else "", kind, "E")
    assert {line.action for line in lines} == actions_at(step)
    assert all(line.words for line in lines)
    assert step in STEP_WORDS


def test_compensate_lists_the_undos_and_skip_says_what_stays_undone() -> None:
    lines = {line.action: line for line in actions(EVERYTHING, Step.CAPTURE_PAYMENT, "", ParkKind.TECHNICAL, "E")}
    assert list(lines[RedriveAction.COMPENSATE].undos) == undos(EVERYTHING)
    assert "refused while the gateway cannot be read" in lines[RedriveAction.COMPENSATE].words
    lines = {line.action: line for line in actions(EVERYTHING, Step.RESTORE_POINTS, "", ParkKind.DECISION, "E")}
    assert lines[RedriveAction.SKIP].words.endswith("what is NOT done then: restore 500 points")
    late = actions(EVERYTHING, Step.SETTLE_LATE_MONEY, "", ParkKind.TECHNICAL, "E")[-1]
    assert late.words.endswith("what is NOT done then: void the hold of 45.00 EUR")
    refund = actions(EVERYTHING, Step.REFUND_PAYMENT, "ticket-4711", ParkKind.DECISION, "E")[-1]
    assert refund.words.endswith("what is NOT done then: the refund ticket-4711")
    bug = actions(effects(), Step.OPEN_ORDER, "", ParkKind.DECISION, "KeyError")
    assert bug[1].words == "rejects the order: nothing was taken"


def test_a_dispute_of_a_sold_order_is_asked_about_and_no_word_gives_its_money_back() -> None:
    captured = replace(EVERYTHING, sold=True, money=Money("pi", PaymentStatus.DISPUTED, 4500, 4500))
    lines = actions(captured, Step.SETTLE_LATE_MONEY, "", ParkKind.DECISION, "PaymentDisputed")
    assert {line.action for line in lines} == actions_at(Step.SETTLE_LATE_MONEY)
    assert all(line.words.endswith("moves no money") for line in lines)


def test_after_a_run_that_was_ended_no_word_promises_that_nothing_was_taken() -> None:
    retry, unknown = actions(effects(), Step.OPEN_ORDER, "", ParkKind.DECISION, DEAD_RUN)
    assert (retry.action, unknown.action) == (RedriveAction.RETRY, RedriveAction.COMPENSATE)
    assert unknown.words.endswith("the gateway and the courier are asked, and our books know of nothing")
    known = actions(EVERYTHING, Step.OPEN_ORDER, "", ParkKind.DECISION, DEAD_RUN)[1]
    assert known.words.endswith("our books know of:")
    assert list(known.undos) == undos(EVERYTHING)


@pytest.mark.parametrize(
    ("step", "item", "kind", "key"),
    [
        (Step.RESERVE_STOCK, "", ParkKind.DECISION, "under the same key o1:reserve_stock:1"),
        (Step.BOOK_SHIPMENT, "berlin", ParkKind.DECISION, "(o1:book_shipment:berlin:1)"),
        (Step.RELEASE_PAYMENT, "", ParkKind.TECHNICAL, "under the same key o1:release_payment:2"),
        (Step.RELEASE_PAYMENT, "", ParkKind.DECISION, "as a new effect under the key o1:release_payment:3"),
        (Step.CAPTURE_PAYMENT, "", ParkKind.DECISION, "under the key o1:capture_payment:2"),
    ],
)
def test_retry_names_the_key_under_which_the_effect_is_asked_for(
    step: Step, item: str, kind: ParkKind, key: str
) -> None:
    found = effects(stamped(Step.RELEASE_PAYMENT, StepState.INTENDED, revision=2))
    assert key in actions(found, step, item, kind, "E")[0].words


def test_every_error_that_can_park_an_order_is_said_in_words() -> None:
    parking = names_under(ContradictionError) | names_under(TransientError) | {NotServed.__name__}
    never = {"ContradictionError", "TransientError", "DatabaseNotReached", OnHold.__name__, IntakeHeld.__name__}
    assert parking - never - set(ERROR_WORDS) == set()


def test_each_undo_has_words_for_what_it_gives_back() -> None:
    assert {line.undo for line in undos(EVERYTHING)} == set(UNDO_OF.values())
