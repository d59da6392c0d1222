"""Our own books, read at one instant."""

from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.books.balances import BALANCES
from adapters.books.conservation import CONSERVATION
from adapters.books.lines import read_lines
from adapters.books.orders import ORDERS
from adapters.books.undone import UNDONE
from adapters.database import Database
from adapters.tables import order_steps, orders, reservations
from domain.books import Books, WaivedStep
from domain.order import CLOSED_STATUSES, OrderStatus, StepState


async def read_own_books(database: Database, order_id: str | None = None) -> Books:
    """All *always* lines, what conservation can tell without Temporal, and the undos that operators waived.

    Of one order only the lines that are about orders. Raises DatabaseUnavailable.
    """
    async with database.snapshot() as connection:
        return await look(connection, order_id)


async def look(connection: AsyncConnection, order_id: str | None = None) -> Books:
    """`read_own_books` as the caller's transaction sees them."""
    lines = await read_lines(connection, [*BALANCES, *ORDERS, *UNDONE, *CONSERVATION], order_id)
    return Books(tuple(lines), waived=await _read_waived(connection, order_id))


async def _read_waived(connection: AsyncConnection, order_id: str | None) -> tuple[WaivedStep, ...]:
    columns = [order_steps.c[name] for name in ("order_id", "step", "item", "actor", "reason")]
    query = select(*columns).where(order_steps.c.state == StepState.WAIVED).order_by(order_steps.c.at)
    if order_id is not None:
        query = query.where(order_steps.c.order_id == order_id)
    return tuple(WaivedStep(**row) for row in (await connection.execute(query)).mappings())


async def orders_to_run(database: Database, older_than_seconds: float, order_id: str | None = None) -> list[str]:
    """Ids of orders that need a saga and had this long to get one: open, or confirmed with stock still to commit."""
    live = select(reservations.c.order_id).where(
        reservations.c.order_id == orders.c.order_id, reservations.c.state == "reserved"
    )
    unfinished = orders.c.status.not_in(sorted(CLOSED_STATUSES)) | (
        (orders.c.status == OrderStatus.CONFIRMED) & live.exists()
    )
    age_seconds = func.extract("epoch", func.clock_timestamp() - orders.c.updated_at)
    query = select(orders.c.order_id).where(unfinished, age_seconds > older_than_seconds)
    if order_id is not None:
        query = query.where(orders.c.order_id == order_id)
    async with database.begin() as connection:
        return list(await connection.scalars(query.order_by(orders.c.order_id)))
