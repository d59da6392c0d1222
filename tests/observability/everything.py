"""Scrapes in which everything that can be told is told: one order of each kind, and books where something stands."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.baskets import Basket
from tests.builders import an_accepted_order, an_order_document, unique
from tests.integration.webhooks import send
from tests.observability.conftest import Grounds
from tests.observability.promql import Scrape
from tests.observability.replay import Replay
from tests.observability.troubles import BOOKS, BOOKS_ENDED, STORIES, write


async def everything(grounds: Grounds) -> list[Scrape]:
    """Two times the same things happen, so that counters have moved between the scrapes of the first and the second."""
    replay = Replay()
    for _ in range(2):
        await _orders_of_each_kind(grounds)
        trouble = await STORIES["WorkflowsBroken"](grounds)
        async with _books_where_something_stands(grounds):
            replay.hold({**trouble.after, **await grounds.scrape(still=grounds.still.operator)}, 60)
    return replay.scrapes


async def _orders_of_each_kind(grounds: Grounds) -> None:
    shop = grounds.shop

    async def ended(basket: Basket, **changes: str) -> None:
        await shop.place(basket, **changes)
        await shop.ended(basket.order_id)

    await ended(await shop.basket())
    await ended(await shop.basket(), payment_method="pm_card_chargeDeclined")
    lost = await shop.basket()
    await shop.fault("capture", "drop", order_id=lost.order_id)
    await ended(lost)


@asynccontextmanager
async def _books_where_something_stands(grounds: Grounds) -> AsyncIterator[None]:
    order_id = await an_accepted_order(grounds.still.database)
    for statements in BOOKS:
        await write(grounds, statements, order_id)
    assert (await grounds.still.order(an_order_document(), unique("key")))[0] == 202
    await grounds.still.starts.close()
    assert (await send(grounds.still.shopper, b"{}"))[0] == 400
    yield
    for statements in BOOKS_ENDED:
        await write(grounds, statements, order_id)
