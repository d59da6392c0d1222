"""Activities called as a worker calls them, one attempt at a time or many at once."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from sqlalchemy import text
from temporalio.testing import ActivityEnvironment

from adapters.database import Database
from domain.messages import StepInput
from tests.polling import eventually

Answer = TypeVar("Answer")

_WAITING = text("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'")


async def attempt(step: Callable[[StepInput], Awaitable[Answer]], order_id: str) -> Answer:
    """One attempt."""
    answer: Answer = await ActivityEnvironment().run(step, StepInput(order_id=order_id))
    return answer


async def at_once(
    step: Callable[[StepInput], Awaitable[Answer]], order_ids: Sequence[str]
) -> list[Answer | BaseException]:
    """Many attempts at the same time: each one's answer, or the error that it raised."""
    attempts = (attempt(step, order_id) for order_id in order_ids)
    return await asyncio.gather(*attempts, return_exceptions=True)


async def until_somebody_waits(database: Database) -> None:
    """Until a transaction of this database waits for another one's lock."""

    async def look() -> bool:
        async with database.begin() as connection:
            return bool(await connection.scalar(_WAITING))

    await eventually(look, within_seconds=10)
