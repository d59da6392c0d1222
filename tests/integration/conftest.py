"""A real Temporal server with stand-in sagas, and the API in-process on top of it."""

import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest_asyncio
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer
from sqlalchemy import func, literal, select, union_all
from temporalio.client import Client
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import Worker

from adapters.database import Database
from adapters.tables import metadata
from api.app import build_apps
from api.deps import Deps
from api.metrics import READING_SECONDS, Metrics
from api.starts import DirectStarts
from runtime.ports import free_port
from runtime.settings import Settings
from tests.builders import the_fixture_products
from tests.conftest import MakeDatabase
from tests.integration.stand_ins import MoneyStandIn, OrderStandIn
from tests.integration.till import Till, a_till
from workflows.names import SEARCH_ATTRIBUTES, Queue

Http = TestClient[web.Request, web.Application]

#: Without them every workflow task takes half a second.
FAST = (
    "history.transferProcessorMaxPollRPS=1000",
    "history.timerProcessorMaxPollRPS=1000",
    'history.timerProcessorMaxTimeShift="10ms"',
)

SECRETS = ("whsec_new", "whsec_old")


@pytest_asyncio.fixture(scope="session")
async def temporal() -> AsyncIterator[Client]:
    """A Temporal server for the whole session. No worker runs."""
    environment = await WorkflowEnvironment.start_local(
        dev_server_existing_path=str(Path(sys.executable).parent / "temporal"),
        search_attributes=SEARCH_ATTRIBUTES,
        data_converter=pydantic_data_converter,
        dev_server_extra_args=[word for setting in FAST for word in ("--dynamic-config-value", setting)],
        dev_server_log_level="error",
    )
    async with environment:
        yield environment.client


@pytest_asyncio.fixture(scope="session")
async def sagas(temporal: Client) -> AsyncIterator[Client]:
    """The same server with a worker for the stand-in sagas."""
    async with Worker(temporal, task_queue=Queue.ORDERS, workflows=[OrderStandIn, MoneyStandIn]):
        yield temporal


@pytest_asyncio.fixture(scope="session")
async def no_temporal() -> Client:
    """A client of a server that does not answer."""
    return await Client.connect(f"127.0.0.1:{free_port()}", lazy=True, data_converter=pydantic_data_converter)


@dataclass(frozen=True)
class Api:
    """Both ports of one API process."""

    shopper: Http
    operator: Http
    starts: DirectStarts
    database: Database

    async def order(self, document: dict[str, Any], key: str, **headers: str) -> tuple[int, dict[str, Any]]:
        """Places an order."""
        answer = await self.shopper.post("/orders", json=document, headers={"Idempotency-Key": key, **headers})
        return answer.status, await answer.json(content_type=None)


MakeApi = Callable[[Database, Client], Awaitable[Api]]


@asynccontextmanager
async def apis(*, reading_seconds: float = READING_SECONDS) -> AsyncIterator[MakeApi]:
    """API processes, so to speak: each reads the database for its metrics anew after so many seconds."""
    async with AsyncExitStack() as stack:

        async def make(database: Database, client: Client) -> Api:
            settings = Settings(_env_file=None, stripe_webhook_secrets=SECRETS, courier_webhook_secrets=SECRETS)
            metrics = Metrics(reading_seconds=reading_seconds)
            starts = DirectStarts(database, client, metrics)
            apps = build_apps(Deps(database, client, settings, metrics, starts, inventory=database, loyalty=database))
            shopper, operator = [
                await stack.enter_async_context(TestClient(TestServer(app))) for app in (apps.shopper, apps.operator)
            ]
            stack.push_async_callback(starts.close)
            return Api(shopper, operator, starts, database)

        yield make


@pytest_asyncio.fixture
async def make_api() -> AsyncIterator[MakeApi]:
    """`await make_api(database, client)`: one more API process, so to speak."""
    async with apis() as make:
        yield make


@pytest_asyncio.fixture
async def api(make_api: MakeApi, database: Database, sagas: Client) -> Api:
    """The API with everything in reach."""
    return await make_api(database, sagas)


@pytest_asyncio.fixture
async def lonely_api(make_api: MakeApi, database: Database, no_temporal: Client) -> Api:
    """The API while Temporal is down."""
    return await make_api(database, no_temporal)


@pytest_asyncio.fixture(scope="session")
async def refusing_api(make_database: MakeDatabase, no_temporal: Client) -> AsyncIterator[Api]:
    """The API for requests that it refuses: one database for all of them, since none may write into it."""
    database = await make_database()
    await the_fixture_products(database)
    async with apis() as make:
        yield await make(database, no_temporal)


@pytest_asyncio.fixture(scope="module")
async def opened_till(make_database: MakeDatabase) -> AsyncIterator[Till]:
    """The payments party with a gateway and a database for all tests of a module: each has orders of its own."""
    async with a_till(await make_database()) as one:
        yield one


@pytest_asyncio.fixture
async def till(opened_till: Till) -> Till:
    """The module's till with a gateway that is well."""
    await opened_till.forget_faults()
    return opened_till


async def _count_rows(database: Database) -> dict[str, int]:
    counts = [select(literal(table.name), func.count()).select_from(table) for table in metadata.sorted_tables]
    async with database.snapshot() as connection:
        return {row[0]: row[1] for row in await connection.execute(union_all(*counts))}


@pytest_asyncio.fixture
async def nothing_written(refusing_api: Api) -> AsyncIterator[None]:
    """Fails when the test has written a row through `refusing_api`."""
    before = await _count_rows(refusing_api.database)
    yield
    assert await _count_rows(refusing_api.database) == before
