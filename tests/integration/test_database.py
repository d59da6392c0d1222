"""What our way into the database says when the database is not there, or no more."""

import asyncio

import pytest
from sqlalchemy import text

from adapters.database import Database
from domain.errors import DatabaseNotReached, DatabaseUnavailable
from events.loop import run_loop
from runtime.ports import free_port
from tests.integration.wire import a_wire_to


async def end_other_connections(database: Database) -> None:
    """As a restart of the server does, past the pool that is tested."""
    other = Database(database.url, application="tests")
    async with other.begin() as connection:
        await connection.execute(
            text(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        )
    await other.close()


async def test_without_a_connection_nothing_was_begun() -> None:
    nowhere = Database(f"postgresql://orders:secret@127.0.0.1:{free_port()}/orders", application="tests")
    with pytest.raises(DatabaseNotReached, match=r"^OperationalError$"):
        async with nowhere.begin():
            raise AssertionError("nobody is there")


async def test_a_transaction_whose_connection_breaks_may_have_been_committed(database: Database) -> None:
    async def broken_off() -> None:
        async with database.begin() as connection:
            await end_other_connections(database)
            await connection.execute(text("SELECT 1"))

    with pytest.raises(DatabaseUnavailable) as caught:
        await broken_off()
    assert not isinstance(caught.value, DatabaseNotReached)


async def test_connections_that_broke_while_nobody_used_them_are_not_noticed(database: Database) -> None:
    for _ in range(2):
        async with database.begin() as connection:
            assert await connection.scalar(text("SELECT 1")) == 1
        await end_other_connections(database)


async def test_a_client_that_falls_silent_in_a_transaction_does_not_keep_its_locks(database: Database) -> None:
    async with database.begin() as connection:
        idle = await connection.scalar(text("SHOW idle_in_transaction_session_timeout"))
        statement = await connection.scalar(text("SHOW statement_timeout"))
        keepalive = await connection.scalar(text("SHOW tcp_keepalives_idle"))
    assert (idle, statement, keepalive) == ("30s", "8s", "60")


async def test_a_server_that_vanished_without_a_word_is_noticed_by_the_connections_themselves(
    database: Database,
) -> None:
    async with database.engine.connect() as connection:
        driver = (await connection.get_raw_connection()).driver_connection
        assert driver is not None
        parameters = driver.info.get_parameters()
    assert {name: parameters[name] for name in ("keepalives_idle", "tcp_user_timeout")} == {
        "keepalives_idle": "10",
        "tcp_user_timeout": "10000",
    }


async def test_a_relay_is_not_held_up_for_ever_by_a_database_that_neither_answers_nor_breaks_off(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("events.loop.TURN_SECONDS", 0.3)
    turns, stop = list[str](), asyncio.Event()
    async with a_wire_to(database) as (wire, far):

        async def turn() -> bool:
            async with far.begin() as connection:
                turns.append("begun")
                if len(turns) == 1:
                    wire.cut()
                    asyncio.get_running_loop().call_later(1, wire.mend)
                await connection.execute(text("SELECT 1"))
                turns.append("done")
                stop.set()
            return False

        async with asyncio.timeout(25):
            await run_loop("relay", far, "outbox", turn, stop)
    assert turns == ["begun", "begun", "done"]
