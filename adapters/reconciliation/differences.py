"""The differences between our books and the providers', one query a kind.

Each starts from what the run staged and reads the rest by its key, so a guard's look costs what changed lately and a
night's look what a month has. An undo that an operator waived excuses what it left behind.
"""

# ruff: noqa: S608 (statements are made of what stands here, of nothing from outside)

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from domain.keys import Step
from domain.order import SOLD_STATUSES, UNDONE_STATUSES
from domain.reconciliation import FindingKind, Part

_RETURNED = """coalesce((
    SELECT sum(r.amount) FROM reconciliation_refunds AS r
    WHERE r.run_id = i.run_id AND r.intent_id = i.intent_id AND r.status <> 'failed'
), 0)"""
#: What the gateway has of each order. By hand it may have been refunded in part, or paid twice.
_MONEY = f"""
    SELECT o.*, held, kept, strange
    FROM reconciliation_orders AS o CROSS JOIN LATERAL (
        SELECT coalesce(sum(i.held), 0) AS held, coalesce(sum(i.captured - {_RETURNED}), 0) AS kept,
               count(*) FILTER (WHERE i.captured > 0 AND i.currency <> o.currency) AS strange
        FROM reconciliation_intents AS i WHERE i.run_id = o.run_id AND i.order_id = o.order_id
    ) AS there WHERE o.run_id = :run_id
"""


def _waived(*undos: Step, item: str = "''") -> str:
    names = ", ".join(f"'{undo}'" for undo in undos)
    return f"""EXISTS (SELECT 1 FROM order_steps AS w WHERE w.order_id = o.order_id
        AND w.step IN ({names}) AND w.item = {item} AND w.state = 'waived')"""


_PAYMENT_WAIVED = _waived(Step.RELEASE_PAYMENT, Step.SETTLE_LATE_MONEY)

_GATEWAY = {
    FindingKind.MONEY_KEPT: f"""
        SELECT order_id AS subject, format('%s; the gateway keeps %s %s', status, kept, currency) AS detail
        FROM ({_MONEY}) AS o WHERE status = ANY(:undone) AND kept <> 0 AND NOT {_PAYMENT_WAIVED}
    """,
    FindingKind.OPEN_HOLD: f"""
        SELECT order_id, format('%s; the gateway holds %s %s', status, held, currency)
        FROM ({_MONEY}) AS o WHERE held > 0 AND NOT (status = ANY(:undone) AND {_PAYMENT_WAIVED})
    """,
    # What operators asked to give back may be at the gateway or on its way there.
    FindingKind.CAPTURE_DIFFERS: f"""
        SELECT order_id, format('%s; the gateway keeps %s, the order owes %s %s', status, kept, amount_due, currency)
        FROM ({_MONEY}) AS o CROSS JOIN LATERAL (
            SELECT coalesce(sum(amount), 0) AS asked,
                   coalesce(sum(amount) FILTER (WHERE f.status <> 'requested'), 0) AS sent
            FROM refunds AS f WHERE f.order_id = o.order_id AND f.status <> 'failed' AND f.actor <> 'system'
        ) AS given_back
        WHERE o.status = ANY(:sold) AND whole
          AND (kept NOT BETWEEN amount_due - asked AND amount_due - sent OR strange > 0)
    """,
    FindingKind.REFUND_UNSETTLED: """
        SELECT o.order_id, format('a refund of %s is pending with us, the gateway says %s',
                                  f.amount, coalesce(r.status, 'nothing of it'))
        FROM reconciliation_orders AS o JOIN refunds AS f USING (order_id)
        LEFT JOIN reconciliation_refunds AS r
             ON r.run_id = o.run_id AND r.intent_id = f.intent_id AND r.refund_key = f.refund_key
        WHERE o.run_id = :run_id AND whole AND f.status = 'pending' AND r.status IS DISTINCT FROM 'pending'
    """,
    FindingKind.UNKNOWN_PAYMENT: f"""
        SELECT i.intent_id, format('of order %s, which %s; it holds %s and keeps %s %s', left(i.order_id, 64),
                   CASE WHEN known.order_id IS NULL THEN 'is not in our books'
                        WHEN p.intent_id IS NULL THEN 'has no payment' ELSE 'has another payment' END,
                   i.held, i.captured - {_RETURNED}, i.currency)
        FROM reconciliation_intents AS i
        LEFT JOIN orders AS known ON known.order_id = i.order_id
        LEFT JOIN payments AS p ON p.order_id = i.order_id
        WHERE i.run_id = :run_id AND p.intent_id IS DISTINCT FROM i.intent_id
          AND (i.held > 0 OR i.captured > {_RETURNED})
    """,
}

_LIVE = """SELECT c.warehouse FROM reconciliation_parcels AS c
    WHERE c.run_id = o.run_id AND c.order_id = o.order_id AND c.status <> 'CANCELLED'"""

