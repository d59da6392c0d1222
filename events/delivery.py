"""Delivery: webhook events become signals to the sagas that wait for them.

At least once, in any order, by any number of deliveries side by side: an event is only a wake-up. What is nobody's is
set aside and kept for a while; what cannot arrive yet waits.
"""

import asyncio
import time
from collections import defaultdict
from datetime import timedelta
from enum import StrEnum

import structlog
from sqlalchemy.ext.asyncio import AsyncConnection
from temporalio.client import Client
from temporalio.common import WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.service import RPCError, RPCStatusCode

from adapters.database import Database
from adapters.inbox import (
    CHANNEL,
    EventKey,
    WaitingEvent,
    claim_waiting,
    keep_waiting,
    move_shipment,
    prune_inbox,
    settle,
)
from adapters.temporal import answering_within
from adapters.tracing import in_trace_of, span
from domain.messages import GOOD_NEWS, MoneyInput, PaymentUpdated
from domain.order import CLOSED_STATUSES, ShipmentStatus
from events.loop import run_loop, side_by_side
from workflows.names import Queue, money_workflow_id, order_workflow_id

#: Rows of one transaction: two calls each, 16 events side by side, so within 20 s even when Temporal is slow.
BATCH = 32
CALL_SECONDS = 5
#: An event without an order's id may come before we have stored the intent or shipment it is about.
UNKNOWN_WAITS_SECONDS = 60
PRUNE_EVERY_SECONDS = 3600
#: Rows of one transaction, which is over in well under a second.
PRUNE_BATCH = 1000
PRUNE_SECONDS = 10

SHIPMENT_EVENTS = {
    "shipment.dispatched": ShipmentStatus.DISPATCHED,
    "shipment.delivered": ShipmentStatus.DELIVERED,
}

log = structlog.get_logger(__name__)


class Verdict(StrEnum):
    """What becomes of an event. The last three are states of the inbox."""

    SIGNAL = "signal"
    WAITING = "waiting"
    DELIVERED = "delivered"
    IGNORED = "ignored"
    SET_ASIDE = "set_aside"


def judge(event: WaitingEvent) -> Verdict:
    """What our own records say about a payment event."""
    if event.object_id is None:
        return Verdict.SET_ASIDE
    if event.order_id is None:
        early = not event.names_order and event.age_seconds < UNKNOWN_WAITS_SECONDS
        return Verdict.WAITING if early else Verdict.SET_ASIDE
    if event.owner not in {None, event.order_id} or event.own_intent not in {None, event.object_id}:
        # Somebody else's intent never touches this order.
        return Verdict.IGNORED
    if event.settled and event.type in GOOD_NEWS:
        return Verdict.IGNORED
    return Verdict.SIGNAL


async def signal_payment(client: Client, event: WaitingEvent) -> Verdict:
    """Signals the event's saga, or `MoneyWorkflow` when the order is closed.

    WAITING: the order is open and its saga does not run. It is not started yet, or it ends in this moment, or it was
    terminated: then the order's next run must see the event, and late money is not its business.

    Raises TemporalUnavailable when there is no answer; the signal may have arrived then.
    """
    assert event.order_id is not None
    assert event.object_id is not None
    update = PaymentUpdated(event_id=event.event_id, type=event.type, intent_id=event.object_id)
    saga = client.get_workflow_handle(order_workflow_id(event.order_id))
    async with answering_within(CALL_SECONDS):
        try:
            await saga.signal("payment_updated", update, rpc_timeout=timedelta(seconds=CALL_SECONDS))
            return Verdict.DELIVERED
        except RPCError as error:
            if error.status is not RPCStatusCode.NOT_FOUND:
                raise
    if event.status not in CLOSED_STATUSES:
        return Verdict.WAITING
    async with answering_within(CALL_SECONDS):
        await client.start_workflow(
            "MoneyWorkflow",
            MoneyInput(order_id=event.order_id, intent_id=event.object_id),
            id=money_workflow_id(event.object_id),
            task_queue=Queue.ORDERS,
            # Each late event may need another look; the effects have keys of their own.
            id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
            id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
            start_signal="payment_updated",
            start_signal_args=[update],
            static_summary=f"Late money of order {event.order_id}",
            rpc_timeout=timedelta(seconds=CALL_SECONDS),
        )
    return Verdict.DELIVERED


