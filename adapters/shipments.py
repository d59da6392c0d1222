"""The table of the shipping party, and the one address that it may read."""

from typing import Any

from sqlalchemy import func, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.courier import Shipment
from adapters.tables import order_contacts, shipments
from domain.errors import OrderNotFound
from domain.order import ShipmentStatus


async def read_address(connection: AsyncConnection, order_id: str) -> dict[str, Any]:
    """Where the parcel goes: personal data, for the courier only. Raises OrderNotFound."""
    query = select(order_contacts.c.shipping_address).where(order_contacts.c.order_id == order_id)
    address: dict[str, Any] | None = (await connection.execute(query)).scalar_one_or_none()
    if address is None:
        raise OrderNotFound(order_id)
    return address


async def store_shipment(connection: AsyncConnection, order_id: str, warehouse: str, shipment: Shipment) -> None:
    """One row a warehouse; the first booking stands."""
    await connection.execute(
        insert(shipments)
        .values(
            order_id=order_id,
            warehouse=warehouse,
            reference=shipment.reference,
            shipment_id=shipment.id,
            status=shipment.status.value,
        )
        .on_conflict_do_nothing(index_elements=["order_id", "warehouse"])
    )


async def mark_cancelled(connection: AsyncConnection, order_id: str, warehouse: str) -> None:
    """The parcel will not leave. Nothing where none was recorded."""
    await connection.execute(
        update(shipments)
        .where(shipments.c.order_id == order_id, shipments.c.warehouse == warehouse)
        .values(status=ShipmentStatus.CANCELLED.value, updated_at=func.clock_timestamp())
    )
