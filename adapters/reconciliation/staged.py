"""What a run compares: closed orders as they stand, and what each provider says, written by its party's worker."""

# ruff: noqa: S608 (statements are made of what stands here, of nothing from outside)

from collections.abc import Collection

from sqlalchemy import func, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.courier import Shipment
from adapters.database import insert_rows
from adapters.stripe_answers import Intent, IntentStatus, Refund
from adapters.tables import (
    order_steps,
    payments,
    reconciliation_intents,
    reconciliation_orders,
    reconciliation_parcels,
    reconciliation_refunds,
)
from domain.keys import Step
from domain.order import CLOSED_STATUSES
from domain.reconciliation import BegunRun, RunKind

#: A hundred thousand orders are staged in a second or two.
STATEMENT_TIMEOUT_SECONDS = 60

#: The newest change of an order, its payment and its parcels. GREATEST passes over nulls.
_CHANGED_AT = """greatest(
    o.updated_at,
    (SELECT p.updated_at FROM payments AS p WHERE p.order_id = o.order_id),
    (SELECT max(s.updated_at) FROM shipments AS s WHERE s.order_id = o.order_id)
)"""
_STAGE = f"""
    INSERT INTO reconciliation_orders (run_id, order_id, status, currency, amount_due, changed_at, whole)
    SELECT :run_id, order_id, status, currency, amount_due, changed_at, {{whole}} FROM (
        SELECT o.*, {_CHANGED_AT} AS changed_at FROM orders AS o WHERE o.status = ANY(:closed) AND ({{which}})
    ) AS closed WHERE changed_at < {{before}}
    ON CONFLICT DO NOTHING
"""
_UNSETTLED = "o.order_id IN (SELECT order_id FROM refunds WHERE status IN ('requested', 'pending'))"
_RECENT = {
    RunKind.GUARD: f"o.updated_at > :since OR {_UNSETTLED}",
    RunKind.NIGHTLY: f"o.created_at > :since OR o.updated_at > :since OR {_UNSETTLED}",
}
_STILL = "clock_timestamp() - make_interval(secs => :grace)"
#: What only the providers named. Nobody touched it since before they were asked.
_NAMED = """
    o.order_id IN (
        SELECT order_id FROM reconciliation_intents WHERE run_id = :run_id AND (held > 0 OR captured > 0)
        UNION SELECT order_id FROM reconciliation_parcels WHERE run_id = :run_id AND status <> 'CANCELLED'
    )
"""
_BEFORE_THE_RUN = "(SELECT started_at FROM reconciliation_runs WHERE run_id = :run_id)"
_DROP_CHANGED = text(f"""
    DELETE FROM reconciliation_orders AS staged USING orders AS o
    WHERE staged.run_id = :run_id AND o.order_id = staged.order_id
      AND (o.status, {_CHANGED_AT}) IS DISTINCT FROM (staged.status, staged.changed_at)
""")


async def let_work_long(connection: AsyncConnection) -> None:
    """Statements over all of a run's orders may take longer than a step's."""
    await connection.execute(text(f"SET LOCAL statement_timeout = '{STATEMENT_TIMEOUT_SECONDS}s'"))


async def stage_closed_orders(connection: AsyncConnection, kind: RunKind, run: BegunRun) -> None:
    """The closed orders that a run of this kind compares: those of its time, and those whose refund is on its way.

    What changed within the grace is left to the next run.
    """
    terms = {"run_id": run.run_id, "closed": sorted(CLOSED_STATUSES), "since": run.since, "grace": run.grace_seconds}
    await connection.execute(text(_STAGE.format(whole="true", which=_RECENT[kind], before=_STILL)), terms)


async def stage_named_orders(connection: AsyncConnection, run_id: str) -> None:
    """Older closed orders that a provider named: what they still have there is compared, not what is missing."""
    terms = {"run_id": run_id, "closed": sorted(CLOSED_STATUSES)}
    await connection.execute(text(_STAGE.format(whole="false", which=_NAMED, before=_BEFORE_THE_RUN)), terms)


