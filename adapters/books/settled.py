"""Closed orders against the books of those who know: the gateway for money, the courier for parcels.

An order whose row changed while the providers were asked is left out: it is looked at the next time.
"""

from functools import partial

from sqlalchemy import Select, delete, func, insert, select
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.books.lines import Line, read_lines
from adapters.books.providers import CLOSED, TEMPORARY, load_books
from adapters.courier import Courier
from adapters.database import Database
from adapters.payment_gateway import PaymentGateway
from adapters.tables import orders, payments, shipments
from domain.books import Books, LineKind
from domain.order import CLOSED_STATUSES

SETTLED = [
    Line(
        "captured − refunded at the gateway = amount due, 0 if undone",
        """
        SELECT order_id AS subject,
               CASE WHEN (coalesce(kept, 0) <> owed OR strange > 0) AND NOT excused
                    THEN format('the gateway keeps %s, the order owes %s %s', coalesce(kept, 0), owed, currency) END
                   AS trouble
        FROM (
            SELECT order_id, currency,
                   CASE WHEN status IN ('CONFIRMED', 'REFUNDED') THEN amount_due - coalesce(returned, 0) ELSE 0 END
                       AS owed,
                   EXISTS (SELECT 1 FROM order_steps AS w WHERE w.order_id = books_orders.order_id
                           AND w.state = 'waived' AND w.step IN ('release_payment', 'settle_late_money')) AS excused
            FROM books_orders LEFT JOIN (
                -- What operators gave back, or have on its way.
                SELECT order_id, sum(amount) AS returned FROM refunds
                WHERE status <> 'failed' AND refund_key LIKE '%:refund_payment:%' GROUP BY 1
            ) AS given USING (order_id)
        ) AS o LEFT JOIN (
            SELECT i.order_id, sum(i.captured - coalesce(r.returned, 0)) AS kept
            FROM books_intents AS i LEFT JOIN (
                SELECT intent_id, sum(amount) AS returned FROM books_refunds GROUP BY 1
            ) AS r USING (intent_id) GROUP BY 1
        ) AS money USING (order_id) LEFT JOIN LATERAL (
            SELECT count(*) AS strange FROM books_intents AS i
            WHERE i.order_id = o.order_id AND i.captured > 0 AND i.currency <> o.currency
        ) AS other ON true
        """,
        LineKind.SETTLED,
    ),
    Line(
        "no open hold at the gateway",
        """
        SELECT order_id AS subject,
               CASE WHEN coalesce(open_hold, 0) <> 0 AND NOT EXISTS (
                        SELECT 1 FROM order_steps AS w WHERE w.order_id = books_orders.order_id
                        AND w.state = 'waived' AND w.step IN ('release_payment', 'settle_late_money'))
                    THEN format('the gateway holds %s', open_hold) END AS trouble
        FROM books_orders LEFT JOIN (
            SELECT order_id, sum(held) AS open_hold FROM books_intents GROUP BY 1
        ) AS i USING (order_id)
        """,
        LineKind.SETTLED,
    ),
    Line(
        "live shipments at the courier = booked",
        """
        SELECT order_id AS subject,
               CASE WHEN live IS DISTINCT FROM booked AND NOT EXISTS (
                        SELECT 1 FROM order_steps AS w WHERE w.order_id = books_orders.order_id
                        AND w.state = 'waived' AND w.step = 'cancel_shipment')
                    THEN format('the courier has %s, we have %s', coalesce(live, 'none'), coalesce(booked, 'none')) END
                   AS trouble
        FROM books_orders LEFT JOIN (
            SELECT order_id, string_agg(shipment_id, ', ' ORDER BY shipment_id) AS live FROM books_parcels GROUP BY 1
        ) AS there USING (order_id) LEFT JOIN (
            SELECT order_id, string_agg(shipment_id, ', ' ORDER BY shipment_id) AS booked
            FROM shipments WHERE status <> 'CANCELLED' GROUP BY 1
        ) AS here USING (order_id)
        """,
        LineKind.SETTLED,
    ),
]


async def read_settled_books(
    database: Database, gateway: PaymentGateway, courier: Courier, order_id: str | None = None
) -> Books:
    """All *settled* lines. Of one order only its own intent and parcels are asked for: strangers need the whole books.

    Raises DatabaseUnavailable, and whatever the two providers' clients raise.
    """
    async with database.begin() as connection:
        # Nothing is locked while the providers tell their books, page by page.
        await connection.exec_driver_sql("SET LOCAL idle_in_transaction_session_timeout = 0")
        await connection.run_sync(partial(TEMPORARY.create_all, checkfirst=False))
        names = [column.name for column in CLOSED.columns]
        await connection.execute(insert(CLOSED).from_select(names, _closed_orders(order_id)))
        await load_books(connection, gateway, courier, order_id)
        await connection.exec_driver_sql(f"ANALYZE {', '.join(TEMPORARY.tables)}")
        notes = await _leave_out_changed(connection, order_id)
        return Books(tuple(await read_lines(connection, SETTLED, order_id)), notes=notes)


def _closed_orders(order_id: str | None) -> Select[tuple[object, ...]]:
    parcels = (
        select(shipments.c.order_id, func.max(shipments.c.updated_at).label("updated_at"))
        .group_by(shipments.c.order_id)
        .subquery()
    )
    changed_at = func.greatest(orders.c.updated_at, payments.c.updated_at, parcels.c.updated_at).label("changed_at")
    query = (
        select(orders.c.order_id, orders.c.status, orders.c.currency, orders.c.amount_due, changed_at)
        .outerjoin_from(orders, payments, payments.c.order_id == orders.c.order_id)
        .outerjoin(parcels, parcels.c.order_id == orders.c.order_id)
        .where(orders.c.status.in_(sorted(CLOSED_STATUSES)))
    )
    return query if order_id is None else query.where(orders.c.order_id == order_id)


async def _leave_out_changed(connection: AsyncConnection, order_id: str | None) -> tuple[str, ...]:
    now = _closed_orders(order_id).subquery()
    same = select(now.c.order_id).where(now.c.order_id == CLOSED.c.order_id, now.c.changed_at == CLOSED.c.changed_at)
    left_out = (await connection.execute(delete(CLOSED).where(~same.exists()))).rowcount
    return (f"{left_out} orders changed meanwhile and were not compared",) if left_out else ()
