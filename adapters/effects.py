"""What one order holds right now, by our own books: what an undo would have to give back."""

from sqlalchemy import Table, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.database import Database
from adapters.tables import (
    credit_movements,
    order_steps,
    orders,
    payments,
    points_movements,
    reservations,
    shipments,
)
from domain.keys import Step
from domain.order import SOLD_STATUSES, PaymentStatus, ShipmentStatus, StepState
from domain.preview import Effects, Money, Parcel, Pieces, Stamped


async def read_effects(database: Database, order_id: str) -> Effects:
    """As of one instant. The order exists. Raises DatabaseUnavailable."""
    async with database.snapshot() as connection:
        order = (await connection.execute(select(orders).where(orders.c.order_id == order_id))).mappings().one()
        return Effects(
            order_id=order_id,
            currency=order["currency"],
            amount_due=order["amount_due"],
            price_points=order["points"],
            price_credit=order["store_credit"],
            pieces=await _pieces(connection, order_id),
            points=-await _sum(connection, points_movements, order_id),
            store_credit=-await _sum(connection, credit_movements, order_id),
            money=await _money(connection, order_id),
            parcels=await _parcels(connection, order_id),
            stamps=await _stamps(connection, order_id),
            sold=order["status"] in SOLD_STATUSES,
        )


async def _pieces(connection: AsyncConnection, order_id: str) -> tuple[Pieces, ...]:
    query = (
        select(reservations.c.warehouse, reservations.c.sku, reservations.c.quantity)
        .where(reservations.c.order_id == order_id, reservations.c.state == "reserved")
        .order_by(reservations.c.warehouse, reservations.c.sku)
    )
    return tuple(Pieces(row.warehouse, row.sku, row.quantity) for row in await connection.execute(query))


async def _sum(connection: AsyncConnection, movements: Table, order_id: str) -> int:
    query = select(func.coalesce(func.sum(movements.c.amount), 0)).where(
        movements.c.order_id == order_id, movements.c.kind != "earned"
    )
    return int((await connection.execute(query)).scalar_one())


async def _money(connection: AsyncConnection, order_id: str) -> Money:
    row = (await connection.execute(select(payments).where(payments.c.order_id == order_id))).mappings().one_or_none()
    if row is None:
        return Money()
    return Money(row["intent_id"], PaymentStatus(row["status"]), row["authorized"], row["captured"], row["refunded"])


async def _parcels(connection: AsyncConnection, order_id: str) -> tuple[Parcel, ...]:
    query = select(shipments).where(shipments.c.order_id == order_id).order_by(shipments.c.warehouse)
    rows = (await connection.execute(query)).mappings()
    return tuple(Parcel(row["warehouse"], row["shipment_id"], ShipmentStatus(row["status"])) for row in rows)


async def _stamps(connection: AsyncConnection, order_id: str) -> tuple[Stamped, ...]:
    columns = (order_steps.c.step, order_steps.c.item, order_steps.c.revision, order_steps.c.state)
    query = select(*columns).where(order_steps.c.order_id == order_id).order_by(order_steps.c.last_at)
    return tuple(
        Stamped(Step(row.step), row.item, row.revision, StepState(row.state)) for row in await connection.execute(query)
    )
