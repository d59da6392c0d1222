"""The saga on a server that skips time: one environment, one shop, many orders."""

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.testing import WorkflowEnvironment

from tests.conftest import MakeDatabase
from tests.shop import Shop, open_shop
from workflows.names import SEARCH_ATTRIBUTES

#: Without the first ones every task takes half a second; the last one lets a workflow's own clock run ahead.
DYNAMIC_CONFIG = (
    "history.transferProcessorMaxPollRPS=1000",
    "history.timerProcessorMaxPollRPS=1000",
    'history.timerProcessorMaxTimeShift="10ms"',
    "frontend.WorkflowTimeSkippingEnabled=true",
)


@pytest_asyncio.fixture(scope="session")
async def environment() -> AsyncIterator[WorkflowEnvironment]:
    """A Temporal server on which waits of workflows take no time."""
    environment = await WorkflowEnvironment.start_time_skipping_v2(
        dev_server_existing_path=str(Path(sys.executable).parent / "temporal"),
        search_attributes=SEARCH_ATTRIBUTES,
        data_converter=pydantic_data_converter,
        dev_server_extra_args=[word for setting in DYNAMIC_CONFIG for word in ("--dynamic-config-value", setting)],
        dev_server_log_level="error",
    )
    async with environment:
        yield environment


@pytest_asyncio.fixture(scope="session")
async def shop(environment: WorkflowEnvironment, make_database: MakeDatabase) -> AsyncIterator[Shop]:
    """An open shop."""
    database = await make_database()
    still = environment.with_time_skipping_disabled
    async with open_shop(environment.client, database, database.url, standing_still=still) as shop:
        yield shop
