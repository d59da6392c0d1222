"""The doors: orders and webhooks come in once, go on once, and are lost never."""

from pathlib import Path

from tests.guards.removal import MARKS, Removal, assert_missed, each

ORDERS, INBOX, OUTBOX = "adapters/orders.py", "adapters/inbox.py", "adapters/outbox.py"
SIGNATURES, DELIVERY, RELAY = "api/signatures.py", "events/delivery.py", "events/relay.py"
INTAKE = "tests/integration/test_orders_intake.py"
WEBHOOKS = "tests/integration/test_api_webhooks.py"
SIGNED = "tests/unit/test_api_signatures.py"
RELAYED = "tests/integration/test_relay.py"
DELIVERED = "tests/integration/test_delivery.py"

REMOVALS = (
    Removal(
        "requests under one key pass one by one",
        "a shopper's second click is an error, or a second order",
        ORDERS,
        old="func.pg_advisory_xact_lock(func.hashtextextended(order_id, 0))",
        new="func.hashtextextended(order_id, 0)",
        proof=f"{INTAKE}::test_fifty_requests_at_once_under_one_key_make_one_order",
    ),
    Removal(
        "a key stands for one order",
        "a shopper who orders something else under the same key is told that it was taken",
        ORDERS,
        old='            if earlier["fingerprint"] != mark:\n',
        new="            if False:\n",
        proof=f"{INTAKE}::test_another_order_under_the_same_key_is_refused_and_nothing_is_written",
    ),
    Removal(
        "a held intake takes no order",
        "orders come in while an operator has closed the door",
        ORDERS,
        old="        if held:\n",
        new="        if False:\n",
        proof="tests/workflows/test_holds.py"
        "::test_while_the_intake_is_held_accepted_orders_go_on_and_new_ones_are_asked_to_come_back",
    ),
    Removal(
        "an event is told once",
        "consumers hear of one confirmation twice",
        OUTBOX,
        old='row.on_conflict_do_nothing(index_elements=["event_id"])',
        new="row",
        proof="tests/integration/test_orders_outbox.py::test_the_same_fact_is_told_once",
    ),
    Removal(
        "relays claim different events",
        "each relay starts every order",
        OUTBOX,
        old=".limit(limit).with_for_update(skip_locked=True)",
        new=".limit(limit)",
        proof="tests/integration/test_orders_outbox.py::test_two_relays_never_hold_the_same_event",
    ),
    Removal(
        "relays do not wait for each other",
        "one slow relay stops all of them",
        OUTBOX,
        old=".with_for_update(skip_locked=True)",
        new=".with_for_update(nowait=True)",
        proof=f"{RELAYED}::test_what_another_relay_holds_is_not_waited_for",
    ),
    Removal(
        "only what was started is published",
        "an order that was accepted while Temporal was down is never started",
        RELAY,
        old="[row.sequence for row, outcome in outcomes if outcome is None]",
        new="[row.sequence for row, outcome in outcomes]",
        proof=f"{RELAYED}::test_an_outage_of_temporal_loses_no_order",
    ),
    Removal(
        "an order that has ended is not started again",
        "a crash between start and commit runs an order a second time",
        RELAY,
        old="reuse: WorkflowIDReusePolicy = WorkflowIDReusePolicy.REJECT_DUPLICATE,",
        new="reuse: WorkflowIDReusePolicy = WorkflowIDReusePolicy.ALLOW_DUPLICATE,",
        proof=f"{RELAYED}::test_a_saga_that_already_runs_or_has_ended_is_left_alone",
    ),
    Removal(
        "a webhook is signed over its exact bytes",
        "anybody can tell the shop that a payment went well",
        "api/webhooks.py",
        old='        verify(raw, request.headers.get(header, ""), secrets, now=time.time())\n',
        new="",
        proof=f"{WEBHOOKS}::test_the_exact_bytes_are_accepted_and_others_are_not",
    ),
    Removal(
        "a signature fits",
        "any signature will do",
        SIGNATURES,
        old="    if not any(matches):\n",
        new="    if False:\n",
        proof=f"{SIGNED}::test_a_signature_of_anything_else_does_not_fit[" + "0" * 64 + "]",
    ),
    Removal(
        "a signature is from now",
        "what was overheard once can be sent again for ever",
        SIGNATURES,
        old="    if abs(now - int(stamps[0])) > TOLERANCE_SECONDS:\n",
        new="    if False:\n",
        proof=f"{SIGNED}::test_a_stamp_farther_away_is_not[-301]",
    ),
    Removal(
        "a signature is not from the future",
        "what is signed for next year can be sent until then",
        SIGNATURES,
        old="    if abs(now - int(stamps[0])) > TOLERANCE_SECONDS:\n",
        new="    if now - int(stamps[0]) > TOLERANCE_SECONDS:\n",
        proof=f"{SIGNED}::test_a_stamp_farther_away_is_not[301]",
    ),
    Removal(
        "a webhook is kept once",
        "a redelivered event is refused, and delivered again and again",
        INBOX,
        old='row.on_conflict_do_nothing(index_elements=["source", "event_id"]).returning(',
        new="row.returning(",
        proof=f"{WEBHOOKS}::test_twenty_deliveries_of_one_event_at_once_are_one_event",
    ),
    Removal(
        "deliveries claim different events",
        "each delivery wakes every order, and they wait for each other",
        INBOX,
        old="        .with_for_update(of=inbox, skip_locked=True)\n",
        new="",
        proof=f"{DELIVERED}::test_two_deliveries_never_hold_the_same_event",
    ),
    Removal(
        "an event that could not be delivered stays",
        "an outage of Temporal loses the news of payments",
        DELIVERY,
        old="            if isinstance(outcome, Exception) or outcome is Verdict.WAITING:\n",
        new="            if isinstance(outcome, Exception):\n"
        "                settled[Verdict.DELIVERED].append(event.key)\n"
        "            elif outcome is Verdict.WAITING:\n",
        proof=f"{DELIVERED}::test_an_outage_of_temporal_loses_no_event",
    ),
    Removal(
        "news of an open order waits for its saga",
        "an event that is here before its order starts goes to nobody",
        DELIVERY,
        old="    if event.status not in CLOSED_STATUSES:\n",
        new="    if False:\n",
        proof=f"{DELIVERED}::test_an_open_order_without_a_run_keeps_its_events",
    ),
    Removal(
        "each late event gets a look",
        "money that moves a second time after an order's end stays where it is",
        DELIVERY,
        old="id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE,",
        new="id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,",
        proof=f"{DELIVERED}::test_late_money_gets_a_workflow_of_its_own",
    ),
    Removal(
        "an event about another intent wakes nobody",
        "somebody else's payment moves an order",
        DELIVERY,
        old="    if event.owner not in {None, event.order_id} or event.own_intent not in {None, event.object_id}:\n",
        new="    if False:\n",
        proof=f"{DELIVERED}::test_somebody_elses_intent_never_touches_an_order",
    ),
    Removal(
        "good news of a settled order is no news",
        "every confirmed order starts a workflow more",
        DELIVERY,
        old="    if event.settled and event.type in GOOD_NEWS:\n",
        new="    if False:\n",
        proof=f"{DELIVERED}::test_the_news_that_a_captured_payment_went_well_is_no_news",
    ),
    Removal(
        "a parcel only moves forward",
        "a late event tells a delivered or a cancelled parcel as on its way",
        INBOX,
        old=".where(shipments.c.shipment_id == shipment_id, shipments.c.status.in_(_BEFORE[status]))",
        new=".where(shipments.c.shipment_id == shipment_id)",
        proof=f"{DELIVERED}::test_a_couriers_event_moves_its_shipment_forward_only"
        "[CANCELLED-shipment.dispatched-CANCELLED-ignored]",
    ),
)

pytestmark = MARKS


@each(REMOVALS)
def test_without_it_a_test_goes_red(removal: Removal, tmp_path: Path) -> None:
    assert_missed(removal, tmp_path / "copy")
