"""A Temporal server that skips time, and shops on it."""

import sys
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from temporalio.client import Plugin
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.runtime import Runtime
from temporalio.testing import WorkflowEnvironment

from domain.policy import OrderPolicy
from tests.conftest import MakeDatabase
from tests.parties import party_urls
from tests.shop import QUICK, Shop, open_shop
from workflows.names import SEARCH_ATTRIBUTES

#: Without the first ones every task takes half a second; the last one lets a workflow's own clock run ahead.
DYNAMIC_CONFIG = (
    "history.transferProcessorMaxPollRPS=1000",
    "history.timerProcessorMaxPollRPS=1000",
    'history.timerProcessorMaxTimeShift="10ms"',
    "frontend.WorkflowTimeSkippingEnabled=true",
)


async def start_environment(runtime: Runtime | None = None, plugins: Sequence[Plugin] = ()) -> WorkflowEnvironment:
    """A server on which waits of workflows take no time. The task queues are its own.

    `runtime`: where its clients and workers measure. `plugins`: of its clients.
    """
    return await WorkflowEnvironment.start_time_skipping_v2(
        dev_server_existing_path=str(Path(sys.executable).parent / "temporal"),
        search_attributes=SEARCH_ATTRIBUTES,
        data_converter=pydantic_data_converter,
        dev_server_extra_args=[word for setting in DYNAMIC_CONFIG for word in ("--dynamic-config-value", setting)],
        dev_server_log_level="error",
        runtime=runtime,
        plugins=plugins,
    )


@asynccontextmanager
async def shop_on(
    environment: WorkflowEnvironment, make_database: MakeDatabase, policy: OrderPolicy = QUICK, **options: Any
) -> AsyncIterator[Shop]:
    """An open shop: the only one on this server, since shops share the names of their queues. `options`: `open_shop`'s.

    Each party works by its own database role, as in a split shop: so each test proves its rights too.
    """
    database = await make_database()
    still = overlapping(environment.with_time_skipping_disabled)
    parties = party_urls(database.url)
    async with open_shop(environment.client, database, database.url, policy, still, parties, **options) as shop:
        yield shop


def overlapping(
    block: Callable[[], AbstractContextManager[None]],
) -> Callable[[], AbstractContextManager[None]]:
    """The same block for tasks side by side: the first one that enters begins it, the last one that leaves ends it."""
    entered, inside = ExitStack(), 0

    @contextmanager
    def shared() -> Iterator[None]:
        nonlocal inside
        if inside == 0:
            entered.enter_context(block())
        inside += 1
        try:
            yield
        finally:
            inside -= 1
            if inside == 0:
                entered.close()

    return shared
