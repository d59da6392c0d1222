"""Cases are mostly waits: those of a module are played side by side, and each test asks for its own."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager

import pytest

from tests.matrix.cases import all_cases, part_of, sample
from tests.matrix.dimensions import SLOW, Case
from tests.matrix.play import Player, stands_still
from tests.matrix.policies import DEADLINE_SECONDS

#: More orders at once only wait for each other on a machine with two cores; those that stand and wait cost nothing.
WORKING, WAITING = 4, 8


def cases_of(part: str) -> Callable[[Callable[..., object]], Callable[..., object]]:
    """Gives a test each case of one part. All that are not of the sample take minutes."""
    chosen = sorted((case for case in all_cases() if part_of(case) == part), key=lambda case: not stands_still(case))
    played = pytest.mark.parametrize(
        "case",
        [pytest.param(case, marks=() if case in sample() else pytest.mark.long) for case in chosen],
        ids=[str(case) for case in chosen],
    )
    return lambda test: pytest.mark.timeout(2 * DEADLINE_SECONDS)(played(test))


class Batch:
    """Tasks that play cases; a test waits for its own."""

    def __init__(self, tasks: dict[Case, asyncio.Task[None]]) -> None:
        self._tasks = tasks

    @classmethod
    @asynccontextmanager
    async def playing(cls, player: Player, cases: Iterable[Case]) -> AsyncIterator["Batch"]:
        """The cases are played from here on, in their order; those that nobody asks for are given up in the end.

        Orders that stand still come before all others: whatever starts beside them would stand still too.
        """
        working, waiting = asyncio.Semaphore(WORKING), asyncio.Semaphore(WAITING)
        still: list[asyncio.Task[None]] = []

        async def play(case: Case) -> None:
            if not stands_still(case) and still:
                await asyncio.wait(still)
            async with working if SLOW.isdisjoint({case.fault, case.undo_fault}) else waiting:
                await player.play(case)

        tasks = {case: asyncio.create_task(play(case)) for case in cases}
        still += [task for case, task in tasks.items() if stands_still(case)]
        try:
            yield cls(tasks)
        finally:
            for task in tasks.values():
                task.cancel()
            await asyncio.gather(*tasks.values(), return_exceptions=True)

    async def result(self, case: Case) -> None:
        """Until the case has been played. Raises what went wrong in it."""
        await self._tasks[case]
