"""One order's basket: reserved, released, sold."""

import pytest
from sqlalchemy import event, func, select, update

from activities.inventory import InventoryActivities
from adapters.database import Database
from adapters.stock import WarehouseView, read_stock
from adapters.tables import order_steps, reservations, stock, stock_movements
from domain.errors import ContradictionError, InventoryUnavailable, StepFenced
from tests.builders import a_product, an_accepted_order
from tests.integration.attempts import attempt


@pytest.fixture
def inventory(database: Database) -> InventoryActivities:
    return InventoryActivities(database)


async def shelf(database: Database, sku: str) -> list[tuple[str, int, int]]:
    """Where the SKU lies: (warehouse, on hand, reserved)."""
    view = await read_stock(database, sku)
    assert view is not None
    return [(here.warehouse, here.on_hand, here.reserved) for here in view.warehouses]


async def book(database: Database, order_id: str) -> list[tuple[str, str, str, int]]:
    """The order's stock movements: (kind, SKU, warehouse, quantity)."""
    async with database.snapshot() as connection:
        columns = [stock_movements.c[name] for name in ("kind", "sku", "warehouse", "quantity")]
        rows = await connection.execute(select(*columns).where(stock_movements.c.order_id == order_id))
        return sorted((row.kind, row.sku, row.warehouse, row.quantity) for row in rows)


async def stamps(database: Database, order_id: str) -> set[tuple[str, str]]:
    async with database.snapshot() as connection:
        query = select(order_steps.c.step, order_steps.c.state).where(order_steps.c.order_id == order_id)
        return {(row.step, row.state) for row in await connection.execute(query)}


def lines(*parts: tuple[str, int]) -> list[dict[str, object]]:
    return [{"sku": sku, "quantity": quantity} for sku, quantity in parts]


async def test_a_reserved_basket_is_set_aside_and_written_in_the_book(
    database: Database, inventory: InventoryActivities
) -> None:
    await a_product(database, "A")
    order_id = await an_accepted_order(database, lines=lines(("A", 2)))
    assert (await attempt(inventory.reserve_stock, order_id)).warehouses == ["main"]
    assert await shelf(database, "A") == [("main", 5, 2)]
    assert await book(database, order_id) == [("reserved", "A", "main", 2)]
    assert ("reserve_stock", "done") in await stamps(database, order_id)


async def test_thirty_lines_of_one_sku_are_one_reservation_of_their_sum(
    database: Database, inventory: InventoryActivities
) -> None:
    await a_product(database, "A", on_hand=30)
    order_id = await an_accepted_order(database, lines=lines(*[("A", 1)] * 30))
    await attempt(inventory.reserve_stock, order_id)
    assert await book(database, order_id) == [("reserved", "A", "main", 30)]


async def test_lines_of_one_sku_are_summed_before_the_shelf_is_looked_at(
    database: Database, inventory: InventoryActivities
) -> None:
    await a_product(database, "A", on_hand=5)
    order_id = await an_accepted_order(database, lines=lines(("A", 3), ("A", 3)))
    with pytest.raises(InventoryUnavailable):
        await attempt(inventory.reserve_stock, order_id)


async def test_a_basket_is_split_over_warehouses_where_none_has_it_all(
    database: Database, inventory: InventoryActivities
) -> None:
    await a_product(database, "A", on_hand=3, warehouse="porto")
    await a_product(database, "A", on_hand=4, warehouse="berlin")
    await a_product(database, "B", on_hand=1, warehouse="porto")
    order_id = await an_accepted_order(database, lines=lines(("A", 6), ("B", 1)))
    assert (await attempt(inventory.reserve_stock, order_id)).warehouses == ["berlin", "porto"]
    assert await shelf(database, "A") == [("berlin", 4, 4), ("porto", 3, 2)]
    assert await shelf(database, "B") == [("porto", 1, 1)]


async def test_one_sku_too_few_refuses_the_whole_basket_and_moves_nothing(
    database: Database, inventory: InventoryActivities
) -> None:
    await a_product(database, "A")
    await a_product(database, "B", on_hand=0)
    order_id = await an_accepted_order(database, lines=lines(("A", 1), ("B", 1)))
    with pytest.raises(InventoryUnavailable, match=f"^{order_id}:reserve_stock:1$"):
        await attempt(inventory.reserve_stock, order_id)
    assert await shelf(database, "A") == [("main", 5, 0)]
    assert await book(database, order_id) == []
    assert ("reserve_stock", "refused") in await stamps(database, order_id)


async def test_a_refusal_stays_a_refusal_when_the_shelf_is_filled_later(
    database: Database, inventory: InventoryActivities
) -> None:
    await a_product(database, "A", on_hand=0)
    order_id = await an_accepted_order(database, lines=lines(("A", 1)))
    for on_hand in (0, 9):
        async with database.begin() as connection:
            await connection.execute(update(stock).values(on_hand=on_hand))
        with pytest.raises(InventoryUnavailable):
            await attempt(inventory.reserve_stock, order_id)


