"""One more API process of an open shop, so to speak: the same database, Temporal and secrets."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from aiohttp.test_utils import TestClient, TestServer

from adapters.database import Database
from api.app import build_apps
from api.deps import Deps
from api.metrics import Metrics
from api.starts import DirectStarts
from tests.shop import Http, Shop


@asynccontextmanager
async def a_replica(shop: Shop, database: Database | None = None) -> AsyncIterator[Http]:
    """The shopper's door of another API until the block ends; on another database, where one is given."""
    database, metrics = database or shop.database, Metrics()
    starts = DirectStarts(database, shop.client, metrics)
    needs = Deps(database, shop.client, shop.settings, metrics, starts, inventory=database, loyalty=database)
    async with AsyncExitStack() as stack:
        door = await stack.enter_async_context(TestClient(TestServer(build_apps(needs).shopper)))
        stack.push_async_callback(starts.close)
        yield door