async def drop_changed_orders(connection: AsyncConnection, run_id: str) -> None:
    """What changed while the providers were asked is left to the next run."""
    await connection.execute(_DROP_CHANGED, {"run_id": run_id})


async def write_intents(connection: AsyncConnection, run_id: str, intents: Collection[Intent]) -> None:
    """Readings of intents that name an order of ours; others are somebody else's. The first reading stands."""
    await insert_rows(
        connection,
        reconciliation_intents,
        [
            {
                "run_id": run_id,
                "intent_id": intent.id,
                "order_id": intent.order_id,
                "currency": intent.currency,
                "held": intent.amount_capturable if intent.status is IntentStatus.REQUIRES_CAPTURE else 0,
                "captured": intent.amount_received,
            }
            for intent in intents
            if intent.order_id is not None
        ],
    )


async def write_refunds(connection: AsyncConnection, run_id: str, refunds: Collection[Refund]) -> None:
    """Readings of refunds. The first one stands."""
    await insert_rows(
        connection,
        reconciliation_refunds,
        [
            {
                "run_id": run_id,
                "refund_id": refund.id,
                "intent_id": refund.intent_id,
                "refund_key": refund.refund_key,
                "amount": refund.amount,
                "status": refund.status.value,
            }
            for refund in refunds
            if refund.intent_id is not None
        ],
    )


async def write_parcels(connection: AsyncConnection, run_id: str, parcels: Collection[Shipment]) -> None:
    """Readings of parcels whose reference is `order:warehouse`. The first one stands."""
    named = [(parcel, *parcel.reference.partition(":")) for parcel in parcels]
    await insert_rows(
        connection,
        reconciliation_parcels,
        [
            {
                "run_id": run_id,
                "shipment_id": parcel.id,
                "order_id": order_id,
                "warehouse": warehouse,
                "status": parcel.status.value,
            }
            for parcel, order_id, _, warehouse in named
        ],
    )


async def intents_not_listed(connection: AsyncConnection, run_id: str, after: str, limit: int) -> list[tuple[str, str]]:
    """Orders of the run, in the order of their ids, with their intent that the gateway's list did not have."""
    staged, there = reconciliation_orders, reconciliation_intents
    listed = select(there.c.intent_id).where(there.c.run_id == run_id, there.c.intent_id == payments.c.intent_id)
    query = (
        select(staged.c.order_id, payments.c.intent_id)
        .join(payments, payments.c.order_id == staged.c.order_id)
        .where(staged.c.run_id == run_id, staged.c.order_id > after, ~listed.exists())
        .order_by(staged.c.order_id)
        .limit(limit)
    )
    return [(row.order_id, row.intent_id) for row in await connection.execute(query)]


async def bookings_not_listed(
    connection: AsyncConnection, run_id: str, after: tuple[str, str], limit: int
) -> list[tuple[str, str]]:
    """Orders of the run and warehouses where a booking was tried that the courier's list did not have."""
    staged, there = reconciliation_orders, reconciliation_parcels
    listed = select(there.c.shipment_id).where(
        there.c.run_id == run_id, there.c.order_id == order_steps.c.order_id, there.c.warehouse == order_steps.c.item
    )
    place = func.row(order_steps.c.order_id, order_steps.c.item)
    query = (
        select(order_steps.c.order_id, order_steps.c.item)
        .distinct()
        .join(staged, staged.c.order_id == order_steps.c.order_id)
        .where(
            staged.c.run_id == run_id,
            order_steps.c.step == Step.BOOK_SHIPMENT.value,
            place > func.row(*after),
            ~listed.exists(),
        )
        .order_by(order_steps.c.order_id, order_steps.c.item)
        .limit(limit)
    )
    return [(row.order_id, row.item) for row in await connection.execute(query)]
