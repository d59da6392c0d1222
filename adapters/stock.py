"""Stock and its book: reservations, their ends, and what an operator puts on the shelves.

Every function that moves stock locks the rows it touches in one order (SKU, warehouse), so orders with crossing
baskets wait for each other and never deadlock. Each is a handful of statements for any number of lines.
"""

from uuid import uuid4

from pydantic import BaseModel, ConfigDict
from sqlalchemy import Text, and_, any_, func, literal, select, text, update
from sqlalchemy.dialects.postgresql import ARRAY, insert
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.database import Database
from adapters.tables import order_lines, products, reservations, stock, stock_movements
from domain.allocation import allocate
from domain.intake import Amount, CurrencyCode, Sku
from domain.keys import EffectKey


class StockBelowReserved(Exception):
    """Open orders hold more of this SKU in this warehouse than the operator wants to be there. Nothing was written."""

    def __init__(self, sku: str, warehouse: str) -> None:
        super().__init__(f"{sku}:{warehouse}")


class StockLevel(BaseModel):
    """What an operator says is there: pieces on hand in one warehouse, and the SKU's price in smallest units."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    warehouse: Sku
    on_hand: Amount
    unit_price: Amount
    currency: CurrencyCode


class WarehouseView(BaseModel):
    """One warehouse's pieces; `available` = `on_hand` − `reserved` is what can still be sold."""

    warehouse: str
    on_hand: int
    reserved: int
    available: int


class StockView(BaseModel):
    """One SKU of the catalogue and where it lies, warehouses by name."""

    sku: str
    unit_price: int
    currency: str
    warehouses: list[WarehouseView]


#: Live reservations of one order, joined to the stock that they are set aside from.
_LIVE = and_(
    reservations.c.sku == stock.c.sku,
    reservations.c.warehouse == stock.c.warehouse,
    reservations.c.state == "reserved",
)


async def reserve(connection: AsyncConnection, key: EffectKey) -> list[str]:
    """Sets the order's whole basket aside; the warehouses, sorted, or none of it and an empty list: not enough.

    Lines of one SKU are summed. The caller holds the effect's lock and stamps it.
    """
    wanted = await _wanted(connection, key.order_id)
    plan = allocate(wanted, await _lock_available(connection, list(wanted))) or ()
    if plan:
        await connection.execute(
            text(
                "INSERT INTO reservations (order_id, sku, warehouse, quantity)"
                " SELECT :order_id, * FROM unnest("
                "  CAST(:skus AS text[]), CAST(:warehouses AS text[]), CAST(:quantities AS bigint[]))"
            ),
            {
                "order_id": key.order_id,
                "skus": [part.sku for part in plan],
                "warehouses": [part.warehouse for part in plan],
                "quantities": [part.quantity for part in plan],
            },
        )
        await connection.execute(
            update(stock)
            .values(reserved=stock.c.reserved + reservations.c.quantity)
            .where(reservations.c.order_id == key.order_id, _LIVE)
        )
        await _write_movements(connection, key, "reserved")
    return sorted({part.warehouse for part in plan})


async def reserved_warehouses(connection: AsyncConnection, order_id: str) -> list[str]:
    """What `reserve` answered, sorted."""
    query = select(reservations.c.warehouse).where(reservations.c.order_id == order_id).distinct()
    return sorted(await connection.scalars(query))


async def release(connection: AsyncConnection, undo: EffectKey) -> None:
    """Gives the order's live reservations back; nothing where there are none."""
    await _lock_reserved(connection, undo.order_id)
    await connection.execute(
        update(stock)
        .values(reserved=stock.c.reserved - reservations.c.quantity)
        .where(reservations.c.order_id == undo.order_id, _LIVE)
    )
    await _write_movements(connection, undo, "released")
    await _end_reservations(connection, undo.order_id, "released")


async def sell(connection: AsyncConnection, key: EffectKey) -> None:
    """Turns the order's live reservations into sales: the pieces leave the shelf."""
    await _lock_reserved(connection, key.order_id)
    await connection.execute(
        update(stock)
        .values(
            on_hand=stock.c.on_hand - reservations.c.quantity,
            reserved=stock.c.reserved - reservations.c.quantity,
        )
        .where(reservations.c.order_id == key.order_id, _LIVE)
    )
    await _write_movements(connection, key, "sold")
    await _end_reservations(connection, key.order_id, "sold")


