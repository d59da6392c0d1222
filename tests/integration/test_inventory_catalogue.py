"""What an operator puts on the shelves."""

import pytest
from pydantic import ValidationError
from sqlalchemy import select

from activities.inventory import InventoryActivities
from adapters.database import Database
from adapters.stock import StockBelowReserved, StockLevel, StockView, WarehouseView, put_stock, read_stock
from adapters.tables import stock_movements
from tests.builders import an_accepted_order
from tests.integration.attempts import attempt


def a_level(**changes: object) -> StockLevel:
    level = {"warehouse": "main", "on_hand": 5, "unit_price": 3000, "currency": "EUR"}
    return StockLevel.model_validate(level | changes)


async def stocked(database: Database) -> list[tuple[int, str]]:
    """What the book says was brought or taken away, in order: (quantity, actor)."""
    async with database.snapshot() as connection:
        query = select(stock_movements).where(stock_movements.c.kind == "stocked").order_by(stock_movements.c.at)
        return [(row.quantity, row.actor) for row in await connection.execute(query)]


async def test_a_new_sku_is_in_the_catalogue_with_its_price_and_pieces(database: Database) -> None:
    view = await put_stock(database, "A", a_level(), "mia")
    main = WarehouseView(warehouse="main", on_hand=5, reserved=0, available=5)
    assert view == StockView(sku="A", unit_price=3000, currency="EUR", warehouses=[main])
    assert await read_stock(database, "A") == view
    assert await stocked(database) == [(5, "mia")]


async def test_only_the_difference_is_a_movement_and_no_difference_is_none(database: Database) -> None:
    for on_hand, actor in ((5, "mia"), (5, "mia"), (8, "tom"), (2, "tom")):
        await put_stock(database, "A", a_level(on_hand=on_hand), actor)
    assert await stocked(database) == [(5, "mia"), (3, "tom"), (-6, "tom")]


async def test_another_warehouse_stands_beside_the_first_under_the_newest_price(database: Database) -> None:
    await put_stock(database, "A", a_level(warehouse="porto"), "mia")
    view = await put_stock(database, "A", a_level(warehouse="berlin", on_hand=0, unit_price=2500), "mia")
    assert [(here.warehouse, here.on_hand) for here in view.warehouses] == [("berlin", 0), ("porto", 5)]
    assert view.unit_price == 2500


async def test_pieces_that_open_orders_hold_cannot_be_taken_off_the_shelf(database: Database) -> None:
    await put_stock(database, "A", a_level(), "mia")
    order_id = await an_accepted_order(database, lines=[{"sku": "A", "quantity": 2}])
    await attempt(InventoryActivities(database).reserve_stock, order_id)
    with pytest.raises(StockBelowReserved, match=r"^A:main$"):
        await put_stock(database, "A", a_level(on_hand=1, unit_price=1), "mia")
    view = await read_stock(database, "A")
    assert view is not None
    assert (view.unit_price, view.warehouses[0].on_hand) == (3000, 5)
    view = await put_stock(database, "A", a_level(on_hand=2), "mia")
    assert view.warehouses[0].available == 0


async def test_a_sku_that_nobody_put_there_is_unknown(database: Database) -> None:
    assert await read_stock(database, "A") is None


@pytest.mark.parametrize(
    "change",
    [
        {"on_hand": -1},
        {"on_hand": 1.0},
        {"on_hand": "5"},
        {"on_hand": True},
        {"on_hand": 10**19},
        {"unit_price": -1},
        {"unit_price": None},
        {"currency": "eur"},
        {"currency": "XXX"},
        {"warehouse": ""},
        {"warehouse": "a:b"},
        {"warehouse": "a" * 65},
        {"price": 1},
    ],
)
def test_a_level_that_makes_no_sense_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        a_level(**change)
