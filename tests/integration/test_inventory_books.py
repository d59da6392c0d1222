"""Whatever comes twice, late, at once or in the wrong order: the shelves agree with the book."""

import asyncio
import random

import pytest
from sqlalchemy import text

from activities.inventory import InventoryActivities
from adapters.database import Database
from adapters.stock import StockBelowReserved, StockLevel, put_stock
from domain.errors import ContradictionError, InventoryUnavailable
from tests.builders import an_accepted_order
from tests.integration.attempts import attempt

SKUS = ("A", "B", "C")
WAREHOUSES = ("berlin", "porto")

#: Shelves that do not agree with reservations or movements, or are below zero. Written apart from the code on purpose.
WRONG_SHELVES = text("""
    WITH live AS (
        SELECT sku, warehouse, sum(quantity) AS held FROM reservations WHERE state = 'reserved' GROUP BY sku, warehouse
    ), moved AS (
        SELECT sku, warehouse,
               sum(CASE kind WHEN 'stocked' THEN quantity WHEN 'sold' THEN -quantity ELSE 0 END) AS on_hand,
               sum(CASE kind WHEN 'reserved' THEN quantity WHEN 'released' THEN -quantity WHEN 'sold' THEN -quantity
                   ELSE 0 END) AS reserved
        FROM stock_movements GROUP BY sku, warehouse
    )
    SELECT sku, warehouse, s.on_hand, s.reserved, held, moved.on_hand, moved.reserved
    FROM stock s FULL JOIN live USING (sku, warehouse) FULL JOIN moved USING (sku, warehouse)
    WHERE s.reserved IS DISTINCT FROM coalesce(held, 0)
       OR s.on_hand IS DISTINCT FROM coalesce(moved.on_hand, 0)
       OR s.reserved IS DISTINCT FROM coalesce(moved.reserved, 0)
       OR s.on_hand < 0 OR s.reserved < 0 OR s.reserved > s.on_hand
""")

#: Orders whose tombstone stands although they still hold something.
LEAKS = text("""
    SELECT order_id FROM reservations JOIN order_steps USING (order_id)
    WHERE step = 'reserve_stock' AND order_steps.state = 'undone' AND reservations.state <> 'released'
""")


async def assert_books_agree(database: Database) -> None:
    async with database.snapshot() as connection:
        assert (await connection.execute(WRONG_SHELVES)).all() == []
        assert (await connection.execute(LEAKS)).all() == []


async def restock(database: Database, draw: random.Random) -> None:
    level = StockLevel(warehouse=draw.choice(WAREHOUSES), on_hand=draw.randint(0, 9), unit_price=100, currency="EUR")
    try:
        await put_stock(database, draw.choice(SKUS), level, "mia")
    except StockBelowReserved:
        return


@pytest.mark.parametrize("seed", range(6))
async def test_the_shelves_agree_with_the_book_after_any_sequence_of_attempts(database: Database, seed: int) -> None:
    draw = random.Random(seed)
    inventory = InventoryActivities(database)
    steps = (inventory.reserve_stock, inventory.release_stock, inventory.commit_stock)
    for sku in SKUS:
        level = StockLevel(warehouse="berlin", on_hand=6, unit_price=100, currency="EUR")
        await put_stock(database, sku, level, "mia")
    order_ids = []
    for _ in range(8):
        basket = [{"sku": draw.choice(SKUS), "quantity": draw.randint(1, 3)} for _ in range(draw.randint(1, 4))]
        order_ids.append(await an_accepted_order(database, lines=basket))

    async def one() -> None:
        try:
            await attempt(draw.choice(steps), draw.choice(order_ids))
        except (InventoryUnavailable, ContradictionError):
            return

    for _ in range(15):
        at_once = [one() for _ in range(draw.randint(1, 4))]
        await asyncio.gather(*at_once, restock(database, draw))
        await assert_books_agree(database)
