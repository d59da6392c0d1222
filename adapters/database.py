"""The way into PostgreSQL: one engine a process (or party), transactions that tell our own errors.

Parameters never reach a log or a failure text (`hide_parameters`), a dead server is `DatabaseUnavailable`, and a
statement or a wait for a lock ends before the step that runs it is given up.
"""

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

from sqlalchemy import Table, text
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from domain.errors import DatabaseNotReached, DatabaseUnavailable

#: Below the 10 s that a step has.
STATEMENT_TIMEOUT_SECONDS = 8
CONNECT_TIMEOUT_SECONDS = 5
#: A transaction in which nobody says anything is ended: a client that vanished must not keep its locks. The longest
#: silence that is meant is a batch of events told to a slow Temporal (`events.delivery`, 20 s).
IDLE_TIMEOUT_SECONDS = 30
#: Connections that are kept open, and as many more while they are needed (docs/connections.md).
POOL_SIZE = 5

#: A host that vanished without a word is noticed by us within 25 s (10 s when it owes an answer to what was sent)…
_CLIENT = {
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}
#: … and by the server within 90 s, so that it does not count our connections for two hours.
_SERVER = {
    "statement_timeout": f"{STATEMENT_TIMEOUT_SECONDS}s",
    "idle_in_transaction_session_timeout": f"{IDLE_TIMEOUT_SECONDS}s",
    "tcp_keepalives_idle": "60",
    "tcp_keepalives_interval": "10",
    "tcp_keepalives_count": "3",
    "timezone": "UTC",
}


def connect_arguments(application: str) -> dict[str, str | int]:
    """How every connection of ours is opened, in libpq's words."""
    return {
        "connect_timeout": CONNECT_TIMEOUT_SECONDS,
        "application_name": application,
        "options": " ".join(f"-c {name}={value}" for name, value in _SERVER.items()),
        **_CLIENT,
    }


def sqlalchemy_url(url: str) -> str:
    """`postgresql://…` as people write it, with the driver that we use."""
    scheme, rest = url.split("://", 1)
    return f"postgresql+psycopg://{rest}" if scheme in {"postgresql", "postgres"} else url


class Database:
    """One pool of connections."""

    def __init__(self, url: str, *, application: str, pool_size: int = POOL_SIZE) -> None:
        self.url = sqlalchemy_url(url)
        self.engine: AsyncEngine = create_async_engine(
            self.url,
            hide_parameters=True,
            pool_size=pool_size,
            max_overflow=pool_size,
            pool_pre_ping=True,
            pool_timeout=CONNECT_TIMEOUT_SECONDS,
            connect_args=connect_arguments(application),
        )

    @asynccontextmanager
    async def begin(self) -> AsyncIterator[AsyncConnection]:
        """One transaction: committed at the end of the block, rolled back by any exception.

        Raises DatabaseNotReached when there is no connection to be had, and DatabaseUnavailable when it breaks later;
        whether a commit got through is then unknown.
        """
        unavailable: type[DatabaseUnavailable] = DatabaseNotReached
        try:
            async with self.engine.begin() as connection:
                unavailable = DatabaseUnavailable
                yield connection
        except (OperationalError, InterfaceError, PoolTimeoutError, TimeoutError, ConnectionError) as error:
            raise unavailable(type(error).__name__) from None
        except DBAPIError as error:
            if error.connection_invalidated:
                raise DatabaseUnavailable(type(error).__name__) from None
            raise

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[AsyncConnection]:
        """A read-only transaction in which every statement sees the same instant (repeatable read)."""
        async with self.begin() as connection:
            await connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            yield connection

    async def close(self) -> None:
        """Closes the pool."""
        await self.engine.dispose()


async def insert_rows(connection: AsyncConnection, table: Table, rows: Sequence[Mapping[str, object]]) -> None:
    """Rows by the thousand in one statement; those whose key is there already are left out."""
    if not rows:
        return
    columns = ", ".join(rows[0])
    statement = text(
        f"INSERT INTO {table.name} ({columns}) SELECT {columns} "  # noqa: S608  # names of our own tables
        f"FROM jsonb_populate_recordset(CAST(NULL AS {table.name}), CAST(:rows AS jsonb)) ON CONFLICT DO NOTHING"
    )
    await connection.execute(statement, {"rows": json.dumps(rows)})
