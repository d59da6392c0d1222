"""What tests of every kind share: a PostgreSQL server for the whole session, a fresh database for each test."""

import asyncio
import atexit
import itertools
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager

import pytest
import pytest_asyncio

from adapters.database import Database
from runtime.ports import free_port
from runtime.postgres import ADMIN, PostgresServer
from tests.parties import party_urls

# Lets the SDK's threads drain before the interpreter ends (temporalio/sdk-python#300).
atexit.register(time.sleep, 0.1)

TEMPLATE = "template_orders"

#: A test that played a case of the crash matrix says so by this property (`tests/matrix`).
MATRIX_CASE = "matrix case"

_matrix_cases: set[str] = set()

_numbers = itertools.count(1)

MakeDatabase = Callable[[], Awaitable[Database]]


@pytest_asyncio.fixture(scope="session")
async def postgres(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[PostgresServer]:
    """A server of its own on a free port."""
    async with PostgresServer(tmp_path_factory.mktemp("postgres"), free_port(), durable=False) as server:
        yield server


@pytest_asyncio.fixture(scope="session")
async def template(postgres: PostgresServer) -> str:
    """The name of a migrated, empty database: a copy of it costs less than migrating again."""
    from migrations import migrate

    owner = await postgres.create_database(TEMPLATE)
    await asyncio.to_thread(migrate, owner)
    await asyncio.to_thread(migrate, postgres.url(TEMPLATE, ADMIN), party_urls(owner))
    return TEMPLATE


@pytest_asyncio.fixture(scope="session")
async def make_database(postgres: PostgresServer, template: str) -> AsyncIterator[MakeDatabase]:
    """`await make_database()`: another fresh, migrated, empty database; for fixtures wider than one test."""
    async with AsyncExitStack() as stack:

        async def make() -> Database:
            return await stack.enter_async_context(_fresh(postgres, template))

        yield make


@pytest_asyncio.fixture
async def database(postgres: PostgresServer, template: str) -> AsyncIterator[Database]:
    """A fresh, migrated, empty database for one test."""
    async with _fresh(postgres, template) as fresh:
        yield fresh


@asynccontextmanager
async def _fresh(postgres: PostgresServer, template: str) -> AsyncIterator[Database]:
    name = f"test_{next(_numbers)}"
    database = Database(await postgres.create_database(name, template=template), application="tests")
    try:
        yield database
    finally:
        await database.close()
        await postgres.drop_database(name)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Counts the cases of the crash matrix, those that other processes of the session played too."""
    if report.when == "call":
        _matrix_cases.update(str(value) for name, value in report.user_properties if name == MATRIX_CASE)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Says how many cases there were, where there were any."""
    if _matrix_cases:
        terminalreporter.write_line(f"matrix: ran {len(_matrix_cases)} cases")
