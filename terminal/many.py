"""Places many orders at a pace, follows them all, and sums up how they ended and how long it took."""

import asyncio
import time
from collections import Counter
from dataclasses import dataclass, field

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from adapters.orders import read_results
from domain.intake import OrderRequest
from domain.order import OrderStatus
from terminal.follow import exit_code, is_over
from terminal.shop import Shop

#: Orders that are being placed at the same time.
SIDE_BY_SIDE = 16
POLL_SECONDS = 0.2
#: Without a terminal, one line this often.
TELL_SECONDS = 2.0


@dataclass
class Batch:
    """What became of many orders. Times by the monotonic clock, in seconds."""

    count: int
    placed: dict[str, float] = field(default_factory=dict)
    accepting: list[float] = field(default_factory=list)
    not_started: int = 0
    status: dict[str, OrderStatus] = field(default_factory=dict)
    ended: dict[str, float] = field(default_factory=dict)

    def open(self) -> list[str]:
        """Ids of the orders that are still on their way."""
        return [order_id for order_id in self.placed if order_id not in self.ended]

    def exit_code(self) -> int:
        """The highest of all orders' codes."""
        return max(map(exit_code, self.status.values()), default=0)


async def place_many(
    shop: Shop,
    request: OrderRequest,
    key: str,
    *,
    count: int,
    rate: float | None,
    watch: bool,
    timeout_seconds: float | None,
    console: Console,
) -> Batch:
    """Places `count` orders under keys of their own, at most `rate` a second; with `watch` waits for their ends.

    Raises IntakeProblem when the order is refused, then nothing more is placed.
    """
    batch = Batch(count)
    with _Bars(console, batch, watch) as bars:
        telling = asyncio.create_task(bars.keep_telling())
        try:
            watching = asyncio.create_task(_watch(shop, batch, timeout_seconds)) if watch else None
            await _place_all(shop, request, key, batch, rate)
            if watching:
                await watching
        finally:
            telling.cancel()
    return batch


async def _place_all(shop: Shop, request: OrderRequest, key: str, batch: Batch, rate: float | None) -> None:
    limit, began = asyncio.Semaphore(SIDE_BY_SIDE), time.monotonic()

    async def place(number: int) -> None:
        async with limit:
            at = time.monotonic()
            accepted = await shop.place(request, f"{key}-{number}" if number else key)
            batch.accepting.append(time.monotonic() - at)
            batch.placed[accepted.order_id] = at
            batch.status[accepted.order_id] = accepted.status
            batch.not_started += not await shop.start(accepted.order_id)

    # The first one alone: what is wrong with one of them is wrong with all.
    await place(0)
    try:
        async with asyncio.TaskGroup() as group:
            for number in range(1, batch.count):
                if rate:
                    await asyncio.sleep(max(0.0, began + number / rate - time.monotonic()))
                group.create_task(place(number))
    except BaseExceptionGroup as troubles:
        raise troubles.exceptions[0] from None


async def _watch(shop: Shop, batch: Batch, timeout_seconds: float | None) -> None:
    began = time.monotonic()
    while len(batch.ended) < batch.count:
        if timeout_seconds is not None and time.monotonic() - began >= timeout_seconds:
            return
        results = await read_results(shop.database, batch.open())
        for order_id, result in results.items():
            batch.status[order_id] = result.status
            if is_over(result.status):
                batch.ended[order_id] = time.monotonic()
        await asyncio.sleep(POLL_SECONDS)


def summary(batch: Batch, *, watch: bool) -> Table:
    """How many ended how, and the percentiles of the time it took."""
    table = Table("what", "orders", box=None)
    for status, number in sorted(Counter(batch.status.values()).items()):
        table.add_row(status.value, str(number))
    table.add_row("accepted", str(len(batch.placed)), end_section=True)
    table.add_row("accepted after", _percentiles(batch.accepting))
    if watch:
        table.add_row("ended after", _percentiles([at - batch.placed[one] for one, at in batch.ended.items()]))
    return table


def _percentiles(seconds: list[float]) -> str:
    if not seconds:
        return "–"
    ranked = sorted(seconds)
    return "  ".join(
        f"p{part} {ranked[min(len(ranked) * part // 100, len(ranked) - 1)]:.3f} s" for part in (50, 95, 99)
    )


class _Bars:
    """Bars on a terminal; anywhere else a line now and then."""

    def __init__(self, console: Console, batch: Batch, watch: bool) -> None:
        self._console, self._batch, self._watch = console, batch, watch
        columns = TextColumn("{task.description:<10}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
        self._progress = Progress(*columns, console=console) if console.is_terminal else None

    def __enter__(self) -> "_Bars":
        if self._progress:
            self._accepted = self._progress.add_task("accepted", total=self._batch.count)
            self._ended = self._progress.add_task("ended", total=self._batch.count, visible=self._watch)
            self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._tell()
        if self._progress:
            self._progress.stop()

    async def keep_telling(self) -> None:
        """Until it is cancelled."""
        while True:
            await asyncio.sleep(POLL_SECONDS if self._progress else TELL_SECONDS)
            self._tell()

    def _tell(self) -> None:
        placed, ended = len(self._batch.placed), len(self._batch.ended)
        if self._progress:
            self._progress.update(self._accepted, completed=placed)
            self._progress.update(self._ended, completed=ended)
        else:
            ends = f", ended {ended}" if self._watch else ""
            self._console.print(f"accepted {placed}{ends} of {self._batch.count}")
