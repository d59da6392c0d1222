"""Activities called as a worker calls them, one attempt at a time or many at once."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from temporalio.testing import ActivityEnvironment

from domain.messages import StepInput

Answer = TypeVar("Answer")


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
