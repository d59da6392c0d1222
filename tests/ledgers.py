"""The books behind a shop, ours and the providers' own, and the two ways in which an order may have ended in them."""

from dataclasses import dataclass
from typing import Any

import aiohttp
from sqlalchemy import select

from adapters.database import Database
from adapters.loyalty import read_customer
from adapters.orders import read_order, read_timeline
from adapters.stock import read_stock
from adapters.tables import outbox, review_items
from domain.views import OrderView, TimelineLine
from simulators import Simulators
from tests.baskets import Basket
from tests.polling import eventually


@dataclass
class Ledgers:
    """Where money, parcels, stock, points and events are counted."""

    database: Database
    simulators: Simulators
    http: aiohttp.ClientSession

    async def view(self, order_id: str) -> OrderView:
        """The order as the shopper sees it."""
        view = await read_order(self.database, order_id)
        assert view is not None
        return view

    async def timeline(self, order_id: str) -> list[TimelineLine]:
        """What happened to the order, by its stamps and review items."""
        lines = await read_timeline(self.database, order_id)
        assert lines is not None
        return lines

    async def intents(self, order_id: str) -> list[dict[str, Any]]:
        """The gateway's own book of one order."""
        async with self.http.get(f"{self.base('gateway')}/_sim/ledger", params={"order_id": order_id}) as answer:
            found: list[dict[str, Any]] = (await answer.json())["intents"]
            return found

    async def shipments(self, order_id: str) -> list[dict[str, Any]]:
        """The courier's own book of one order."""
        async with self.http.get(f"{self.base('courier')}/_sim/ledger", params={"order_id": order_id}) as answer:
            found: list[dict[str, Any]] = (await answer.json())["shipments"]
            return found

    async def until_parked(self, order_id: str, step: str, *, kind: str | None = None) -> None:
        """Until the step stands in review."""

        async def look() -> bool:
            items = await self.reviews(order_id)
            return any(item.step == step and item.closed_at is None and kind in {None, item.kind} for item in items)

        await eventually(look)

    async def until_booked(self, order_id: str) -> None:
        """Until the courier has a parcel of this order."""

        async def look() -> bool:
            return bool(await self.shipments(order_id))

        await eventually(look)

    def base(self, name: str) -> str:
        """A simulator's address."""
        return {
            "gateway": self.simulators.gateway_url,
            "courier": self.simulators.courier_url,
            "fraud": self.simulators.fraud_url,
        }[name]

    async def pieces(self, sku: str) -> tuple[int, int]:
        """Pieces on hand and reserved, over all warehouses."""
        stock = await read_stock(self.database, sku)
        assert stock is not None
        return sum(place.on_hand for place in stock.warehouses), sum(place.reserved for place in stock.warehouses)

    async def available(self, sku: str) -> int:
        """Pieces that can still be sold."""
        on_hand, reserved = await self.pieces(sku)
        return on_hand - reserved

    async def events(self, order_id: str) -> list[str]:
        """The facts that were told about the order, in their order."""
        query = select(outbox.c.type).where(outbox.c.order_id == order_id).order_by(outbox.c.sequence)
        async with self.database.begin() as connection:
            return list((await connection.execute(query)).scalars())

    async def reviews(self, order_id: str) -> list[Any]:
        """The rows of the order's review items, the oldest first."""
        query = select(review_items).where(review_items.c.order_id == order_id).order_by(review_items.c.review_id)
        async with self.database.begin() as connection:
            return list((await connection.execute(query)).all())

    async def assert_clean(
        self,
        basket: Basket,
        order_id: str,
        *,
        captured: int = 5000,
        points: int = 500,
        credit: int = 0,
        parcels: int = 1,
    ) -> None:
        """The order was confirmed, by every book: 1×A and 1×B are sold, paid once, and sent in `parcels`.

        `points` and `credit` are what the customer has left.
        """
        view = await self.view(order_id)
        assert (view.status, view.reason, view.needs_review) == ("CONFIRMED", None, [])
        assert await self.events(order_id) == ["OrderSubmitted", "OrderConfirmed"]
        paid = [intent for intent in await self.intents(order_id) if intent["captured"] or intent["authorized"]]
        assert [(i["captured"], i["refunded"], i["status"]) for i in paid] == (
            [(captured, 0, "succeeded")] if captured else []
        )
        assert [one["status"] for one in await self.shipments(order_id)] == ["booked"] * parcels
        assert [(await self.pieces(sku)) for sku in (basket.a, basket.b)] == [(basket.on_hand - 1, 0)] * 2
        await self._assert_balances(basket, points, credit)

    async def assert_undone(self, basket: Basket, order_id: str, reason: str, *, points: int | None = None) -> None:
        """The order left nothing behind, by every book, and says why. `points`, where the customer had not 500."""
        view = await self.view(order_id)
        assert view.status in {"CANCELLED_COMPENSATED", "REJECTED"}
        assert (view.reason, view.needs_review) == (reason, [])
        ending = "OrderRejected" if view.status == "REJECTED" else "OrderCancelled"
        assert await self.events(order_id) == ["OrderSubmitted", ending]
        for intent in await self.intents(order_id):
            assert intent["captured"] == intent["refunded"]
            assert intent["status"] != "requires_capture"
        assert [one for one in await self.shipments(order_id) if one["status"] != "cancelled"] == []
        assert [(await self.pieces(sku)) for sku in (basket.a, basket.b)] == [(basket.on_hand, 0)] * 2
        await self._assert_balances(basket, basket.points if points is None else points, basket.credit)

    async def _assert_balances(self, basket: Basket, points: int, credit: int) -> None:
        customer = await read_customer(self.database, basket.customer)
        assert (customer.points, customer.store_credit.get("EUR", 0)) == (points, credit)
