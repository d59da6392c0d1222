"""Many orders at once: nothing is sold twice, and nobody waits for each other in a circle."""

import asyncio
import random

from sqlalchemy import func, insert, select, text, update

from activities.inventory import InventoryActivities
from adapters.database import Database
from adapters.stock import read_stock
from adapters.tables import reservations, stock
from domain.errors import InventoryUnavailable, StepFenced
from domain.messages import Reservation
from tests.builders import a_product, an_accepted_order
from tests.integration.attempts import at_once, attempt, until_somebody_waits


async def orders_of(database: Database, *baskets: dict[str, int]) -> list[str]:
    return [
        await an_accepted_order(database, lines=[{"sku": sku, "quantity": pieces} for sku, pieces in basket.items()])
        for basket in baskets
    ]


async def test_of_fifty_orders_for_the_last_piece_exactly_one_gets_it(database: Database) -> None:
    """S48: at the shelf."""
    await a_product(database, "A", on_hand=1)
    order_ids = await orders_of(database, *[{"A": 1}] * 50)
    answers = await at_once(InventoryActivities(database).reserve_stock, order_ids)
    assert sum(isinstance(answer, Reservation) for answer in answers) == 1
    assert sum(isinstance(answer, InventoryUnavailable) for answer in answers) == 49
    view = await read_stock(database, "A")
    assert view is not None
    assert (view.warehouses[0].reserved, view.warehouses[0].available) == (1, 0)


async def test_orders_of_different_sizes_never_reserve_more_than_there_is(database: Database) -> None:
    """S48: at the shelf."""
    await a_product(database, "A", on_hand=6, warehouse="berlin")
    await a_product(database, "A", on_hand=4, warehouse="porto")
    draw = random.Random(48)
    order_ids = await orders_of(database, *[{"A": draw.randint(1, 3)} for _ in range(40)])
    answers = await at_once(InventoryActivities(database).reserve_stock, order_ids)
    assert all(isinstance(answer, Reservation | InventoryUnavailable) for answer in answers)
    async with database.snapshot() as connection:
        held = await connection.scalar(select(func.sum(reservations.c.quantity)))
        assert held == await connection.scalar(select(func.sum(stock.c.reserved))) == 10


async def test_orders_with_crossing_baskets_never_wait_in_a_circle(database: Database) -> None:
    skus = [f"SKU-{number}" for number in range(12)]
    for sku in skus:
        await a_product(database, sku, on_hand=200, warehouse="berlin")
        await a_product(database, sku, on_hand=200, warehouse="porto")
    draw = random.Random(50)
    order_ids = await orders_of(database, *[dict.fromkeys(draw.sample(skus, 6), 1) for _ in range(50)])
    inventory = InventoryActivities(database)
    assert all(isinstance(answer, Reservation) for answer in await at_once(inventory.reserve_stock, order_ids))
    # A deadlock would be a DatabaseUnavailable among the answers.
    released, sold = order_ids[::2], order_ids[1::2]
    assert set(await at_once(inventory.release_stock, released)) == {None}
    assert set(await at_once(inventory.commit_stock, sold)) == {None}
    async with database.snapshot() as connection:
        assert await connection.scalar(select(func.sum(stock.c.reserved))) == 0
        assert await connection.scalar(select(func.sum(stock.c.on_hand))) == 12 * 400 - 25 * 6


async def test_shelves_are_locked_in_one_order_however_their_rows_lie(database: Database) -> None:
    async with database.begin() as connection:
        for shortcut in ("indexscan", "bitmapscan", "mergejoin"):
            # Then PostgreSQL reads the rows as they lie.
            await connection.execute(text(f"ALTER DATABASE {database.engine.url.database} SET enable_{shortcut} = off"))
    await database.close()
    for sku in ("B", "A"):
        await a_product(database, sku)
    (order_id,) = await orders_of(database, {"A": 1, "B": 1})
    async with database.begin() as connection:
        await connection.execute(update(stock).values(reserved=1))
        for sku in ("B", "A"):
            row = {"order_id": order_id, "sku": sku, "warehouse": "main", "quantity": 1}
            await connection.execute(insert(reservations).values(row))
    async with database.begin() as other:
        await other.execute(select(stock).where(stock.c.sku == "A").with_for_update())
        release = asyncio.create_task(attempt(InventoryActivities(database).release_stock, order_id))
        await until_somebody_waits(database)
        # It waits for the first of its shelves and has none of the others yet.
        await other.execute(select(stock).where(stock.c.sku == "B").with_for_update(nowait=True))
    await release


async def test_ten_attempts_of_one_order_at_once_reserve_once(database: Database) -> None:
    await a_product(database, "A")
    (order_id,) = await orders_of(database, {"A": 2})
    answers = await at_once(InventoryActivities(database).reserve_stock, [order_id] * 10)
    assert answers == [Reservation(warehouses=["main"])] * 10
    view = await read_stock(database, "A")
    assert view is not None
    assert view.warehouses[0].reserved == 2


async def test_a_reserve_that_races_its_release_never_stays(database: Database) -> None:
    await a_product(database, "A", on_hand=100)
    order_ids = await orders_of(database, *[{"A": 1}] * 20)
    inventory = InventoryActivities(database)
    reserved, released = await asyncio.gather(
        at_once(inventory.reserve_stock, order_ids), at_once(inventory.release_stock, order_ids)
    )
    assert all(isinstance(answer, Reservation | StepFenced) for answer in reserved)
    assert set(released) == {None}
    view = await read_stock(database, "A")
    assert view is not None
    assert (view.warehouses[0].on_hand, view.warehouses[0].reserved) == (100, 0)
