"""The providers' own books, read once, page by page, into temporary tables: memory stays flat, comparing is a query."""

from collections.abc import AsyncIterator

from sqlalchemy import BigInteger, Column, DateTime, MetaData, Table, Text, select
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.courier import Courier, Shipment
from adapters.database import insert_rows
from adapters.payment_gateway import PaymentGateway
from adapters.stripe_answers import Intent, IntentStatus, Refund, RefundStatus
from adapters.tables import payments, reservations
from domain.keys import shipment_reference
from domain.order import ShipmentStatus

#: Rows that are written at once.
BATCH = 1000

TEMPORARY = MetaData()

Row = dict[str, object]


def _table(name: str, *columns: Column[object]) -> Table:
    return Table(name, TEMPORARY, *columns, prefixes=["TEMPORARY"], postgresql_on_commit="DROP")


#: The closed orders that are compared, as they were before the providers were asked.
CLOSED = _table(
    "books_orders",
    Column("order_id", Text, primary_key=True),
    Column("status", Text),
    Column("currency", Text),
    Column("amount_due", BigInteger),
    Column("changed_at", DateTime(timezone=True)),
)
INTENTS = _table(
    "books_intents",
    Column("intent_id", Text, primary_key=True),
    Column("order_id", Text, index=True),
    Column("currency", Text),
    Column("held", BigInteger),
    Column("captured", BigInteger),
)
#: What was given back or is on its way back.
REFUNDS = _table(
    "books_refunds",
    Column("refund_id", Text, primary_key=True),
    Column("intent_id", Text, index=True),
    Column("amount", BigInteger),
)
#: Parcels that are not cancelled.
PARCELS = _table(
    "books_parcels",
    Column("shipment_id", Text, primary_key=True),
    Column("order_id", Text, index=True),
)


async def load_books(
    connection: AsyncConnection, gateway: PaymentGateway, courier: Courier, order_id: str | None
) -> None:
    """Fills the tables, which exist, with everything the providers have, or with what is known of one order."""
    own = None if order_id is None else await _intent_of(connection, order_id)
    await _load(connection, INTENTS, _intents(gateway, order_id, own))
    await _load(connection, REFUNDS, _refunds(gateway, order_id, own))
    await _load(connection, PARCELS, _parcels(connection, courier, order_id))


async def _intent_of(connection: AsyncConnection, order_id: str) -> str | None:
    return await connection.scalar(select(payments.c.intent_id).where(payments.c.order_id == order_id))


async def _intents(gateway: PaymentGateway, order_id: str | None, own: str | None) -> AsyncIterator[Row]:
    if own is not None:
        yield _intent_row(await gateway.read_intent(own), order_id)
    elif order_id is None:
        async for intent in gateway.list_intents():
            if intent.order_id is not None:
                yield _intent_row(intent, intent.order_id)


def _intent_row(intent: Intent, order_id: str | None) -> Row:
    return {
        "intent_id": intent.id,
        "order_id": order_id,
        "currency": intent.currency,
        "held": intent.amount_capturable if intent.status is IntentStatus.REQUIRES_CAPTURE else 0,
        "captured": intent.amount_received,
    }


async def _refunds(gateway: PaymentGateway, order_id: str | None, own: str | None) -> AsyncIterator[Row]:
    if own is not None:
        for refund in await gateway.list_refunds(own):
            if refund.status is not RefundStatus.FAILED:
                yield _refund_row(refund)
    elif order_id is None:
        async for refund in gateway.list_all_refunds():
            if refund.status is not RefundStatus.FAILED:
                yield _refund_row(refund)


def _refund_row(refund: Refund) -> Row:
    return {"refund_id": refund.id, "intent_id": refund.intent_id, "amount": refund.amount}


async def _parcels(connection: AsyncConnection, courier: Courier, order_id: str | None) -> AsyncIterator[Row]:
    found = courier.list_shipments() if order_id is None else _parcels_of(connection, courier, order_id)
    async for parcel in found:
        if parcel.status is not ShipmentStatus.CANCELLED:
            yield {"shipment_id": parcel.id, "order_id": parcel.reference.split(":", 1)[0]}


async def _parcels_of(connection: AsyncConnection, courier: Courier, order_id: str) -> AsyncIterator[Shipment]:
    query = select(reservations.c.warehouse).where(reservations.c.order_id == order_id).distinct()
    for warehouse in (await connection.scalars(query)).all():
        if parcel := await courier.find(shipment_reference(order_id, warehouse)):
            yield parcel


async def _load(connection: AsyncConnection, table: Table, rows: AsyncIterator[Row]) -> None:
    batch: list[Row] = []
    async for row in rows:
        batch.append(row)
        if len(batch) == BATCH:
            await insert_rows(connection, table, batch)
            batch = []
    if batch:
        await insert_rows(connection, table, batch)
