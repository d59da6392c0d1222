"""The fence of stamps and locks that effects and their undos share."""

from pathlib import Path

from tests.guards.removal import MARKS, Removal, assert_missed, each

STEPS = "adapters/steps.py"
SHIPPING = "tests/integration/test_shipping_bookings.py"
STAMPS = "tests/integration/test_stamps.py"

REMOVALS = (
    Removal(
        "the lock of an effect",
        "ten attempts of one step at once each find that nothing was done yet",
        STEPS,
        old="SELECT pg_advisory_xact_lock(hashtextextended(:effect, 0))",
        new="SELECT hashtextextended(:effect, 0)",
        proof="tests/integration/test_inventory_concurrency.py::test_ten_attempts_of_one_order_at_once_reserve_once",
    ),
    Removal(
        "the tombstone",
        "an attempt that arrives after its undo takes effect, and nobody gives it back",
        STEPS,
        old="    if stamps.undone:\n",
        new="    if False:\n",
        proof="tests/integration/test_inventory_reservation.py"
        "::test_a_late_reserve_after_its_release_is_fenced_and_takes_nothing",
    ),
    Removal(
        "a second look only for what may still land",
        "every order of a courier that said *not now* keeps its undo open for a minute",
        STEPS,
        old="self.states and not self.never_served and not",
        new="self.states and not",
        proof=f"{SHIPPING}::test_a_courier_that_only_said_not_now_has_no_parcel_that_could_still_appear",
    ),
    Removal(
        "a refusal is an answer",
        "an address without service is looked for again",
        STEPS,
        old="answers = {StepState.DONE, StepState.REFUSED}",
        new="answers = {StepState.DONE}",
        proof=f"{SHIPPING}::test_an_address_without_service_is_a_refusal_and_needs_no_second_look",
    ),
    Removal(
        "not now says nothing of earlier attempts",
        "a booking that was lost before a *not now* lands after its cancel, and nobody looks",
        STEPS,
        old="    if not before.unanswered and (await",
        new="    if (await",
        proof=f"{SHIPPING}::test_not_now_says_nothing_about_an_attempt_before_or_after_it_that_was_not_answered",
    ),
    Removal(
        "not now says nothing of later attempts",
        "a booking that was lost after a *not now* lands after its cancel, and nobody looks",
        STEPS,
        old="never_served=bool(intended and not_served) and not_served[-1].last_at > intended[-1].last_at,",
        new="never_served=bool(intended and not_served),",
        proof=f"{SHIPPING}::test_not_now_says_nothing_about_an_attempt_before_or_after_it_that_was_not_answered",
    ),
    Removal(
        "not now says nothing of an attempt that began meanwhile",
        "the word that the first attempt gets is taken for the second one's, which may still land",
        STEPS,
        old="(await enter(connection, key)).intended_at == began:",
        new="(await enter(connection, key)).intended_at:",
        proof=f"{STAMPS}::test_not_now_says_nothing_about_an_attempt_that_began_meanwhile",
    ),
    Removal(
        "a run that our books forgot",
        "an order that ran before its books were restored is taken for one that never ran, and its effects stay",
        STEPS,
        old="    if not ran and (await",
        new="    if (await",
        proof=f"{STAMPS}::test_an_order_that_ran_has_begun_everything_though_its_books_know_nothing_of_it",
    ),
)

pytestmark = MARKS


@each(REMOVALS)
def test_without_it_a_test_goes_red(removal: Removal, tmp_path: Path) -> None:
    assert_missed(removal, tmp_path / "copy")
