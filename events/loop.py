"""The loop that relay and delivery share: work off what is due, then wait for a NOTIFY or a second, until stopped.

The notification is only a speed-up: a lost one, or a pooler that passes none on, costs at most the poll interval.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

import psycopg
import structlog
from psycopg import sql
from psycopg.conninfo import make_conninfo

from adapters.database import Database, connect_arguments
from adapters.temporal import TemporalUnavailable
from domain.errors import DatabaseUnavailable

POLL_SECONDS = 1.0
#: A turn that takes longer hangs, on a server that neither answers nor breaks off. One at its slowest has 20 s for
#: Temporal and 8 s for each of a handful of statements.
TURN_SECONDS = 60.0
#: A broken database or a bug is tried again after this long.
TROUBLE_SECONDS = 1.0
#: Calls to Temporal side by side. More only queue up in its shards.
SIDE_BY_SIDE = 16

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")

log = structlog.get_logger(__name__)


async def run_loop(
    name: str, database: Database, channel: str, turn: Callable[[], Awaitable[bool]], stop: asyncio.Event
) -> None:
    """Calls `turn` until `stop` is set; at once again while it returns True (there is more). Never raises."""
    woken = asyncio.Event()
    listener = asyncio.create_task(_listen(name, database, channel, woken), name=f"{name}-listener")
    stopping = asyncio.create_task(stop.wait(), name=f"{name}-stop")
    try:
        while not stop.is_set():
            # Cleared before the turn: what is notified while it runs makes the next one start at once.
            woken.clear()
            if await _guarded(name, turn):
                continue
            waking = asyncio.create_task(woken.wait())
            await asyncio.wait({waking, stopping}, timeout=POLL_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            waking.cancel()
    finally:
        for task in (listener, stopping):
            task.cancel()
        await asyncio.gather(listener, stopping, return_exceptions=True)


async def _guarded(name: str, turn: Callable[[], Awaitable[bool]]) -> bool:
    try:
        async with asyncio.timeout(TURN_SECONDS):
            return await turn()
    except (DatabaseUnavailable, TimeoutError) as error:
        log.warning(f"{name}_database_unavailable", error=str(error) or "no answer in time")
    except Exception:
        log.exception(f"{name}_turn_failed")
    await asyncio.sleep(TROUBLE_SECONDS)
    return False


async def _listen(name: str, database: Database, channel: str, woken: asyncio.Event) -> None:
    """Sets `woken` at each notification, over one connection of its own that is opened again when it breaks."""
    url = database.engine.url.set(drivername="postgresql").render_as_string(hide_password=False)
    address = make_conninfo(url, **connect_arguments(f"{name}-listener"))
    while True:
        try:
            connection = await psycopg.AsyncConnection.connect(address, autocommit=True)
            async with connection:
                await connection.execute(sql.SQL("LISTEN {}").format(sql.Identifier(channel)))
                # What was notified while nobody listened.
                woken.set()
                async for _ in connection.notifies():
                    woken.set()
        except (psycopg.Error, OSError) as error:
            log.warning(f"{name}_not_listening", error=type(error).__name__)
        await asyncio.sleep(TROUBLE_SECONDS)


async def side_by_side(
    items: Iterable[Item], call: Callable[[Item], Awaitable[Outcome]]
) -> list[tuple[Item, Outcome | Exception]]:
    """Calls all items, a bounded number at once, and pairs each with its outcome or the exception it ended in.

    Once one of them found Temporal unavailable, those that have not begun end the same way: the caller's transaction
    is not kept open while each of them waits in vain.
    """
    gate = asyncio.Semaphore(SIDE_BY_SIDE)
    outage: list[TemporalUnavailable] = []

    async def guarded(item: Item) -> tuple[Item, Outcome | Exception]:
        async with gate:
            if outage:
                return item, outage[0]
            try:
                return item, await call(item)
            except TemporalUnavailable as error:
                outage.append(error)
                return item, error
            except Exception as error:
                return item, error

    return list(await asyncio.gather(*(guarded(item) for item in items)))
