"""Commands from outside: wrong input and servers that are not there are one line, in time, and nothing is written."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from sqlalchemy import func, select
from temporalio.client import Client

from adapters.database import Database
from adapters.tables import orders
from runtime.ports import free_port
from tests.builders import an_order_document, the_fixture_products
from tests.commands import Ended, command, plain_environment
from tests.conftest import MakeDatabase

#: INTERFACES: a command without its servers ends within 10 s.
PROMISED_SECONDS = 10


@pytest.fixture
def nowhere(tmp_path: Path) -> dict[str, str]:
    """Servers that refuse the connection."""
    return plain_environment(
        tmp_path,
        DATABASE_URL=f"postgresql://orders:secret@127.0.0.1:{free_port()}/orders",
        TEMPORAL_ADDRESS=f"127.0.0.1:{free_port()}",
        STRIPE_API_KEY="sk_test_x",
        STRIPE_API_BASE=f"http://127.0.0.1:{free_port()}",
        COURIER_API_BASE=f"http://127.0.0.1:{free_port()}",
    )


@pytest_asyncio.fixture(scope="module")
async def untouched(make_database: MakeDatabase) -> AsyncIterator[Database]:
    """A database that no command of this module may write to."""
    database = await make_database()
    await the_fixture_products(database)
    yield database
    async with database.begin() as connection:
        assert await connection.scalar(select(func.count()).select_from(orders)) == 0


@pytest.fixture
def here(nowhere: dict[str, str], untouched: Database, temporal: Client) -> dict[str, str]:
    """A database and a Temporal server that answer."""
    url = untouched.url.replace("postgresql+psycopg", "postgresql")
    return nowhere | {"DATABASE_URL": url, "TEMPORAL_ADDRESS": temporal.service_client.config.target_host}


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ("starter.py order --line tea=0", "--line: Input should be greater than or equal to 1"),
        ("starter.py order --rate nan", "--rate: a number above 0"),
        ("starter.py order --rate 5", "--rate: goes with --count"),
        ("starter.py order --timeout 5", "--timeout: goes with --watch"),
        ("starter.py order --points 1.5", "Invalid value for '--points'"),
        ("starter.py order missing.json", "missing.json cannot be read: No such file or directory"),
        ("starter.py deliver", "No such command 'deliver'"),
        ("ops.py prove --all", "No such option: --all"),
    ],
)
async def test_what_was_typed_wrong_is_one_line_before_any_server_is_asked(
    nowhere: dict[str, str], words: str, complaint: str
) -> None:
    ended = await command(nowhere, *words.split())
    assert ended.code == 2
    assert ended.complaint.startswith(complaint)


async def test_the_help_teaches_with_examples(nowhere: dict[str, str]) -> None:
    ended = await command(nowhere, "starter.py", "order", "--help")
    assert ended.code == 0
    assert ".venv/bin/python starter.py order --watch" in ended.out
    assert "still open" in ended.out
    ended = await command(nowhere, "starter.py")
    assert (ended.code, ended.err) == (2, "")
    assert "Usage" in ended.out


async def test_what_only_the_catalogue_can_tell_is_refused_at_the_door(here: dict[str, str]) -> None:
    document = an_order_document(expected_total=4999)
    ended = await command(here, "starter.py", "order", "-", stdin=json.dumps(document).encode())
    assert (ended.code, ended.complaint) == (2, "stdin: expected_total: the total is now 50.00 EUR")


async def test_a_shop_without_orders_says_so(here: dict[str, str]) -> None:
    ended = await command(here, "starter.py", "list")
    assert (ended.code, ended.out) == (0, "no orders\n")


async def test_a_key_must_be_one(here: dict[str, str]) -> None:
    ended = await command(here, "starter.py", "order", "--line", "A=1", "--key", "")
    assert ended.code == 2
    assert ended.complaint.startswith("--key: ")


@pytest.mark.parametrize("words", ["starter.py status nope", "ops.py prove nope"])
async def test_an_unknown_order_is_one_line(here: dict[str, str], words: str) -> None:
    ended = await command(here, *words.split())
    assert ended.code == 1
    assert ended.complaint.startswith("there is no order with this id")


@pytest.mark.parametrize("words", ["starter.py order --watch", "starter.py list", "ops.py prove"])
async def test_without_servers_a_command_is_one_line_within_ten_seconds(nowhere: dict[str, str], words: str) -> None:
    ended, seconds = await _timed(nowhere, words)
    assert ended.code == 1
    assert "does not answer" in ended.complaint
    assert "secret" not in ended.complaint
    assert seconds < PROMISED_SECONDS


@pytest.mark.parametrize(("down", "named"), [("DATABASE_URL", "database"), ("TEMPORAL_ADDRESS", "Temporal")])
async def test_one_server_that_is_missing_is_named(
    here: dict[str, str], nowhere: dict[str, str], down: str, named: str
) -> None:
    ended, seconds = await _timed(here | {down: nowhere[down]}, "starter.py order --line A=1")
    assert ended.code == 1
    assert named in ended.complaint
    assert seconds < PROMISED_SECONDS


async def test_books_that_cannot_be_compared_are_no_proof(here: dict[str, str]) -> None:
    ended = await command(here, "ops.py", "prove")
    assert ended.code == 1
    assert ended.complaint.startswith("the gateway or the courier does not answer")


async def test_servers_that_take_the_connection_and_say_nothing_are_given_up(nowhere: dict[str, str]) -> None:
    async def say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    async with await asyncio.start_server(say_nothing, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        mute = nowhere | {
            "DATABASE_URL": f"postgresql://orders@127.0.0.1:{port}/orders",
            "TEMPORAL_ADDRESS": f"127.0.0.1:{port}",
        }
        ended, seconds = await _timed(mute, "starter.py order")
    assert ended.code == 1
    assert "does not answer" in ended.complaint
    assert seconds < PROMISED_SECONDS


async def test_a_missing_setting_is_named(tmp_path: Path) -> None:
    ended = await command(plain_environment(tmp_path), "starter.py", "list")
    assert ended.code == 2
    assert ended.complaint.startswith("DATABASE_URL is not set")


async def _timed(environment: dict[str, str], words: str) -> tuple[Ended, float]:
    began = time.monotonic()
    ended = await command(environment, *words.split())
    return ended, time.monotonic() - began
