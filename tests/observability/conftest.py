"""Shops whose metrics are scraped as Prometheus would: every address of each."""

from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest_asyncio
from temporalio.client import Client
from temporalio.contrib.pydantic import pydantic_data_converter

from adapters.database import Database
from runtime.measures import worker_runtime
from runtime.ports import free_port
from runtime.settings import Settings
from tests.conftest import MakeDatabase
from tests.integration.conftest import Api, apis
from tests.observability.scraping import Samples, parse
from tests.shop import Http, Shop
from tests.workflows.skipping import shop_on, start_environment


@dataclass
class Grounds:
    """A shop with its workers, and API processes where something is missing."""

    shop: Shop
    worker_url: str
    #: Nobody works on its orders: what a test writes into its books stays as it is.
    still: Api
    without_database: Api

    async def scrape(self, api: Http | None = None, **apis: Http) -> Samples:
        """All samples of this instant: of the shop's own API, or of another one; and of more of them by name."""
        instances = {"api": api or self.shop.operator, **apis}
        return parse({name: await _get(http) for name, http in instances.items()} | {"worker": await self._worker()})

    async def _worker(self) -> str:
        async with self.shop.http.get(self.worker_url) as answer:
            return await answer.text()


async def _get(http: Http) -> str:
    answer = await http.get("/metrics")
    assert answer.status == 200
    return await answer.text()


@pytest_asyncio.fixture(scope="session")
async def grounds(make_database: MakeDatabase) -> AsyncIterator[Grounds]:
    """On a server of its own, which nobody else measures on."""
    port = free_port()
    runtime = worker_runtime(Settings(_env_file=None, worker_metrics_port=port))
    nowhere = Database("postgresql://nobody@127.0.0.1:1/nothing", application="tests")
    no_temporal = await Client.connect(f"127.0.0.1:{free_port()}", lazy=True, data_converter=pydantic_data_converter)
    async with (
        await start_environment(runtime) as environment,
        shop_on(environment, make_database) as shop,
        apis(reading_seconds=0) as make,
    ):
        still = await make(await make_database(), no_temporal)
        without_database = await make(nowhere, environment.client)
        yield Grounds(shop, f"http://127.0.0.1:{port}/metrics", still, without_database)
    await nowhere.close()