async def test_pieces_reserved_by_another_order_are_not_available(
    database: Database, inventory: InventoryActivities
) -> None:
    await a_product(database, "A", on_hand=1)
    first, second = [await an_accepted_order(database, lines=lines(("A", 1))) for _ in range(2)]
    await attempt(inventory.reserve_stock, first)
    with pytest.raises(InventoryUnavailable):
        await attempt(inventory.reserve_stock, second)


async def test_a_repeated_reserve_gives_the_same_answer_and_takes_nothing_more(
    database: Database, inventory: InventoryActivities
) -> None:
    await a_product(database, "A")
    order_id = await an_accepted_order(database, lines=lines(("A", 2)))
    answers = [await attempt(inventory.reserve_stock, order_id) for _ in range(3)]
    assert [answer.warehouses for answer in answers] == [["main"]] * 3
    assert await shelf(database, "A") == [("main", 5, 2)]


async def test_release_gives_the_pieces_back_once_however_often_it_is_called(
    database: Database, inventory: InventoryActivities
) -> None:
    await a_product(database, "A")
    order_id = await an_accepted_order(database, lines=lines(("A", 2)))
    await attempt(inventory.reserve_stock, order_id)
    for _ in range(3):
        await attempt(inventory.release_stock, order_id)
    assert await shelf(database, "A") == [("main", 5, 0)]
    assert await book(database, order_id) == [("released", "A", "main", 2), ("reserved", "A", "main", 2)]


async def test_a_late_reserve_after_its_release_is_fenced_and_takes_nothing(
    database: Database, inventory: InventoryActivities
) -> None:
    await a_product(database, "A")
    order_id = await an_accepted_order(database, lines=lines(("A", 2)))
    await attempt(inventory.release_stock, order_id)
    with pytest.raises(StepFenced):
        await attempt(inventory.reserve_stock, order_id)
    assert await shelf(database, "A") == [("main", 5, 0)]
    assert await book(database, order_id) == []


async def test_a_sale_takes_the_reserved_pieces_off_the_shelf_once(
    database: Database, inventory: InventoryActivities
) -> None:
    await a_product(database, "A")
    order_id = await an_accepted_order(database, lines=lines(("A", 2)))
    await attempt(inventory.reserve_stock, order_id)
    for _ in range(3):
        await attempt(inventory.commit_stock, order_id)
    assert await shelf(database, "A") == [("main", 3, 0)]
    assert await book(database, order_id) == [("reserved", "A", "main", 2), ("sold", "A", "main", 2)]
    assert (await attempt(inventory.reserve_stock, order_id)).warehouses == ["main"]


async def test_what_was_sold_is_not_released_and_what_was_released_is_not_sold(
    database: Database, inventory: InventoryActivities
) -> None:
    await a_product(database, "A")
    sold, released, untouched = [await an_accepted_order(database, lines=lines(("A", 1))) for _ in range(3)]
    for order_id in (sold, released):
        await attempt(inventory.reserve_stock, order_id)
    await attempt(inventory.commit_stock, sold)
    await attempt(inventory.release_stock, released)
    with pytest.raises(StepFenced):
        await attempt(inventory.release_stock, sold)
    with pytest.raises(StepFenced):
        await attempt(inventory.commit_stock, released)
    with pytest.raises(ContradictionError):
        await attempt(inventory.commit_stock, untouched)
    assert await shelf(database, "A") == [("main", 4, 0)]
    assert ("reserve_stock", "undone") not in await stamps(database, sold)


async def test_five_hundred_lines_are_a_handful_of_statements(
    database: Database, inventory: InventoryActivities
) -> None:
    skus = [f"SKU-{number:03}" for number in range(500)]
    for sku in skus:
        await a_product(database, sku, price=10)
    order_id = await an_accepted_order(database, lines=lines(*[(sku, 1) for sku in skus]))
    statements: list[str] = []

    @event.listens_for(database.engine.sync_engine, "before_cursor_execute")
    def count(_connection: object, _cursor: object, statement: str, *_rest: object) -> None:
        statements.append(statement)

    for step, most in ((inventory.reserve_stock, 10), (inventory.commit_stock, 10), (inventory.reserve_stock, 5)):
        statements.clear()
        await attempt(step, order_id)
        assert len(statements) <= most, statements
    async with database.snapshot() as connection:
        assert await connection.scalar(select(func.count()).where(reservations.c.state == "sold")) == 500
        assert await connection.scalar(select(func.sum(stock.c.on_hand))) == 500 * 4


async def test_the_view_tells_what_can_still_be_sold(database: Database, inventory: InventoryActivities) -> None:
    await a_product(database, "A")
    order_id = await an_accepted_order(database, lines=lines(("A", 2)))
    await attempt(inventory.reserve_stock, order_id)
    view = await read_stock(database, "A")
    assert view is not None
    assert view.warehouses == [WarehouseView(warehouse="main", on_hand=5, reserved=2, available=3)]
