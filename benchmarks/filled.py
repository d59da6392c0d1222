"""An old shop: closed orders by the thousand in our books, the gateway's and the courier's, all of which agree."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import aiohttp
from sqlalchemy import text

from adapters.database import Database

#: Rows of one request to a simulator, below a megabyte.
BATCH = 4000
DAYS = 20

#: Each order is one of A for 30.00 and one of B for 20.00 from one warehouse. Of ten orders seven are confirmed, two
#: were undone when their money was held and their parcel booked, and one was undone after its money was taken.
_FILL = r"""
CREATE TEMPORARY TABLE filling ON COMMIT DROP AS
SELECT n, 'bulk' || lpad(n\:\:text, 20, '0') AS order_id, now() - :days * interval '1 day' * n / :orders
           - interval '1 hour' AS at,
       CASE WHEN n % 10 < 7 THEN 'CONFIRMED' ELSE 'CANCELLED_COMPENSATED' END AS status,
       CASE WHEN n % 10 < 7 THEN 'sold' ELSE 'released' END AS goods, n % 10 IN (7, 8) AS voided, n % 10 = 9 AS returned
FROM generate_series(1, :orders) AS n;
INSERT INTO products (sku, unit_price, currency) VALUES ('bulk-a', 3000, 'EUR'), ('bulk-b', 2000, 'EUR');
INSERT INTO stock (sku, warehouse, on_hand)
SELECT sku, 'main', :orders - (SELECT count(*) FROM filling WHERE goods = 'sold')
FROM unnest(ARRAY['bulk-a', 'bulk-b']) AS sku;
INSERT INTO orders (order_id, customer_id, status, stage, reason, currency, total, amount_due, payment_method,
                    correlation_id, created_at, updated_at)
SELECT order_id, 'bulk-' || n % 1000, status, status, CASE WHEN goods = 'released' THEN 'CANCELLED_BY_CUSTOMER' END,
       'EUR', 5000, 5000, 'pm_card_visa', 'bulk', at, at FROM filling;
INSERT INTO order_lines (order_id, line_no, sku, quantity, unit_price)
SELECT order_id, line_no, sku, 1, price
FROM filling, (VALUES (1, 'bulk-a', 3000), (2, 'bulk-b', 2000)) AS line (line_no, sku, price);
INSERT INTO order_contacts (order_id, email, shipping_address) SELECT order_id, 'bulk@example.com', '{}' FROM filling;
INSERT INTO idempotency_keys (caller, key, fingerprint, order_id)
SELECT 'bulk', order_id, 'f', order_id FROM filling;
INSERT INTO outbox (event_id, order_id, type, data, correlation_id, published_at)
SELECT order_id || '\:OrderSubmitted', order_id, 'OrderSubmitted', '{}', 'bulk', at FROM filling;
INSERT INTO outbox (event_id, order_id, type, data, correlation_id)
SELECT order_id || '\:end', order_id, CASE goods WHEN 'sold' THEN 'OrderConfirmed' ELSE 'OrderCancelled' END, '{}',
       'bulk' FROM filling;
INSERT INTO order_steps (order_id, step, item, state, at, last_at)
SELECT order_id, step, CASE step WHEN 'book_shipment' THEN 'main' ELSE '' END, 'done', at, at
FROM filling, unnest(ARRAY['open_order', 'reserve_stock', 'authorize_payment', 'book_shipment', 'capture_payment',
                           'confirm_order', 'commit_stock']) AS step
WHERE goods = 'sold' OR step NOT IN ('capture_payment', 'confirm_order', 'commit_stock');
INSERT INTO reservations (order_id, sku, warehouse, quantity, state)
SELECT order_id, sku, 'main', 1, goods FROM filling, unnest(ARRAY['bulk-a', 'bulk-b']) AS sku;
INSERT INTO stock_movements (key, sku, warehouse, kind, quantity)
SELECT 'bulk\:' || sku, sku, 'main', 'stocked', :orders FROM unnest(ARRAY['bulk-a', 'bulk-b']) AS sku;
INSERT INTO stock_movements (key, sku, warehouse, kind, quantity, order_id)
SELECT format('%s\:%s\:%s', order_id, kind, sku), sku, 'main', kind, 1, order_id
FROM filling, unnest(ARRAY['bulk-a', 'bulk-b']) AS sku, unnest(ARRAY['reserved', goods]) AS kind;
INSERT INTO payments (order_id, intent_id, status, currency, amount, authorized, captured, refunded, created_at,
                      updated_at)