class Delivery:
    """Delivers until it is stopped."""

    def __init__(self, database: Database, client: Client) -> None:
        self._database = database
        self._client = client
        self._prune_at = time.monotonic()

    async def run(self, stop: asyncio.Event) -> None:
        """Delivers events as they are stored; survives outages of the database and of Temporal."""
        await run_loop("delivery", self._database, CHANNEL, self._turn, stop)

    async def _turn(self) -> bool:
        if time.monotonic() >= self._prune_at:
            await self._prune()
        return await deliver_waiting(self._database, self._client) >= BATCH

    async def _prune(self) -> None:
        """One batch; the rest at the next turns. Events are delivered whether it goes well or not."""
        self._prune_at = time.monotonic() + PRUNE_EVERY_SECONDS
        try:
            async with asyncio.timeout(PRUNE_SECONDS), self._database.begin() as connection:
                pruned = await prune_inbox(connection, PRUNE_BATCH)
        except Exception as error:
            log.warning("webhook_events_not_pruned", error=type(error).__name__)
            return
        if pruned:
            log.info("webhook_events_pruned", count=pruned)
        if pruned >= PRUNE_BATCH:
            self._prune_at = time.monotonic()


async def deliver_waiting(database: Database, client: Client) -> int:
    """Delivers one batch of events that are due and says how many there were.

    One transaction: a crash before its end delivers again. Raises DatabaseUnavailable.
    """

    async def signal(event: WaitingEvent) -> Verdict:
        verdict = judge(event)
        with in_trace_of(event.order_id), span("deliver_webhook", event_id=event.event_id, type=event.type):
            return await signal_payment(client, event) if verdict is Verdict.SIGNAL else verdict

    async with database.begin() as connection:
        events = await claim_waiting(connection, BATCH)
        if not events:
            return 0
        outcomes = await side_by_side([event for event in events if event.source == "stripe"], signal)
        outcomes += [(event, await _apply(connection, event)) for event in events if event.source == "courier"]
        settled: dict[Verdict, list[EventKey]] = defaultdict(list)
        for event, outcome in outcomes:
            if isinstance(outcome, Exception) or outcome is Verdict.WAITING:
                await keep_waiting(connection, event.key, _why(outcome))
            else:
                settled[outcome].append(event.key)
        for verdict, keys in settled.items():
            await settle(connection, keys, verdict.value)
    for event, outcome in outcomes:
        _tell(event, outcome)
    return len(events)


async def _apply(connection: AsyncConnection, event: WaitingEvent) -> Verdict:
    """A courier's event moves that shipment's own status and nothing else."""
    status = SHIPMENT_EVENTS.get(event.type)
    if event.object_id is None or status is None:
        return Verdict.IGNORED
    moved = await move_shipment(connection, event.object_id, status)
    if moved is None:
        return Verdict.WAITING if event.age_seconds < UNKNOWN_WAITS_SECONDS else Verdict.SET_ASIDE
    return Verdict.DELIVERED if moved else Verdict.IGNORED


def _why(outcome: Verdict | Exception) -> str:
    return type(outcome).__name__ if isinstance(outcome, Exception) else "not_yet"


def _tell(event: WaitingEvent, outcome: Verdict | Exception) -> None:
    ids = {"source": event.source, "event_id": event.event_id, "order_id": event.order_id, "type": event.type}
    if isinstance(outcome, Exception):
        log.warning("webhook_waits", exc_info=outcome, attempts=event.attempts + 1, **ids)
    elif outcome is not Verdict.WAITING:
        log.info(f"webhook_{outcome.value}", **ids)
