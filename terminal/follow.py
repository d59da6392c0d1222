"""Follows one order to its end, or until nobody wants to wait any longer."""

import asyncio
import time

from rich.console import Console
from rich.live import Live

from adapters.database import Database
from adapters.orders import read_order, read_timeline
from domain.order import CLOSED_STATUSES, OrderStatus
from domain.views import OrderView, TimelineLine
from terminal.steps import latest, plain_line, steps_table

POLL_SECONDS = 0.2
#: The last step of a confirmed order comes a moment after its status.
LAST_STEP_SECONDS = 1.0

EXIT_CONFIRMED, EXIT_UNDONE, EXIT_NEEDS_REVIEW, EXIT_OPEN = 0, 3, 4, 5


def exit_code(status: OrderStatus) -> int:
    """What an order's status means to whoever waited for it."""
    if status is OrderStatus.CONFIRMED:
        return EXIT_CONFIRMED
    if status in CLOSED_STATUSES:
        return EXIT_UNDONE
    return EXIT_NEEDS_REVIEW if status is OrderStatus.NEEDS_REVIEW else EXIT_OPEN


def is_over(status: OrderStatus) -> bool:
    """Whether waiting any longer is pointless: the order is closed, or waits for a person."""
    return status in CLOSED_STATUSES or status is OrderStatus.NEEDS_REVIEW


async def follow(database: Database, order_id: str, console: Console, timeout_seconds: float | None) -> OrderView:
    """Shows each step as it happens; the order as it is at its end or after `timeout_seconds`."""
    began = time.monotonic()
    with _Progress(console) as progress:
        while True:
            view, lines = await _read(database, order_id)
            progress.show(view, lines)
            waited = time.monotonic() - began
            if is_over(view.status):
                return await _last_steps(database, view, progress)
            if timeout_seconds is not None and waited >= timeout_seconds:
                return view
            await asyncio.sleep(POLL_SECONDS)


def sentence(view: OrderView) -> str:
    """The end in one sentence."""
    seconds = (view.updated_at - view.created_at).total_seconds()
    if is_over(view.status):
        parked = "".join(f" {item.step} is parked ({item.kind}: {item.error})." for item in view.needs_review)
        reason = f", {view.reason}" if view.reason else ""
        return f"Order {view.order_id} ended {view.status}{reason} after {seconds:.1f} s. {view.message}{parked}"
    return f"Order {view.order_id} is still open: {view.status}. {view.message}"


async def _last_steps(database: Database, view: OrderView, progress: "_Progress") -> OrderView:
    deadline = time.monotonic() + LAST_STEP_SECONDS
    while view.status is OrderStatus.CONFIRMED and time.monotonic() < deadline:
        view, lines = await _read(database, view.order_id)
        progress.show(view, lines)
        if any(line.step == "commit_stock" for line in lines):
            break
        await asyncio.sleep(POLL_SECONDS / 4)
    return view


async def _read(database: Database, order_id: str) -> tuple[OrderView, list[TimelineLine]]:
    view, lines = await read_order(database, order_id), await read_timeline(database, order_id)
    assert view is not None, "orders are never deleted"
    assert lines is not None, "orders are never deleted"
    return view, lines


class _Progress:
    """A live table on a terminal; anywhere else one plain line a step as it happens."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live = Live(console=console, auto_refresh=False) if console.is_terminal else None
        self._told: set[tuple[str, str, str, int]] = set()

    def __enter__(self) -> "_Progress":
        if self._live:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live:
            self._live.stop()

    def show(self, view: OrderView, lines: list[TimelineLine]) -> None:
        """What is known now."""
        if self._live:
            title = f"order {view.order_id}: {view.status}"
            self._live.update(steps_table(latest(lines), view.created_at, title), refresh=True)
            return
        for line in lines:
            mark = (line.step, line.item, line.state, line.attempt)
            if mark not in self._told:
                self._told.add(mark)
                self._console.print(plain_line(line, view.created_at), markup=False)