async def put_stock(database: Database, sku: str, level: StockLevel, actor: str) -> StockView:
    """Sets price and pieces on hand to what the operator says; the difference is a movement `stocked`.

    Idempotent by its meaning: a second call finds no difference. Raises StockBelowReserved.
    """
    async with database.begin() as connection:
        price = {"unit_price": level.unit_price, "currency": level.currency}
        await connection.execute(
            insert(products).values(sku=sku, **price).on_conflict_do_update(index_elements=["sku"], set_=price)
        )
        await connection.execute(insert(stock).values(sku=sku, warehouse=level.warehouse).on_conflict_do_nothing())
        here = and_(stock.c.sku == sku, stock.c.warehouse == level.warehouse)
        before = (await connection.execute(select(stock).where(here).with_for_update())).one()
        if level.on_hand < before.reserved:
            raise StockBelowReserved(sku, level.warehouse)
        if level.on_hand != before.on_hand:
            await connection.execute(update(stock).values(on_hand=level.on_hand).where(here))
            await connection.execute(
                insert(stock_movements).values(
                    key=f"stocked:{sku}:{level.warehouse}:{uuid4()}",
                    sku=sku,
                    warehouse=level.warehouse,
                    kind="stocked",
                    quantity=level.on_hand - before.on_hand,
                    actor=actor,
                )
            )
        view = await _view(connection, sku)
    assert view is not None
    return view


async def read_stock(database: Database, sku: str) -> StockView | None:
    """The SKU as it stands at one instant; None: the catalogue does not have it."""
    async with database.snapshot() as connection:
        return await _view(connection, sku)


async def _wanted(connection: AsyncConnection, order_id: str) -> dict[str, int]:
    query = (
        select(order_lines.c.sku, func.sum(order_lines.c.quantity))
        .where(order_lines.c.order_id == order_id)
        .group_by(order_lines.c.sku)
    )
    return {sku: int(pieces) for sku, pieces in await connection.execute(query)}


async def _lock_available(connection: AsyncConnection, skus: list[str]) -> dict[str, dict[str, int]]:
    rows = await connection.execute(
        select(stock.c.sku, stock.c.warehouse, (stock.c.on_hand - stock.c.reserved).label("available"))
        .where(stock.c.sku == any_(literal(skus, ARRAY(Text))))
        .order_by(stock.c.sku, stock.c.warehouse)
        .with_for_update()
    )
    found: dict[str, dict[str, int]] = {}
    for row in rows:
        found.setdefault(row.sku, {})[row.warehouse] = row.available
    return found


async def _lock_reserved(connection: AsyncConnection, order_id: str) -> None:
    await connection.execute(
        select(stock.c.sku)
        .join(reservations, _LIVE)
        .where(reservations.c.order_id == order_id)
        .order_by(stock.c.sku, stock.c.warehouse)
        .with_for_update(of=stock)
    )


async def _write_movements(connection: AsyncConnection, key: EffectKey, kind: str) -> None:
    """One movement for each live reservation of the order, keyed by the effect, SKU and warehouse."""
    live = select(
        literal(f"{key}:").concat(reservations.c.sku).concat(":").concat(reservations.c.warehouse),
        reservations.c.sku,
        reservations.c.warehouse,
        literal(kind),
        reservations.c.quantity,
        reservations.c.order_id,
    ).where(reservations.c.order_id == key.order_id, reservations.c.state == "reserved")
    await connection.execute(
        insert(stock_movements).from_select(["key", "sku", "warehouse", "kind", "quantity", "order_id"], live)
    )


async def _end_reservations(connection: AsyncConnection, order_id: str, state: str) -> None:
    await connection.execute(
        update(reservations)
        .values(state=state)
        .where(reservations.c.order_id == order_id, reservations.c.state == "reserved")
    )


async def _view(connection: AsyncConnection, sku: str) -> StockView | None:
    product = (await connection.execute(select(products).where(products.c.sku == sku))).one_or_none()
    if product is None:
        return None
    rows = await connection.execute(select(stock).where(stock.c.sku == sku).order_by(stock.c.warehouse))
    return StockView(
        sku=product.sku,
        unit_price=product.unit_price,
        currency=product.currency,
        warehouses=[
            WarehouseView(
                warehouse=row.warehouse,
                on_hand=row.on_hand,
                reserved=row.reserved,
                available=row.on_hand - row.reserved,
            )
            for row in rows
        ],
    )
