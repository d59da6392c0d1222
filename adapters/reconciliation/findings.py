"""Findings: what the run found that no staged book tells, and what was sent to repair it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import func, select, text, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters import inbox, outbox
from adapters.tables import (
    order_steps,
    orders,
    payments,
    reconciliation_findings,
    reconciliation_intents,
    reconciliation_parcels,
)
from domain.keys import Step
from domain.order import PARKABLE, UNDONE_STATUSES, OrderStatus, ShipmentStatus
from domain.reconciliation import Finding, FindingKind

#: An order may take so long in a stage that has no deadline of its own: an outage of a provider is waited for an hour,
#: a capture for another.
NO_DEADLINE_SECONDS = 2 * 3600
#: A bank may think about a payment for a day; the saga parks then.
PROCESSING_SECONDS = 25 * 3600
#: What waits for a relay or a delivery is out within a second or two; after this it is told.
WAITING_SECONDS = 300

_OVERDUE = text(r"""
    SELECT o.order_id AS subject, format('%s since %s, nothing of it is parked', o.status,
               to_char(o.updated_at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24\:MI UTC')) AS detail
    FROM orders AS o LEFT JOIN payments AS p USING (order_id)
    WHERE o.status = ANY(:open)
      AND o.updated_at < clock_timestamp() - make_interval(secs => greatest(
          CASE o.status WHEN 'AWAITING_REVIEW' THEN :review WHEN 'AWAITING_PAYMENT' THEN :payment ELSE 0 END
          + :no_deadline, CASE WHEN p.status = 'PROCESSING' THEN :processing ELSE 0 END))
      AND NOT EXISTS (SELECT 1 FROM review_items AS r WHERE r.order_id = o.order_id AND r.closed_at IS NULL)
""")
_WAITING = {
    FindingKind.STARTS_WAIT: text("""
        SELECT count(*), extract(epoch FROM clock_timestamp() - min(created_at)) FROM outbox
        WHERE published_at IS NULL AND type = 'OrderSubmitted'
          AND created_at < clock_timestamp() - make_interval(secs => :seconds)
    """),
    FindingKind.WEBHOOKS_WAIT: text("""
        SELECT count(*), extract(epoch FROM clock_timestamp() - min(received_at)) FROM webhook_inbox
        WHERE state = 'waiting' AND received_at < clock_timestamp() - make_interval(secs => :seconds)
    """),
}
#: The place that such a finding is about.
_PLACES = {FindingKind.STARTS_WAIT: "outbox", FindingKind.WEBHOOKS_WAIT: "webhook_inbox"}


async def write_findings(connection: AsyncConnection, run_id: str, found: Sequence[Finding]) -> None:
    """Keeps findings; one that is there gets the newer detail."""
    rows = [{"run_id": run_id, **finding.model_dump(exclude={"action"})} for finding in found]
    if rows:
        row = insert(reconciliation_findings)
        newer = row.on_conflict_do_update(
            index_elements=["run_id", "subject", "kind"], set_={"detail": row.excluded.detail}
        )
        await connection.execute(newer, rows)


async def overdue_orders(connection: AsyncConnection, deadlines: Mapping[OrderStatus, float]) -> list[Finding]:
    """Open orders that are past every deadline of their stage, with nothing of them parked: nobody would look."""
    terms = {
        "open": sorted(PARKABLE | {OrderStatus.NEEDS_REVIEW}),
        "review": deadlines[OrderStatus.AWAITING_REVIEW],
        "payment": deadlines[OrderStatus.AWAITING_PAYMENT],
        "no_deadline": NO_DEADLINE_SECONDS,
        "processing": PROCESSING_SECONDS,
    }
    rows = await connection.execute(_OVERDUE, terms)
    return [Finding(kind=FindingKind.OVERDUE, **row) for row in rows.mappings()]


async def waiting_messages(connection: AsyncConnection) -> list[Finding]:
    """What relay or delivery should have passed on long ago: one finding for all of it."""
    found = []
    for kind, query in _WAITING.items():
        number, age = (await connection.execute(query, {"seconds": WAITING_SECONDS})).one()
        if number:
            detail = f"{number} wait, the oldest for {age:.0f} s"
            found.append(Finding(subject=_PLACES[kind], kind=kind, detail=detail))
    return found


async def unrepaired(connection: AsyncConnection, run_id: str, after: Finding | None, limit: int) -> list[Finding]:
    """Findings that nothing was sent for yet, page by page."""
    table = reconciliation_findings
    query = select(table).where(table.c.run_id == run_id, table.c.action.is_(None))
    if after is not None:
        query = query.where(
            (table.c.subject > after.subject) | ((table.c.subject == after.subject) & (table.c.kind > after.kind.value))
        )
    rows = await connection.execute(query.order_by(table.c.subject, table.c.kind).limit(limit))
    return [Finding.model_validate(dict(row)) for row in rows.mappings()]


async def note_action(connection: AsyncConnection, run_id: str, finding: Finding, action: str) -> None:
    """What was sent to repair it."""
    table = reconciliation_findings
    this = (table.c.run_id == run_id, table.c.subject == finding.subject, table.c.kind == finding.kind.value)
    await connection.execute(update(table).where(*this).values(action=action))


@dataclass(frozen=True)
class OrderFacts:
    """What a message about an order needs to know of it."""

    order_id: str
    customer_id: str
    status: OrderStatus
    currency: str
    total: int
    intent_id: str | None

    @property
    def undone(self) -> bool:
        """It did not happen: nothing may be left of it."""
        return self.status in UNDONE_STATUSES


async def order_facts(connection: AsyncConnection, order_id: str) -> OrderFacts | None:
    """None: the order is not in our books."""
    columns = ("order_id", "customer_id", "status", "currency", "total")
    query = (
        select(*(orders.c[name] for name in columns), payments.c.intent_id)
        .outerjoin_from(orders, payments, payments.c.order_id == orders.c.order_id)
        .where(orders.c.order_id == order_id)
    )
    row = (await connection.execute(query)).mappings().one_or_none()
    return OrderFacts(**{**row, "status": OrderStatus(row["status"])}) if row else None


async def order_of_intent(connection: AsyncConnection, run_id: str, intent_id: str) -> str | None:
    """The order that a staged intent names."""
    table = reconciliation_intents
    return await connection.scalar(
        select(table.c.order_id).where(table.c.run_id == run_id, table.c.intent_id == intent_id)
    )


async def live_parcels(connection: AsyncConnection, run_id: str, order_id: str) -> list[str]:
    """Warehouses from which the courier has a parcel of the order, as far as the run has read."""
    table = reconciliation_parcels
    live = select(table.c.warehouse).where(
        table.c.run_id == run_id, table.c.order_id == order_id, table.c.status != ShipmentStatus.CANCELLED.value
    )
    return list(await connection.scalars(live.order_by(table.c.warehouse)))


async def items_to_undo(connection: AsyncConnection, run_id: str, finding: Finding) -> list[str]:
    """The items of the undo that would repair this: the warehouses of its parcels, or the one item of the others."""
    if finding.kind is FindingKind.PARCEL_LEFT:
        return await live_parcels(connection, run_id, finding.subject)
    return [""]


async def statuses(connection: AsyncConnection, order_ids: Sequence[str]) -> dict[str, OrderStatus]:
    """The status of those orders that our books have."""
    query = select(orders.c.order_id, orders.c.status).where(orders.c.order_id == func.any(list(order_ids)))
    return {row.order_id: OrderStatus(row.status) for row in await connection.execute(query)}


async def ever_opened(connection: AsyncConnection, order_ids: Sequence[str]) -> set[str]:
    """Those orders that a run has opened once."""
    stamped = select(order_steps.c.order_id).where(
        order_steps.c.order_id == func.any(list(order_ids)), order_steps.c.step == Step.OPEN_ORDER.value
    )
    return set(await connection.scalars(stamped))


async def wake(connection: AsyncConnection) -> str:
    """Has relays and deliveries look at once; says so."""
    for channel in (outbox.CHANNEL, inbox.CHANNEL):
        await connection.execute(select(func.pg_notify(channel, "guard")))
    return "woken"
