"""The way into PostgreSQL: one engine a process (or party), transactions that tell our own errors.

Parameters never reach a log or a failure text (`hide_parameters`), a dead server is `DatabaseUnavailable`, and a
statement or a wait for a lock ends before the step that runs it is given up.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from domain.errors import DatabaseNotReached, DatabaseUnavailable

#: Below the 10 s that a step has.
STATEMENT_TIMEOUT_SECONDS = 8
CONNECT_TIMEOUT_SECONDS = 5


def sqlalchemy_url(url: str) -> str:
    """`postgresql://…` as people write it, with the driver that we use."""
    scheme, rest = url.split("://", 1)
    return f"postgresql+psycopg://{rest}" if scheme in {"postgresql", "postgres"} else url


class Database:
    """One pool of connections."""

    def __init__(self, url: str, *, application: str, pool_size: int = 10) -> None:
        self.url = sqlalchemy_url(url)
        self.engine: AsyncEngine = create_async_engine(
            self.url,
            hide_parameters=True,
            pool_size=pool_size,
            max_overflow=pool_size,
            pool_pre_ping=True,
            pool_timeout=CONNECT_TIMEOUT_SECONDS,
            connect_args={
                "connect_timeout": CONNECT_TIMEOUT_SECONDS,
                "application_name": application,
                "options": f"-c statement_timeout={STATEMENT_TIMEOUT_SECONDS}s -c timezone=UTC",
            },
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
