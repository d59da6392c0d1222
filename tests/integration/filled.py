"""A shop that has sold for years: every table that grows, full of what has ended, and how much of it is read."""

from sqlalchemy import text

from adapters.database import Database
from tests.polling import eventually

ORDERS = 20_000
EVENTS_AN_ORDER = 6
#: One look through the smallest table that grows reads this much.
ROWS = ORDERS

_FILL = r"""
INSERT INTO orders (order_id, customer_id, status, stage, currency, total, amount_due, correlation_id, created_at)
SELECT 'o' || n, 'c' || n, ended, ended, 'EUR', 100, 100, 'c', now() - n * interval '1 minute'
FROM generate_series(1, :orders) AS n,
     LATERAL (SELECT (ARRAY['CONFIRMED', 'CONFIRMED', 'CANCELLED_COMPENSATED', 'REJECTED'])[1 + n % 4] AS ended) AS e;
INSERT INTO order_lines (order_id, line_no, sku, quantity, unit_price)
SELECT 'o' || n, 1, 'A', 1, 100 FROM generate_series(1, :orders) AS n;
INSERT INTO order_contacts (order_id, email, shipping_address)
SELECT 'o' || n, 'a@example.com', '{}' FROM generate_series(1, :orders) AS n;
INSERT INTO idempotency_keys (caller, key, fingerprint, order_id)
SELECT 'c' || n, 'k', 'f', 'o' || n FROM generate_series(1, :orders) AS n;
INSERT INTO outbox (event_id, order_id, type, data, correlation_id, published_at)
SELECT format('o%s\:OrderSubmitted', n), 'o' || n, 'OrderSubmitted', '{}', 'c', now()
FROM generate_series(1, :orders) AS n;
INSERT INTO outbox (event_id, order_id, type, data, correlation_id)
SELECT format('o%s\:%s', n, e), 'o' || n, 'OrderConfirmed', '{}', 'c'
FROM generate_series(1, :orders) AS n, generate_series(2, :events) AS e;
INSERT INTO order_steps (order_id, step, state)
SELECT 'o' || n, step, 'done'
FROM generate_series(1, :orders) AS n, unnest(ARRAY['open_order', 'confirm_order']) AS step;
INSERT INTO review_items (order_id, step, kind, error, closed_at)
SELECT 'o' || n, 'reserve_stock', 'TECHNICAL', 'e', now() FROM generate_series(1, :orders) AS n;
INSERT INTO reservations (order_id, sku, warehouse, quantity, state)
SELECT 'o' || n, 'A', 'main', 1, 'sold' FROM generate_series(1, :orders) AS n;
INSERT INTO stock_movements (key, sku, warehouse, kind, quantity, order_id)
SELECT 'm' || n, 'A', 'main', 'sold', 1, 'o' || n FROM generate_series(1, :orders) AS n;
INSERT INTO points_accounts (customer_id, points) SELECT 'c' || n, 1 FROM generate_series(1, :orders) AS n;
INSERT INTO credit_accounts (customer_id, currency) SELECT 'c' || n, 'EUR' FROM generate_series(1, :orders) AS n;
INSERT INTO points_movements (key, customer_id, kind, amount, order_id)
SELECT 'm' || n, 'c' || n, 'burned', -1, 'o' || n FROM generate_series(1, :orders) AS n;
INSERT INTO credit_movements (key, customer_id, currency, kind, amount, order_id)
SELECT 'm' || n, 'c' || n, 'EUR', 'applied', -1, 'o' || n FROM generate_series(1, :orders) AS n;
INSERT INTO payments (order_id, intent_id, currency, amount)
SELECT 'o' || n, 'pi' || n, 'EUR', 100 FROM generate_series(1, :orders) AS n;
INSERT INTO money_movements (key, order_id, intent_id, kind, currency, amount)
SELECT 'm' || n, 'o' || n, 'pi' || n, 'captured', 'EUR', 100 FROM generate_series(1, :orders) AS n;
INSERT INTO refunds (refund_key, order_id, intent_id, amount, status)
SELECT 'r' || n, 'o' || n, 'pi' || n, 100, 'succeeded' FROM generate_series(1, :orders) AS n;
INSERT INTO refund_retries (order_id, retry, number)
SELECT 'o' || n, 'run\:2', 2 FROM generate_series(1, :orders) AS n;
INSERT INTO shipments (order_id, warehouse, reference, shipment_id, status)
SELECT 'o' || n, 'main', format('o%s\:main', n), 's' || n, 'DELIVERED' FROM generate_series(1, :orders) AS n;
INSERT INTO webhook_inbox (source, event_id, type, object_id, state, settled_at)
SELECT 'stripe', format('e%s\:%s', n, e), 't', 'pi' || n, 'delivered', now()
FROM generate_series(1, :orders) AS n, generate_series(1, :events) AS e
"""

#: Rows and index entries that were looked at, by table.
_LOOKED_AT = text("""
    SELECT t.relname, t.seq_tup_read + coalesce(sum(i.idx_tup_read), 0) AS looked_at
    FROM pg_stat_user_tables AS t LEFT JOIN pg_stat_user_indexes AS i USING (relid)
    GROUP BY t.relname, t.seq_tup_read
""")
_SESSIONS = text("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()")


async def fill(database: Database) -> None:
    """Fills the tables and lets the server learn their sizes."""
    async with database.begin() as connection:
        await connection.execute(text("SET LOCAL statement_timeout = '60s'"))
        for statement in _FILL.split(";"):
            await connection.execute(text(statement), {"orders": ORDERS, "events": EVENTS_AN_ORDER})
        await connection.execute(text("ANALYZE"))


async def looked_at(database: Database) -> dict[str, int]:
    """What all sessions so far have looked at. They are closed first: a session tells its numbers when it ends."""
    await database.engine.dispose()

    async def alone() -> bool:
        async with database.begin() as connection:
            return bool(await connection.scalar(_SESSIONS) == 1)

    await eventually(alone)
    async with database.begin() as connection:
        return {row.relname: int(row.looked_at) for row in await connection.execute(_LOOKED_AT)}
