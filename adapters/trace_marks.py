"""Which orders' traces are kept whole, told from process to process.

Told by NOTIFY, at the commit of what makes the order worth it. A process that does not listen in that moment misses it.
"""

import asyncio
from collections.abc import Callable

import psycopg
import structlog
from psycopg import sql
from psycopg.conninfo import make_conninfo
from sqlalchemy import func, make_url, select
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.database import connect_arguments
from adapters.tracing import is_on

#: The payload is the order's id.
CHANNEL = "traces"
#: A broken connection is opened again after this long.
TROUBLE_SECONDS = 1.0

log = structlog.get_logger(__name__)


async def keep_trace(connection: AsyncConnection, order_id: str) -> None:
    """Has all processes keep the order's whole trace, whatever share of traces is kept; while tracing is on."""
    if is_on():
        await connection.execute(select(func.pg_notify(CHANNEL, order_id)))


async def listen(database_url: str, keep: Callable[[str], None]) -> None:
    """Calls `keep` with the id of each order that is marked, until it is cancelled, over a connection of its own."""
    url = make_url(database_url).set(drivername="postgresql").render_as_string(hide_password=False)
    while True:
        try:
            connection = await psycopg.AsyncConnection.connect(
                make_conninfo(url, **connect_arguments("traces")), autocommit=True
            )
            async with connection:
                await connection.execute(sql.SQL("LISTEN {}").format(sql.Identifier(CHANNEL)))
                async for notice in connection.notifies():
                    keep(notice.payload)
        except (psycopg.Error, OSError) as error:
            log.warning("traces_not_listening", error=type(error).__name__)
        await asyncio.sleep(TROUBLE_SECONDS)
