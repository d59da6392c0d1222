"""The saga on a server that skips time: one environment, one shop, many orders."""

from collections.abc import AsyncIterator

import pytest_asyncio
from temporalio.testing import WorkflowEnvironment

from tests.conftest import MakeDatabase
from tests.shop import QUICK, Shop
from tests.workflows.skipping import shop_on, start_environment
from tests.workflows.till import Till

#: Only a webhook wakes an order soon: it looks by itself after twenty minutes. A day of looks every five minutes, or an
#: hour of calls every two seconds, is long even where time is skipped: here there are fewer.
PATIENT = QUICK.model_copy(
    update={"first_poll_seconds": 1200, "processing_limit_seconds": 3600, "not_served_wait_seconds": 30}
)


@pytest_asyncio.fixture(scope="session")
async def environment() -> AsyncIterator[WorkflowEnvironment]:
    """A Temporal server on which waits of workflows take no time."""
    async with await start_environment() as environment:
        yield environment


@pytest_asyncio.fixture(scope="session")
async def shop(environment: WorkflowEnvironment, make_database: MakeDatabase) -> AsyncIterator[Shop]:
    """An open shop."""
    async with shop_on(environment, make_database) as shop:
        yield shop


@pytest_asyncio.fixture(scope="session")
async def till(environment: WorkflowEnvironment, shop: Shop) -> Till:
    """The shop's payments."""
    return Till(shop, environment)


@pytest_asyncio.fixture(scope="session")
async def patient_till(make_database: MakeDatabase) -> AsyncIterator[Till]:
    """The payments of a shop of its own, whose gateway's clock may be turned: that clock is one for all its orders."""
    async with await start_environment() as environment, shop_on(environment, make_database, PATIENT) as shop:
        yield Till(shop, environment)
