"""Looks at the shop's own books each second, whatever is down, and tells how the drill goes."""

import asyncio
import time
from collections import Counter
from dataclasses import dataclass, field

from rich.console import Console
from sqlalchemy import func, select

from adapters.books.own import read_own_books
from adapters.database import Database
from adapters.tables import orders, review_items
from domain.books import LineKind
from domain.errors import DatabaseUnavailable, TransientError
from domain.order import CLOSED_STATUSES, SOLD_STATUSES, OrderStatus
from drill.evil import Striker

SAMPLE_SECONDS = 1.0
TELL_SECONDS = 5.0


@dataclass
class Watch:
    """What was seen. `broken`: each *always* line that did not hold, with its subject, once."""

    database: Database
    console: Console
    striker: Striker
    samples: int = 0
    unseen: int = 0
    broken: dict[tuple[str, str], str] = field(default_factory=dict)
    statuses: Counter[OrderStatus] = field(default_factory=Counter)
    parked: int = 0

    async def keep_watching(self) -> None:
        """Until it is cancelled."""
        began = told = time.monotonic()
        while True:
            try:
                await self.look()
            except (DatabaseUnavailable, TransientError):
                self.unseen += 1
            if time.monotonic() - told >= TELL_SECONDS:
                told = time.monotonic()
                self.tell(told - began)
            await asyncio.sleep(SAMPLE_SECONDS)

    async def look(self) -> None:
        """One sample. Raises DatabaseUnavailable."""
        books = await read_own_books(self.database)
        for line in books.lines:
            if line.kind is LineKind.ALWAYS:
                for failure in line.failures:
                    self.broken.setdefault((line.name, failure.subject), failure.detail)
        await self.count()
        self.samples += 1

    async def count(self) -> None:
        """Orders by status, and parked steps."""
        by_status = select(orders.c.status, func.count()).group_by(orders.c.status)
        parked = select(func.count(func.distinct(review_items.c.order_id))).where(review_items.c.closed_at.is_(None))
        async with self.database.snapshot() as connection:
            rows = (await connection.execute(by_status)).all()
            self.statuses = Counter({OrderStatus(status): number for status, number in rows})
            self.parked = int((await connection.execute(parked)).scalar_one())

    @property
    def open(self) -> int:
        """Orders that have not ended."""
        return sum(number for status, number in self.statuses.items() if status not in CLOSED_STATUSES)

    @property
    def confirmed(self) -> int:
        """Orders that were sold."""
        return sum(self.statuses[status] for status in SOLD_STATUSES)

    def tell(self, seconds: float) -> None:
        """One line of progress."""
        undone = sum(self.statuses.values()) - self.open - self.confirmed
        self.console.print(
            f"{seconds:5.0f} s  accepted {self.statuses.total()}, open {self.open}, confirmed {self.confirmed}, "
            f"undone {undone}, parked {self.parked}; strikes {sum(self.striker.done.values())}",
            markup=False,
        )
