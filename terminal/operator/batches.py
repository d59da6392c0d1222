"""Redriving many parked steps: few at first, more while it helps, and no further where it does not.

Each step is redriven at most once. What came back is set aside: nothing that is truly broken is hammered. The steps of
one cause stop together when a whole batch of them came to nothing; other causes go on.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from adapters.database import Database
from adapters.parked import Cause, ParkedItem, read_progress
from adapters.temporal import TemporalUnavailable
from adapters.updates import UpdateRefused

#: A batch grows to this many: a provider that has just come back is not met by a herd.
LARGEST_BATCH = 20
#: Updates that are on their way at once.
SIDE_BY_SIDE = 16
POLL_SECONDS = 0.3


class Outcome(StrEnum):
    """What became of one redriven step."""

    WENT_ON = "went on"
    CAME_BACK = "came back"
    REFUSED = "refused"
    NO_WORD = "no word yet"


@dataclass
class CauseResult:
    """What became of the steps of one cause. `left` were not touched; `words` are those of refusals."""

    cause: Cause
    outcomes: dict[ParkedItem, Outcome] = field(default_factory=dict)
    words: Counter[str] = field(default_factory=Counter)
    left: list[ParkedItem] = field(default_factory=list)

    def count(self, outcome: Outcome) -> int:
        """How many ended so."""
        return sum(one is outcome for one in self.outcomes.values())

    @property
    def moved_all(self) -> bool:
        """Nothing of it stands still any more."""
        return not self.left and self.count(Outcome.WENT_ON) == len(self.outcomes)


Send = Callable[[ParkedItem], Awaitable[None]]
#: Told after each batch.
Tell = Callable[[CauseResult], None]


class Redriver:
    """Sends one word to many parked steps. `first` is the size of the first batch of each cause.

    `wait_seconds`: how long a batch may take to show what became of it; what shows nothing by then may still move.
    """

    def __init__(self, database: Database, send: Send, tell: Tell, *, first: int, wait_seconds: float) -> None:
        self._database = database
        self._send = send
        self._tell = tell
        self._first = first
        self._wait_seconds = wait_seconds

    async def run(self, items: Iterable[ParkedItem]) -> list[CauseResult]:
        """One cause after the other. Raises DatabaseUnavailable."""
        causes: dict[Cause, list[ParkedItem]] = {}
        for item in items:
            causes.setdefault(item.cause, []).append(item)
        return [await self._run_cause(cause, them) for cause, them in causes.items()]

    async def _run_cause(self, cause: Cause, items: Sequence[ParkedItem]) -> CauseResult:
        result, size = CauseResult(cause), self._first
        result.left = sorted(items, key=_fair)
        while result.left:
            batch, result.left = result.left[:size], result.left[size:]
            outcomes = await self._batch(batch, result.words)
            result.outcomes |= outcomes
            self._tell(result)
            if Outcome.WENT_ON not in outcomes.values():
                break
            size = min(2 * size, LARGEST_BATCH)
        return result

    async def _batch(self, batch: Sequence[ParkedItem], words: Counter[str]) -> dict[ParkedItem, Outcome]:
        limit = asyncio.Semaphore(SIDE_BY_SIDE)

        async def send(item: ParkedItem) -> Outcome:
            async with limit:
                try:
                    await self._send(item)
                except UpdateRefused as refusal:
                    # One that moves by itself in this moment is watched like the others.
                    if refusal.kind != "already-decided":
                        words[str(refusal)] += 1
                        return Outcome.REFUSED
                except TemporalUnavailable:
                    # It may have arrived all the same.
                    return Outcome.NO_WORD
            return Outcome.NO_WORD

        sent = await asyncio.gather(*map(send, batch))
        outcomes = dict(zip(batch, sent, strict=True))
        deadline = asyncio.get_running_loop().time() + self._wait_seconds
        while waiting := [item for item, outcome in outcomes.items() if outcome is Outcome.NO_WORD]:
            outcomes |= await self._look(waiting)
            if asyncio.get_running_loop().time() >= deadline:
                break
            await asyncio.sleep(POLL_SECONDS)
        return outcomes

    async def _look(self, waiting: Sequence[ParkedItem]) -> dict[ParkedItem, Outcome]:
        found = {}
        for item, progress in (await read_progress(self._database, waiting)).items():
            if not progress.open:
                found[item] = Outcome.WENT_ON
            elif progress.redrives > item.redrives:
                found[item] = Outcome.CAME_BACK
        return found


def _fair(item: ParkedItem) -> tuple[int, str, str]:
    """Those that were redriven least, and of these any: an order's id is a hash, so a batch is a sample of all.

    Were the oldest the first, one bad hour would stop the command before it reached what is good.
    """
    return item.redrives, item.order_id, item.item