SELECT order_id, 'pi_' || order_id,
       CASE WHEN voided THEN 'VOIDED' WHEN returned THEN 'REFUNDED' ELSE 'CAPTURED' END, 'EUR', 5000, 5000,
       CASE WHEN voided THEN 0 ELSE 5000 END, CASE WHEN returned THEN 5000 ELSE 0 END, at, at FROM filling;
INSERT INTO money_movements (key, order_id, intent_id, kind, currency, amount)
SELECT format('%s\:%s', order_id, kind), order_id, 'pi_' || order_id, kind, 'EUR', 5000
FROM filling, unnest(ARRAY['authorized', 'captured', 'voided', 'refunded']) AS kind
WHERE CASE kind WHEN 'captured' THEN NOT voided WHEN 'voided' THEN voided WHEN 'refunded' THEN returned ELSE true END;
INSERT INTO refunds (refund_key, order_id, intent_id, amount, status, provider_reference)
SELECT 're_pi_' || order_id, order_id, 'pi_' || order_id, 5000, 'succeeded', 're_pi_' || order_id
FROM filling WHERE returned;
INSERT INTO shipments (order_id, warehouse, reference, shipment_id, status, created_at, updated_at)
SELECT order_id, 'main', order_id || '\:main', 'shp_' || order_id,
       CASE goods WHEN 'sold' THEN 'BOOKED' ELSE 'CANCELLED' END, at, at FROM filling
"""


@dataclass(frozen=True)
class OldShop:
    """Where its three books are. `order_id(n)` counts from 1."""

    database: Database
    gateway_url: str
    courier_url: str

    @staticmethod
    def order_id(number: int) -> str:
        """The id of one of the orders."""
        return f"bulk{number:020}"

    async def fill(self, orders: int) -> None:
        """Fills all three."""
        async with self.database.begin() as connection:
            await connection.execute(text("SET LOCAL statement_timeout = 0"))
            for statement in _FILL.split(";"):
                names = {name for name in ("orders", "days") if f":{name}" in statement}
                await connection.execute(
                    text(statement), {name: {"orders": orders, "days": DAYS}[name] for name in names}
                )
        async with self.database.begin() as connection:
            created = await connection.scalar(text("SELECT extract(epoch FROM min(created_at)) FROM orders"))
            # As autovacuum does, which may not have come round yet.
            await connection.execute(text("SET LOCAL statement_timeout = 0"))
            await connection.execute(text("ANALYZE"))
        # Oldest first, as they were made.
        numbers = range(orders, 0, -1)
        await self.tell_gateway([self._intent(number, int(created or 0)) for number in numbers])
        await self.tell_courier([self._parcel(number) for number in numbers])

    async def tell_gateway(self, intents: Sequence[dict[str, Any]]) -> None:
        """Puts payments into the gateway's book, in the place of those with the same ids."""
        await _post(self.gateway_url, "intents", intents)

    async def tell_courier(self, shipments: Sequence[dict[str, Any]]) -> None:
        """Puts parcels into the courier's book, likewise."""
        await _post(self.courier_url, "shipments", shipments)

    def _intent(self, number: int, created: int) -> dict[str, Any]:
        kind = number % 10
        return {
            "id": f"pi_{self.order_id(number)}",
            "order_id": self.order_id(number),
            "amount": 5000,
            "currency": "EUR",
            "status": "canceled" if kind in {7, 8} else "succeeded",
            "refunded": 5000 if kind == 9 else 0,
            "created": created,
        }

    def _parcel(self, number: int) -> dict[str, Any]:
        order_id = self.order_id(number)
        status = "booked" if number % 10 < 7 else "cancelled"
        return {"id": f"shp_{order_id}", "reference": f"{order_id}:main", "warehouse": "main", "status": status}


async def _post(url: str, name: str, rows: Sequence[dict[str, Any]]) -> None:
    async with aiohttp.ClientSession() as session:
        for start in range(0, len(rows), BATCH):
            body = {name: rows[start : start + BATCH]}
            async with session.post(f"{url}/_sim/books", json=body) as answer:
                answer.raise_for_status()
