"""The saga on its way forward: what it registers before it acts, and when it looks whether it should go on."""

from pathlib import Path

from tests.guards.removal import MARKS, Removal, assert_missed, each

ORDER, STEPS, PAYMENT, PARKING = (
    "workflows/order.py",
    "workflows/steps.py",
    "workflows/payment.py",
    "workflows/parking.py",
)
RESERVING = "tests/workflows/test_reserving.py"
CANCELLING = "tests/workflows/test_cancelling.py"
AGAIN = "tests/workflows/test_second_runs.py"

REMOVALS = (
    Removal(
        "the undo of a reservation is registered before it",
        "pieces whose reservation lost its answer are never given back",
        ORDER,
        old="        self._undo.push(Step.RELEASE_STOCK)\n",
        new="",
        proof=f"{RESERVING}::test_a_database_that_stays_down_undoes_the_order[after the effect]",
    ),
    Removal(
        "the undo of points is registered before it",
        "points whose payment lost its answer are never given back",
        ORDER,
        old="            self._undo.push(Step.RESTORE_POINTS)\n",
        new="",
        proof=f"{RESERVING}::test_a_database_that_stays_down_undoes_the_order[after the effect]",
    ),
    Removal(
        "the undo of store credit is registered before it",
        "credit whose payment lost its answer is never given back",
        ORDER,
        old="            self._undo.push(Step.REFUND_STORE_CREDIT)\n",
        new="",
        proof=f"{RESERVING}::test_a_database_that_stays_down_undoes_the_order[after the effect]",
    ),
    Removal(
        "the undo of the payment is registered before it",
        "a hold whose step ended as refused all the same stays",
        ORDER,
        old="        self._undo.push(Step.RELEASE_PAYMENT)\n        await self._payment.authorize()\n",
        new="        await self._payment.authorize()\n        self._undo.push(Step.RELEASE_PAYMENT)\n",
        proof="tests/workflows/test_payment_authorize.py"
        "::test_a_hold_is_freed_when_its_step_ends_as_refused_all_the_same",
    ),
    Removal(
        "the undo of each booking is registered before it",
        "a parcel of an order that was refused elsewhere is sent",
        ORDER,
        old="        for warehouse in warehouses:\n            self._undo",
        new="        for warehouse in ():\n            self._undo",
        proof="tests/workflows/test_shipping.py::test_one_refused_parcel_of_several_undoes_the_order",
    ),
    Removal(
        "the saga runs in a task of its own",
        "a cancel request of Temporal tears the saga off in the middle of a step",
        ORDER,
        old="await asyncio.shield(saga)",
        new="await saga",
        proof=f"{CANCELLING}::test_a_cancel_in_the_moment_of_the_order_undoes_it[in Temporal]",
    ),
    Removal(
        "steps side by side are settled together",
        "the way back begins while a step is still under way",
        STEPS,
        old="asyncio.gather(*members, return_exceptions=True)",
        new="asyncio.gather(*members)",
        proof=f"{RESERVING}::test_of_two_refusals_the_first_of_the_table_is_the_reason_whoever_answers_first",
    ),
    Removal(
        "the reason is the first of the table",
        "the same order is told another reason at each replay of its troubles",
        STEPS,
        old="    for result in results:\n",
        new="    for result in reversed(results):\n",
        proof=f"{RESERVING}::test_of_two_refusals_the_first_of_the_table_is_the_reason_whoever_answers_first",
    ),
    Removal(
        "a cancelled order reserves nothing",
        "goods are set aside for an order that is cancelled already",
        ORDER,
        old="        self._steps.stop_if_cancelled()\n        self._undo.push(Step.RELEASE_STOCK)\n",
        new="        self._undo.push(Step.RELEASE_STOCK)\n",
        proof=f"{CANCELLING}::test_a_cancel_at_any_step_before_the_pivot_undoes_the_order[by the customer]",
    ),
    Removal(
        "a cancelled order asks for no money",
        "a card is charged for an order that is cancelled already",
        ORDER,
        old="        self._steps.stop_if_cancelled()\n        self._undo.push(Step.RELEASE_PAYMENT)\n",
        new="        self._undo.push(Step.RELEASE_PAYMENT)\n",
        proof=f"{CANCELLING}::test_a_cancel_at_any_step_before_the_pivot_undoes_the_order[by the customer]",
    ),
    Removal(
        "a cancelled order books no parcel",
        "a courier comes for an order that is cancelled already",
        ORDER,
        old="        self._steps.stop_if_cancelled()\n        for warehouse",
        new="        for warehouse",
        proof=f"{CANCELLING}::test_a_cancel_at_any_step_before_the_pivot_undoes_the_order[by the customer]",
    ),
    Removal(
        "the last look at the cancel is where the capture is scheduled",
        "an accepted cancel is overtaken by the capture",
        ORDER,
        old="        self._steps.stop_if_cancelled()\n        self._pivot_passed = True\n",
        new="        self._pivot_passed = True\n",
        proof=f"{CANCELLING}::test_a_cancel_at_any_step_before_the_pivot_undoes_the_order[by the customer]",
    ),
    Removal(
        "after the pivot a cancel is too late",
        "a cancel is accepted whose money is being taken",
        ORDER,
        old="        self._pivot_passed = True\n        if order.amount_due:\n",
        new="        if order.amount_due:\n",
        proof=f"{CANCELLING}::test_after_the_pivot_a_cancel_is_too_late_and_the_order_is_confirmed",
    ),
    Removal(
        "after the pivot a cancel request of Temporal is not noted",
        "a capture whose outcome is unknown is undone on a guess",
        ORDER,
        old="self._cancel is None and not self._pivot_passed and not",
        new="self._cancel is None and not",
        proof="tests/workflows/test_payment_capture.py"
        "::test_a_capture_that_stays_unknown_parks_and_cannot_be_compensated",
    ),
    Removal(
        "a second run undoes what the first one began",
        "an order whose run was ended by hand leaves its effects behind",
        ORDER,
        old="        self._remember_earlier_runs(order)\n",
        new="",
        proof=f"{AGAIN}::test_a_cancel_at_the_start_of_a_second_run_undoes_what_the_first_one_began",
    ),
    Removal(
        "an order that an earlier run has sold is not undone",
        "a cancel of a run that was reset takes back what was delivered",
        ORDER,
        old="if await self._stage.record(OrderStatus.COMPENSATING, self._cancel) in SOLD_STATUSES:",
        new="if await self._stage.record(OrderStatus.COMPENSATING, self._cancel) is None:",
        proof=f"{AGAIN}::test_a_cancel_after_a_reset_never_unconfirms_an_order",
    ),
    Removal(
        "no score is no good score",
        "orders pass by themselves while the fraud scorer is down",
        "workflows/review.py",
        old="        except (RunOut, Contradicted):\n            self._score = None",
        new="        except (RunOut, Contradicted):\n            self._score = 0",
        proof="tests/workflows/test_opening.py::test_a_scorer_that_is_down_asks_a_person_until_it_gives_a_good_score",
    ),
    Removal(
        "what woke a wait counts before its end",
        "a cancel that comes with the end of a wait is not seen",
        "workflows/calls.py",
        old="        return woken()\n",
        new="        return False\n",
        proof="tests/unit/test_waits.py::test_what_happens_in_the_moment_in_which_a_wait_ends_has_woken_it",
    ),
)

pytestmark = MARKS


@each(REMOVALS)
def test_without_it_a_test_goes_red(removal: Removal, tmp_path: Path) -> None:
    assert_missed(removal, tmp_path / "copy")
