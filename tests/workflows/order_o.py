"""Order O of the scenarios: 1×A at 30.00 and 1×B at 20.00 with 500 points burned, so 45.00 payable; and its good ends.

Each end is told by every book: the gateway's own, the courier's, ours, and last by the proof that operators run.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from domain.policy import OrderPolicy
from runtime.proof import prove
from tests.baskets import Basket
from tests.conftest import MakeDatabase
from tests.shop import Shop
from tests.workflows.skipping import shop_on, start_environment
from tests.workflows.till import Till

#: What the order burns; the customer has no more.
POINTS = 500
PAYABLE = 4500


@asynccontextmanager
async def a_roomy_till(make_database: MakeDatabase) -> AsyncIterator[Till]:
    """The payments of a shop of its own with a real one's time-outs: many orders at once keep this one process busy."""
    async with (
        await start_environment() as environment,
        shop_on(environment, make_database, OrderPolicy(), provider_timeout_seconds=5) as shop,
    ):
        yield Till(shop, environment)


async def place(shop: Shop, *baskets: Basket, **changes: Any) -> None:
    """Places the orders side by side; their waits are skipped."""
    await asyncio.gather(*(shop.place(basket, points=POINTS, **changes) for basket in baskets))


async def waiting(till: Till, payment_method: str = "pm_sim_silent", payment: str = "PROCESSING") -> Basket:
    """An order that waits in real time for the gateway's word."""
    return await till.waiting(await till.shop.basket(), payment_method, payment, points=POINTS)


async def clean(shop: Shop, *baskets: Basket) -> None:
    """CLEAN, each of them, once all have ended."""

    await asyncio.gather(*(shop.ended(basket.order_id) for basket in baskets))
    for basket in baskets:
        await shop.assert_clean(basket, basket.order_id, captured=PAYABLE, points=0)
    await _books_hold(shop, *baskets)


async def undone(shop: Shop, *baskets: Basket, reason: str) -> None:
    """UNDONE, each of them, once all have ended."""

    await asyncio.gather(*(shop.ended(basket.order_id) for basket in baskets))
    for basket in baskets:
        await shop.assert_undone(basket, basket.order_id, reason)
    await _books_hold(shop, *baskets)


async def _books_hold(shop: Shop, *baskets: Basket) -> None:
    for basket in baskets:
        books = await prove(shop.settings, order_id=basket.order_id)
        assert [(line.name, line.failures) for line in books.lines if not line.holds] == []
