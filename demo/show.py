"""What the demo shows: progress while it runs, and what was expected and what came."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress

from rich.console import Console
from rich.live import Live
from rich.table import Table

from demo.cases import CURRENCY, POINTS, Case
from demo.run import Running
from domain.money import format_minor
from domain.order import CancelReason, OrderStatus
from terminal.steps import plain_line, state_text, step_name

REFRESH_SECONDS = 0.2


class Progress:
    """A live table on a terminal; anywhere else one line a step as it happens."""

    def __init__(self, console: Console, orders: Sequence[Running]) -> None:
        self._console, self._orders = console, orders
        self._told: set[tuple[str, ...]] = set()

    async def keep_showing(self) -> None:
        """Until it is cancelled, with a last look then."""
        if not self._console.is_terminal:
            with suppress(asyncio.CancelledError):
                while True:
                    self._tell()
                    await asyncio.sleep(REFRESH_SECONDS)
            self._tell()
            return
        with Live(self._table(), console=self._console, auto_refresh=False) as live:
            with suppress(asyncio.CancelledError):
                while True:
                    live.update(self._table(), refresh=True)
                    await asyncio.sleep(REFRESH_SECONDS)
            live.update(self._table(), refresh=True)

    def _table(self) -> Table:
        table = Table("order", "what happens", "status", "steps", "last step", box=None)
        for one in self._orders:
            last = one.timeline[-1] if one.timeline else None
            step = f"{step_name(last)} {state_text(last)}" if last else ""
            status = one.view.status.value if one.view else ""
            table.add_row(one.case.name, one.case.story, status, str(len(one.timeline)), step)
        return table

    def _tell(self) -> None:
        for one in self._orders:
            for line in one.timeline:
                mark = (one.order_id, line.step, line.item, line.state, str(line.attempt))
                if mark not in self._told and one.view is not None:
                    self._told.add(mark)
                    told = plain_line(line, one.view.created_at)
                    self._console.print(f"{one.case.name:<13}{told}", markup=False)


def outcome_table(orders: Sequence[Running]) -> Table:
    """Expected and actual ends, money in the gateway's own book, stock and points before and after."""
    table = Table("order", box=None, title="how they ended", title_justify="left", title_style="bold")
    for heading in ("expected", "actual", "gateway keeps", "and holds", "parcels", "stock", "points", ""):
        table.add_column(heading, overflow="fold")
    for one in orders:
        view = one.view
        table.add_row(
            one.case.name,
            _end(one.case.status, one.case.reason),
            _end(view.status, view.reason) if view else "no answer",
            _pair(one.kept, one.case),
            format_minor(one.held, CURRENCY),
            str(one.parcels),
            f"{one.stock_before} → {one.stock_after}",
            f"{POINTS} → {one.points_after}",
            "[bold red]✗[/]" if one.differences() else "[green]✓[/]",
        )
    return table


def _end(status: OrderStatus, reason: CancelReason | None) -> str:
    return f"{status.value}\n{reason.value}" if reason else status.value


def _pair(kept: int, case: Case) -> str:
    told = format_minor(kept, CURRENCY)
    return told if kept == case.kept else f"{told}, not {format_minor(case.kept, CURRENCY)}"
