"""Orders brought to their ends by the real activities, one of each kind, for the books to look at."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection
from temporalio.testing import ActivityEnvironment

from activities.inventory import InventoryActivities
from activities.loyalty import LoyaltyActivities
from activities.orders import OrdersActivities
from activities.shipping import ShippingActivities
from adapters.books.own import look, read_own_books
from adapters.books.settled import read_settled_books
from adapters.courier import Courier
from adapters.database import Database
from adapters.fraud_scorer import FraudScorer
from adapters.reviews import change_stage
from domain.books import Books
from domain.keys import Step, shipment_reference
from domain.messages import ParkClosed, StatusChange, StepInput
from domain.order import CancelReason, OrderStatus, PaymentStatus, RedriveAction
from runtime.settings import Settings
from tests.builders import a_customer
from tests.integration.attempts import attempt
from tests.integration.till import Till, a_till

WAREHOUSE = "main"


@dataclass
class Bookkeeping:
    """A shop with three orders: `confirmed`, `undone` after its money was held, `open` with its stock reserved."""

    till: Till
    courier: Courier
    confirmed: str = ""
    undone: str = ""
    open: str = ""

    @property
    def database(self) -> Database:
        """Our own books."""
        return self.till.database

    async def own(self, order_id: str | None = None) -> Books:
        """A look at our own books."""
        return await read_own_books(self.database, order_id)

    async def settled(self, order_id: str | None = None) -> Books:
        """A look at the providers' books."""
        return await read_settled_books(self.database, self.till.gateway, self.courier, order_id)

    async def spoiled(self, *statements: str, order_id: str | None = None) -> Books:
        """Our own books after writes past all code of ours, which are then taken back.

        `:confirmed`, `:undone` and `:open` are the orders.
        """
        async with self.database.engine.connect() as connection:
            await self._spoil(connection, *statements)
            return await look(connection, order_id)

    async def spoil(self, *statements: str) -> None:
        """Writes past all code of ours, to stay."""
        async with self.database.begin() as connection:
            await self._spoil(connection, *statements)

    async def _spoil(self, connection: AsyncConnection, *statements: str) -> None:
        for table in ("stock", "points", "credit", "money"):
            await connection.execute(text(f"ALTER TABLE {table}_movements DISABLE TRIGGER USER"))
        ids = {"confirmed": self.confirmed, "undone": self.undone, "open": self.open}
        for statement in statements:
            await connection.execute(text(statement), ids)

    async def move(self, order_id: str, *stages: OrderStatus, reason: CancelReason | None = None) -> None:
        """The order's stage, with its events."""
        for stage in stages:
            async with self.database.begin() as connection:
                await change_stage(connection, StatusChange(order_id=order_id, status=stage, reason=reason))

    async def begin(self) -> str:
        """An order with its stock, points and credit taken."""
        order_id = await self.till.order(points=100, store_credit=200)
        inventory, loyalty = InventoryActivities(self.database), LoyaltyActivities(self.database)
        for step in (inventory.reserve_stock, loyalty.burn_points, loyalty.apply_store_credit):
            await attempt(step, order_id)
        await self.move(order_id, OrderStatus.AWAITING_PAYMENT)
        return order_id

    async def hold_and_book(self, order_id: str) -> None:
        """Holds the money and books the parcel."""
        await self.till.authorize(order_id)
        await self.till.read_until(order_id, PaymentStatus.AUTHORIZED)
        shipping = ShippingActivities(self.database, self.courier)
        await ActivityEnvironment().run(shipping.book_shipment, StepInput(order_id=order_id, item=WAREHOUSE))

    async def confirm(self, order_id: str) -> None:
        """From the capture to the end."""
        await self.till.capture(order_id)
        await self.move(order_id, OrderStatus.CONFIRMED)
        await attempt(InventoryActivities(self.database).commit_stock, order_id)

    async def undo(self, order_id: str) -> None:
        """All undos, newest first."""
        inventory, loyalty = InventoryActivities(self.database), LoyaltyActivities(self.database)
        shipping = ShippingActivities(self.database, self.courier)
        await self.move(order_id, OrderStatus.COMPENSATING, reason=CancelReason.CANCELLED_BY_CUSTOMER)
        await ActivityEnvironment().run(shipping.cancel_shipment, StepInput(order_id=order_id, item=WAREHOUSE))
        await self.till.release(order_id)
        for step in (loyalty.refund_store_credit, loyalty.restore_points, inventory.release_stock):
            await attempt(step, order_id)
        await self.move(order_id, OrderStatus.CANCELLED_COMPENSATED)

    async def skip(self, step: Step, item: str, actor: str) -> None:
        """An operator lets a parked undo of the undone order go."""
        closed = ParkClosed(
            order_id=self.undone,
            step=step,
            item=item,
            actor=actor,
            action=RedriveAction.SKIP,
            since=datetime.now(UTC),
            reason="settled by phone",
        )
        scorer = FraudScorer("http://127.0.0.1:9", timeout_seconds=1)
        orders = OrdersActivities(self.database, scorer, Settings(_env_file=None))
        await ActivityEnvironment().run(orders.close_park, closed)

    def reference(self, order_id: str) -> str:
        """Our reference at the courier."""
        return shipment_reference(order_id, WAREHOUSE)


@asynccontextmanager
async def some_bookkeeping(database: Database) -> AsyncIterator[Bookkeeping]:
    """A shop with its three orders."""
    async with a_till(database) as till:
        courier = Courier(till.desk.simulators.courier_url, timeout_seconds=10)
        try:
            await a_customer(database, points=500, store_credit=1000)
            books = Bookkeeping(till, courier)
            books.open = await books.begin()
            books.confirmed, books.undone = await books.begin(), await books.begin()
            for order_id in (books.confirmed, books.undone):
                await books.hold_and_book(order_id)
            await books.confirm(books.confirmed)
            await books.undo(books.undone)
            yield books
        finally:
            await courier.close()
