"""A shop for the matrix: its orders share one server, each with its own clock, its own policy and its own trouble."""

import logging
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
import pytest_asyncio
from temporalio.testing import WorkflowEnvironment

from tests.conftest import MATRIX_CASE, MakeDatabase
from tests.matrix.batch import Batch
from tests.matrix.play import Player
from tests.matrix.policies import PATIENT, Policies
from tests.workflows.skipping import shop_on, start_environment


@pytest_asyncio.fixture(scope="session")
async def environment() -> AsyncIterator[WorkflowEnvironment]:
    """A Temporal server on which waits of workflows take no time."""
    async with await start_environment() as environment:
        yield environment


@pytest.fixture(scope="module", autouse=True)
def quiet() -> Iterator[None]:
    """Each of thousands of failures on purpose would be told with its traceback: a tenth of all work."""
    logger = logging.getLogger("temporalio.activity")
    level = logger.level
    logger.setLevel(logging.ERROR)
    yield
    logger.setLevel(level)


@pytest_asyncio.fixture(scope="session")
async def player(environment: WorkflowEnvironment, make_database: MakeDatabase) -> AsyncIterator[Player]:
    """An open shop, and whoever plays its cases."""
    policies = Policies()
    async with shop_on(
        environment, make_database, PATIENT, provider_timeout_seconds=3, interceptors=[policies]
    ) as shop:
        yield Player(shop, environment, policies)


@pytest_asyncio.fixture(scope="module")
async def batch(request: pytest.FixtureRequest, player: Player) -> AsyncIterator[Batch]:
    """All cases of the module that were selected, side by side. Afterwards the books of the whole shop are proved."""
    selected: list[Any] = [
        item.callspec.params["case"]
        for item in request.session.items
        if isinstance(item, pytest.Function) and item.module is request.module
    ]
    async with Batch.playing(player, selected) as batch:
        yield batch
    await player.prove_all()


@pytest.fixture(autouse=True)
def counted(request: pytest.FixtureRequest) -> None:
    """The session tells in the end how many cases it played."""
    if hasattr(request.node, "callspec"):
        request.node.user_properties.append((MATRIX_CASE, str(request.node.callspec.params["case"])))
