"""One whole shop for all tests that do not need one of their own: they keep apart by ids."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.e2e.running import RunningShop, running_shop


@pytest_asyncio.fixture(scope="session")
async def shop(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RunningShop]:
    """The running shop."""
    async with running_shop(tmp_path_factory.mktemp("shop")) as running:
        yield running
