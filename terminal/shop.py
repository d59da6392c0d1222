"""The shop's doors as a command opens them: the database and Temporal, both answering or one line within 10 s."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from uuid import uuid4

from sqlalchemy import text
from temporalio.client import Client

from adapters.database import Database
from adapters.orders import Accepted, accept_order, read_order
from domain.errors import DatabaseUnavailable
from domain.intake import OrderRequest
from domain.views import OrderView
from events.relay import publish_submitted
from runtime.entry import EntryError
from runtime.settings import Settings
from runtime.temporal import connect
from workflows.names import Queue

#: A command without its servers ends within 10 s; this leaves time for its own start.
GIVE_UP_SECONDS = 8


@dataclass(frozen=True)
class Shop:
    """What a command needs to place and follow orders."""

    settings: Settings
    database: Database
    client: Client

    async def place(self, request: OrderRequest, key: str) -> Accepted:
        """Takes the order in by the same door as HTTP. Raises IntakeProblem or DatabaseUnavailable."""
        return await accept_order(
            self.database,
            request,
            caller=request.customer_id,
            key=key,
            correlation_id=str(uuid4()),
            points_currency=self.settings.points_currency,
            default_payment_method=self.settings.default_payment_method,
        )

    async def start(self, order_id: str) -> bool:
        """Starts the accepted order's saga; False: Temporal did not take it now, the relay will start it."""
        return (await publish_submitted(self.database, self.client, order_id=order_id)).failed == 0


@asynccontextmanager
async def open_database(settings: Settings) -> AsyncIterator[Database]:
    """The database, answering. Raises SettingsError or DatabaseUnavailable."""
    database = Database(settings.database_for(Queue.ORDERS), application="terminal")
    try:
        await _answers(database)
        yield database
    finally:
        await database.close()


@asynccontextmanager
async def open_shop(settings: Settings) -> AsyncIterator[Shop]:
    """Database and Temporal, asked side by side. Raises SettingsError, DatabaseUnavailable or ServerUnavailable."""
    database = Database(settings.database_for(Queue.ORDERS), application="terminal")
    try:
        client, _ = await asyncio.gather(connect(settings), _answers(database))
        yield Shop(settings, database, client)
    finally:
        await database.close()


async def _answers(database: Database) -> None:
    try:
        async with asyncio.timeout(GIVE_UP_SECONDS), database.begin() as connection:
            await connection.execute(text("SELECT 1"))
    except TimeoutError:
        raise DatabaseUnavailable("no answer in time") from None


async def known_order(database: Database, order_id: str) -> OrderView:
    """The order, or an EntryError that says where to look for one."""
    # What the shell passed on may be no text at all, which the driver would not take.
    view = await read_order(database, order_id) if order_id.isascii() else None
    if view is None:
        raise EntryError("there is no order with this id: `starter.py list` shows those that are there")
    return view