_COURIER = {
    FindingKind.PARCEL_LEFT: f"""
        SELECT o.order_id, format('%s; the courier has a parcel from %s', o.status, places)
        FROM reconciliation_orders AS o CROSS JOIN LATERAL (
            SELECT string_agg(warehouse, ', ' ORDER BY warehouse) AS places FROM ({_LIVE}) AS live
            WHERE NOT {_waived(Step.CANCEL_SHIPMENT, item="live.warehouse")}
        ) AS there WHERE o.run_id = :run_id AND o.status = ANY(:undone) AND places IS NOT NULL
    """,
    FindingKind.PARCEL_MISSING: f"""
        SELECT o.order_id, format('%s; the courier has no parcel from %s', o.status, places)
        FROM reconciliation_orders AS o CROSS JOIN LATERAL (
            SELECT string_agg(warehouse, ', ' ORDER BY warehouse) AS places FROM (
                SELECT warehouse FROM reservations AS r WHERE r.order_id = o.order_id AND r.state <> 'released'
                UNION SELECT warehouse FROM shipments AS s WHERE s.order_id = o.order_id AND s.status <> 'CANCELLED'
                EXCEPT {_LIVE}
            ) AS missing
        ) AS there WHERE o.run_id = :run_id AND o.status = 'CONFIRMED' AND whole AND places IS NOT NULL
    """,
    FindingKind.UNKNOWN_PARCEL: """
        SELECT c.shipment_id, format('of order %s, which %s', left(c.order_id, 64),
                   CASE WHEN known.order_id IS NULL THEN 'is not in our books' ELSE 'has another parcel' END)
        FROM reconciliation_parcels AS c
        LEFT JOIN orders AS known ON known.order_id = c.order_id
        LEFT JOIN shipments AS s ON s.order_id = c.order_id AND s.warehouse = c.warehouse
        WHERE c.run_id = :run_id AND c.status <> 'CANCELLED'
          AND (known.order_id IS NULL OR (known.status = ANY(:sold) AND s.shipment_id IS DISTINCT FROM c.shipment_id))
    """,
}


def _moved(table: str, taken: str, given: str, column: str, undo: Step) -> str:
    return f"""
        SELECT o.order_id, format('%s; {column} of the order: %s, moved: %s', o.status, known.{column}, moved)
        FROM reconciliation_orders AS o JOIN orders AS known USING (order_id) CROSS JOIN LATERAL (
            SELECT coalesce(sum(m.amount), 0) AS moved FROM {table} AS m
            WHERE m.order_id = o.order_id AND m.kind IN ('{taken}', '{given}')
        ) AS movements
        WHERE o.run_id = :run_id AND ((o.status = 'CONFIRMED' AND moved <> -known.{column})
           OR (o.status = ANY(:undone) AND moved <> 0 AND NOT {_waived(undo)}))
    """


_OWN = {
    FindingKind.STOCK_DIFFERS: f"""
        SELECT o.order_id, format('%s; %s', o.status, differences)
        FROM reconciliation_orders AS o CROSS JOIN LATERAL (
            SELECT string_agg(format('%s: ordered %s, reserved or sold %s', sku, coalesce(ordered, 0),
                                     coalesce(pieces, 0)), '; ' ORDER BY sku) AS differences
            FROM (SELECT sku, sum(quantity) AS ordered FROM order_lines AS l WHERE l.order_id = o.order_id GROUP BY 1
            ) AS wanted FULL JOIN (
                SELECT sku, sum(quantity) AS pieces FROM reservations AS r
                WHERE r.order_id = o.order_id AND r.state <> 'released' GROUP BY 1
            ) AS taken USING (sku)
            WHERE coalesce(pieces, 0) <> CASE WHEN o.status = 'CONFIRMED' THEN coalesce(ordered, 0) ELSE 0 END
        ) AS found
        WHERE o.run_id = :run_id AND differences IS NOT NULL
          AND (o.status = 'CONFIRMED' OR (o.status = ANY(:undone) AND NOT {_waived(Step.RELEASE_STOCK)}))
    """,
    FindingKind.POINTS_DIFFER: _moved("points_movements", "burned", "restored", "points", Step.RESTORE_POINTS),
    FindingKind.CREDIT_DIFFERS: _moved(
        "credit_movements", "applied", "refunded", "store_credit", Step.REFUND_STORE_CREDIT
    ),
}

_WRITE = """
    INSERT INTO reconciliation_findings (run_id, kind, subject, detail)
    SELECT CAST(:run_id AS text), CAST(:kind AS text), found.* FROM ({query}) AS found
    ON CONFLICT (run_id, subject, kind) DO UPDATE SET detail = excluded.detail
"""


async def write_differences(connection: AsyncConnection, run_id: str, without: frozenset[Part]) -> None:
    """Compares what is staged and keeps what differs; `without` the parts that could not be read. Idempotent."""
    queries = dict(_OWN)
    if Part.GATEWAY not in without:
        queries |= _GATEWAY
    if Part.COURIER not in without:
        queries |= _COURIER
    terms = {"run_id": run_id, "sold": sorted(SOLD_STATUSES), "undone": sorted(UNDONE_STATUSES)}
    for kind, query in queries.items():
        await connection.execute(text(_WRITE.format(query=query)), {**terms, "kind": kind.value})
