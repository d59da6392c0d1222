"""The saga's payment, its parks and its way back: nothing on a guess, nothing twice, nothing forgotten."""

from pathlib import Path

from tests.guards.removal import MARKS, Removal, assert_missed, each

ORDER, STEPS, PAYMENT, PARKING = (
    "workflows/order.py",
    "workflows/steps.py",
    "workflows/payment.py",
    "workflows/parking.py",
)
CAPTURES = "tests/workflows/test_payment_capture.py"
DISPUTES = "tests/workflows/test_disputes.py"
LATE = "tests/workflows/test_late_money.py"
UNDOING = "tests/workflows/test_undoing.py"

REMOVALS = (
    Removal(
        "an unknown outcome is looked up",
        "an order whose capture lost its answers waits for a person",
        PAYMENT,
        old="known = await self._look_up(unknown)\n                again",
        new="known = None\n                again",
        proof=f"{CAPTURES}::test_when_tries_run_out_the_look_up_decides",
    ),
    Removal(
        "what certainly did not happen is asked for under the next key",
        "a failure that the gateway keeps is told again for ever",
        PAYMENT,
        old="                if known.status in not_done:\n                    revision += 1\n",
        new="                if known.status in not_done:\n",
        proof=f"{CAPTURES}::test_when_tries_run_out_the_look_up_decides",
    ),
    Removal(
        "at the deadline only the cancel's answer counts",
        "an order is undone whose shopper has paid in time",
        PAYMENT,
        old="            await self._ask(\n                overdue",
        new="            if workflow.now() >= deadline:\n"
        "                raise Stopped(CancelReason.PAYMENT_TIMED_OUT)\n"
        "            await self._ask(\n                overdue",
        proof="tests/workflows/test_payment_wait.py::test_at_the_deadline_the_gateway_decides_who_was_first[False]",
    ),
    Removal(
        "a payment is undone only where the gateway can be read",
        "an operator compensates an order whose money is taken",
        ORDER,
        old='raise ApplicationError("the gateway cannot be read now", type="OutcomeUnknown") from ending',
        new="pass",
        proof="tests/workflows/test_payment_parking.py"
        "::test_nothing_is_undone_on_a_guess_while_the_gateway_cannot_be_read",
    ),
    Removal(
        "of two operators one decides",
        "the second word overwrites the first, and both are told that theirs counts",
        PARKING,
        old="            if one.decision is not None or not one.waiting:\n",
        new="            if False:\n",
        proof="tests/workflows/test_parking.py::test_two_decisions_in_one_batch_are_one",
    ),
    Removal(
        "a word that makes no sense is refused",
        "a confirmation is skipped, or undone",
        PARKING,
        old="            if message.action not in (allowed := actions_at(message.step)):\n",
        new="            if (allowed := ()):\n",
        proof="tests/workflows/test_confirming.py"
        "::test_a_bug_while_confirming_waits_for_an_operator_and_cannot_be_undone",
    ),
    Removal(
        "an operator's retry is the next revision",
        "a refund that came back is never asked for again",
        STEPS,
        old='argument = argument.model_copy(update={"revision": argument.revision + 1})',
        new="pass",
        proof="tests/workflows/test_payment_release.py"
        "::test_a_refund_that_the_bank_fails_later_waits_for_a_person_and_is_made_again",
    ),
    Removal(
        "what was parked is closed on the way back",
        "an order that is undone shows a question that nobody can answer",
        ORDER,
        old="        await self._steps.parking.close_all()\n",
        new="",
        proof="tests/workflows/test_payment_parking.py::test_a_shopper_may_cancel_while_the_payment_is_parked",
    ),
    Removal(
        "undos run newest first",
        "the goods are given back before the parcel is cancelled",
        "workflows/compensation.py",
        old="        for undo in reversed(self._undos):\n",
        new="        for undo in self._undos:\n",
        proof=f"{UNDOING}::test_undos_run_in_reverse",
    ),
    Removal(
        "an undo that is parked stops none of the others",
        "a courier that is down keeps the shopper's money",
        "workflows/compensation.py",
        old="task.done() or self._is_set_aside(undo))",
        new="task.done())",
        proof=f"{UNDOING}::test_several_undos_park_side_by_side",
    ),
    Removal(
        "a booking that may still land is looked for a minute later",
        "a parcel that lands after its cancel is sent",
        "workflows/compensation.py",
        old="answer.look_again_after_seconds is not None:",
        new="False:",
        proof="tests/workflows/test_shipping.py"
        "::test_a_booking_that_lands_between_the_undo_and_its_second_look_is_cancelled",
    ),
    Removal(
        "money that moved while others were undone goes back first",
        "an order is told as undone whose money is taken",
        ORDER,
        old="        await self._payment.release_what_came_since()\n        await self._stage.record(",
        new="        await self._stage.record(",
        proof=f"{LATE}::test_money_that_moves_while_another_undo_is_parked_is_given_back_before_the_order_closes",
    ),
    Removal(
        "money that moved while the end was written goes back",
        "the last event that a saga takes is forgotten",
        ORDER,
        old="        await self._payment.release_what_came_since()\n        await self._payment.hand_over()\n",
        new="        await self._payment.hand_over()\n",
        proof=f"{LATE}::test_money_that_moves_while_the_end_of_its_order_is_written_is_given_back",
    ),
    Removal(
        "news of a sold order's money is handed over",
        "a dispute that is told while an order is confirmed is forgotten",
        ORDER,
        old="        await self._steps.insist(Step.COMMIT_STOCK, keep_trying=True)\n"
        "        await self._payment.hand_over()\n",
        new="        await self._steps.insist(Step.COMMIT_STOCK, keep_trying=True)\n",
        proof=f"{DISPUTES}::test_news_of_the_payment_while_an_order_is_being_confirmed_is_not_lost",
    ),
    Removal(
        "a refund on its way is handed over",
        "a refund that the bank sends back is forgotten with its order",
        ORDER,
        old="        await self._payment.hand_over()\n        return self._stage.result()\n\n    def _is_refusal",
        new="        return self._stage.result()\n\n    def _is_refusal",
        proof=f"{DISPUTES}::test_a_failed_refund_of_an_undone_order_is_owed_until_it_is_paid",
    ),
    Removal(
        "a saga ends when every word is answered",
        "an operator whose word was taken hears that nothing waits for it",
        ORDER,
        old="        await workflow.wait_condition(workflow.all_handlers_finished)\n",
        new="",
        proof="tests/workflows/test_payment_parking.py::test_an_order_ends_when_the_operators_word_about_it_is_answered",
    ),
)

pytestmark = MARKS


@each(REMOVALS)
def test_without_it_a_test_goes_red(removal: Removal, tmp_path: Path) -> None:
    assert_missed(removal, tmp_path / "copy")
