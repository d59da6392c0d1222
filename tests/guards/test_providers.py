"""What the gateway and the courier answer: old answers, answers in flight, answers about somebody else."""

from pathlib import Path

from tests.guards.removal import MARKS, Removal, assert_missed, each

EFFECTS, GATEWAY = "adapters/gateway_effects.py", "adapters/payment_gateway.py"
COURIER, SHIPPING = "adapters/courier.py", "activities/shipping.py"
REFUSALS = "tests/unit/test_gateway_refusals.py"
OUTCOMES = "tests/unit/test_http_outcomes.py"
TAKING = "tests/integration/test_payments_capture.py"
RETURNING = "tests/integration/test_payments_release.py"
BOOKINGS = "tests/integration/test_shipping_bookings.py"

REMOVALS = (
    Removal(
        "an answer that is told again is old",
        "a refusal or a success of then is taken for one of now",
        GATEWAY,
        old="""return (headers or {}).get("Idempotent-Replayed") == "true\"""",
        new="return False",
        proof=f"{REFUSALS}::test_an_old_success_told_again_says_nothing_about_now",
    ),
    Removal(
        "a key in flight is waited for",
        "a call that is under way is taken for a contradiction, and a person is asked",
        GATEWAY,
        old="        if answer.status == 409:\n",
        new="        if False:\n",
        proof=f"{TAKING}::test_a_capture_in_flight_is_waited_for",
    ),
    Removal(
        "the SDK repeats nothing by itself",
        "a request goes out again behind our back, past its time and past a hold",
        GATEWAY,
        old="max_network_retries=0,",
        new="max_network_retries=2,",
        proof=f"{REFUSALS}::test_a_request_is_sent_once_even_where_the_gateway_asks_for_another",
    ),
    Removal(
        "the gateway's version is pinned",
        "an upgrade of the SDK changes what an answer means",
        GATEWAY,
        old="            stripe_version=API_VERSION,\n",
        new="",
        proof=f"{REFUSALS}::test_every_request_names_the_version_that_we_understand",
    ),
    Removal(
        "the next key only where nothing has moved",
        "an effect is asked for anew although the intent has moved on meanwhile",
        EFFECTS,
        old="            if now != intent:\n                return now\n",
        new="",
        proof=f"{RETURNING}::test_money_taken_while_the_hold_is_being_cancelled_is_refunded",
    ),
    Removal(
        "the next key of a refund only where no refund has come",
        "a refund that is there is asked for once more, and the shopper is paid twice",
        EFFECTS,
        old="if await self._gateway.list_refunds(intent.id) == list(known):",
        new="if True:",
        proof=f"{RETURNING}::test_a_refund_that_came_in_between_is_not_asked_for_under_the_next_key",
    ),
    Removal(
        "nothing left to refund is looked at",
        "an undo whose money somebody else gave back in that moment waits for a person",
        EFFECTS,
        old="            except AlreadyRefunded:\n                return\n",
        new="",
        proof=f"{RETURNING}::test_money_that_somebody_gives_back_in_that_moment_is_not_owed",
    ),
    Removal(
        "a booking is looked for before it is repeated",
        "the courier is asked twice for a parcel whose answer was lost",
        SHIPPING,
        old="await self._courier.find(reference) if StepState.INTENDED in stamps.states else None",
        new="None",
        proof=f"{BOOKINGS}::test_a_booking_whose_answer_was_lost_is_found_by_the_next_attempt",
    ),
    Removal(
        "an attempt is stamped before the courier is asked",
        "nobody knows that there was a booking to look for",
        SHIPPING,
        old="began = await stamp(connection, key, StepState.INTENDED, attempt=activity.info().attempt)",
        new="began = None",
        proof=f"{BOOKINGS}::test_a_booking_whose_answer_was_lost_is_found_by_the_next_attempt",
    ),
    Removal(
        "a booking that is there is the answer",
        "the courier is asked again for a parcel that we have",
        SHIPPING,
        old="            if stamps.done and stamps.provider_reference:\n",
        new="            if False:\n",
        proof=f"{BOOKINGS}::test_booking_twice_gives_the_same_parcel_and_asks_the_courier_once",
    ),
    Removal(
        "a cancelled parcel is not taken for booked",
        "an order is confirmed whose parcel never leaves",
        SHIPPING,
        old="        if shipment.status is ShipmentStatus.CANCELLED:\n",
        new="        if False:\n",
        proof=f"{BOOKINGS}::test_a_parcel_that_the_courier_has_cancelled_is_not_taken_for_booked",
    ),
    Removal(
        "a booking becomes ours behind the fence",
        "a parcel that lands after its undo is sent",
        SHIPPING,
        old="undone = (await enter(connection, key)).undone",
        new="undone = False",
        proof=f"{BOOKINGS}::test_a_booking_that_hangs_and_lands_after_the_undo_is_cancelled_by_its_attempt",
    ),
    Removal(
        "an undo of a booking leaves a tombstone where nothing was",
        "a late attempt books a parcel for an order that is undone",
        SHIPPING,
        old="            await stamp(connection, forward, StepState.UNDONE)\n",
        new="",
        proof=f"{BOOKINGS}::test_where_nothing_was_ever_booked_the_undo_is_done_at_once",
    ),
    Removal(
        "a booking without an answer is looked for again",
        "a parcel that lands after its cancel is sent",
        SHIPPING,
        old="    return left if left > 0 else None",
        new="    return None",
        proof=f"{BOOKINGS}::test_a_booking_that_lands_when_its_attempt_is_gone_is_found_by_the_second_look",
    ),
    Removal(
        "an answer about another parcel is none",
        "an order goes on with somebody else's parcel",
        COURIER,
        old="    if shipment.reference != reference:\n",
        new="    if False:\n",
        proof=f"{BOOKINGS}::test_what_the_courier_did_not_clearly_say_is_asked_again[fault5-GatewayProtocolError]",
    ),
    Removal(
        "only the courier's own word means no such parcel",
        "the page of a proxy ends an undo whose parcel is booked",
        COURIER,
        old="""    if answer.status == 404 and answer.code() == "not_found":""",
        new="    if answer.status == 404:",
        proof=f"{OUTCOMES}::test_a_page_that_is_not_found_is_not_a_parcel_that_is_not_there",
    ),
    Removal(
        "a cancel that leaves a parcel booked is none",
        "an order is told as undone whose parcel is sent",
        COURIER,
        old="        if shipment is not None and shipment.status is not ShipmentStatus.CANCELLED:\n",
        new="        if False:\n",
        proof=f"{OUTCOMES}::test_a_cancel_that_leaves_the_parcel_booked_is_not_understood",
    ),
)

pytestmark = MARKS


@each(REMOVALS)
def test_without_it_a_test_goes_red(removal: Removal, tmp_path: Path) -> None:
    assert_missed(removal, tmp_path / "copy")
