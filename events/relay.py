"""The relay: what `OrderSubmitted` says becomes a running saga, whoever crashed in between.

At least once: the order's workflow id makes a second start harmless. Other events stay in the outbox for their own
consumers. Any number of relays run side by side, and the API publishes single orders the same way.
"""

import asyncio
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import structlog
from temporalio.client import Client
from temporalio.common import (
    MetricMeter,
    SearchAttributePair,
    TypedSearchAttributes,
    WorkflowIDConflictPolicy,
    WorkflowIDReusePolicy,
)
from temporalio.exceptions import WorkflowAlreadyStartedError

from adapters.database import Database
from adapters.outbox import CHANNEL, OutboxRow, claim_submitted, mark_failed, mark_published
from adapters.temporal import TemporalUnavailable, answering_within
from adapters.tracing import in_trace_of, span
from domain.messages import OrderInput
from domain.money import format_minor
from domain.order import OrderStatus
from events.loop import run_loop, side_by_side
from workflows.names import CUSTOMER_ID, ORDER_STATUS, ORDER_TOTAL, Queue, order_workflow_id

#: Rows of one transaction: short enough that its locks do not matter when Temporal is slow.
BATCH = 32
START_SECONDS = 5

log = structlog.get_logger(__name__)


async def start_order(
    client: Client,
    order_id: str,
    *,
    customer_id: str,
    total: int,
    currency: str,
    found_dead: OrderInput | None = None,
    reuse: WorkflowIDReusePolicy = WorkflowIDReusePolicy.REJECT_DUPLICATE,
) -> None:
    """Starts the order's saga. Idempotent by the workflow id: one that runs, or has ended, is left alone.

    `reuse` says which ends another run may follow; one that does takes `found_dead`. Raises TemporalUnavailable when
    there is no answer; the saga may have started then.
    """
    attributes: list[SearchAttributePair[Any]] = [
        SearchAttributePair(ORDER_STATUS, OrderStatus.PENDING.value),
        SearchAttributePair(CUSTOMER_ID, customer_id),
        SearchAttributePair(ORDER_TOTAL, total),
    ]
    price = format_minor(total, currency)
    async with answering_within(START_SECONDS):
        try:
            await client.start_workflow(
                "OrderWorkflow",
                found_dead or OrderInput(order_id=order_id),
                id=order_workflow_id(order_id),
                task_queue=Queue.ORDERS,
                id_reuse_policy=reuse,
                id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
                static_summary=f"Order {order_id}: {price}",
                static_details=f"## Order {order_id}\n- customer `{customer_id}`\n- total {price}",
                memo={"order_id": order_id, "customer_id": customer_id, "total": price},
                search_attributes=TypedSearchAttributes(attributes),
                rpc_timeout=timedelta(seconds=START_SECONDS),
            )
        except WorkflowAlreadyStartedError:
            return


@dataclass(frozen=True)
class Published:
    """What became of one batch of claimed events."""

    started: int
    failed: int

    @property
    def full(self) -> bool:
        """Whether there may be more to claim at once."""
        return self.started + self.failed >= BATCH


async def publish_submitted(database: Database, client: Client, *, order_id: str | None = None) -> Published:
    """Starts the sagas of claimed `OrderSubmitted` events, of one order or of all that are due, and marks them.

    One transaction: a crash before its end publishes again. Raises DatabaseUnavailable.
    """

    async def start(row: OutboxRow) -> None:
        facts = {name: row.data[name] for name in ("customer_id", "total", "currency")}
        with in_trace_of(row.order_id), span("start_order", order_id=row.order_id):
            await start_order(client, row.order_id, **facts)

    async with database.begin() as connection:
        rows = await claim_submitted(connection, BATCH, order_id=order_id)
        if not rows:
            return Published(0, 0)
        outcomes = await side_by_side(rows, start)
        await mark_published(connection, [row.sequence for row, outcome in outcomes if outcome is None])
        failures = [(row, outcome) for row, outcome in outcomes if outcome is not None]
        for row, failure in failures:
            await mark_failed(connection, row.sequence, type(failure).__name__)
    for row, failure in failures:
        _tell(row, failure)
    return Published(started=len(rows) - len(failures), failed=len(failures))


def _tell(row: OutboxRow, failure: Exception) -> None:
    ids = {"order_id": row.order_id, "correlation_id": row.correlation_id, "attempts": row.attempts + 1}
    if isinstance(failure, TemporalUnavailable):
        log.warning("order_start_waits", why=str(failure), **ids)
    else:
        log.error("order_start_failed", exc_info=failure, **ids)


class Relay:
    """Publishes until it is stopped."""

    def __init__(self, database: Database, client: Client, meter: MetricMeter = MetricMeter.noop) -> None:
        self._database = database
        self._client = client
        self._starts = meter.create_counter("orders_relay_starts", "Sagas that the relay started, or could not start.")

    async def run(self, stop: asyncio.Event) -> None:
        """Starts accepted orders as they are committed; survives outages of the database and of Temporal."""
        await run_loop("relay", self._database, CHANNEL, self._turn, stop)

    async def _turn(self) -> bool:
        published = await publish_submitted(self._database, self._client)
        for outcome, count in (("started", published.started), ("failed", published.failed)):
            if count:
                self._starts.add(count, {"outcome": outcome})
        if published.started:
            log.info("orders_started", count=published.started)
        return published.full
