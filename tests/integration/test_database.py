"""What our way into the database says when the database is not there, or no more."""

import pytest
from sqlalchemy import text

from adapters.database import Database
from domain.errors import DatabaseNotReached, DatabaseUnavailable
from runtime.ports import free_port


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
