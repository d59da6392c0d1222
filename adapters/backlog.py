"""What is waiting, in numbers: for gauges and alerts."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import func, select

from adapters.database import Database
from adapters.inbox import count_unsettled, oldest_waiting_seconds
from adapters.outbox import oldest_submitted_seconds
from adapters.tables import orders, review_items
from domain.order import CLOSED_STATUSES, OrderStatus

#: Label values and a count.
Counts = Sequence[tuple[Sequence[str], int]]

OPEN_STATUSES = sorted(set(OrderStatus) - CLOSED_STATUSES)


@dataclass(frozen=True)
class Backlog:
    """Counts by their labels, ages in seconds (0: nothing waits). `orders` are those that have not ended."""

    orders: Counts
    review_items: Counts
    inbox: Counts
    oldest_submitted_seconds: float
    oldest_waiting_seconds: float


async def read_backlog(database: Database) -> Backlog:
    """All numbers from one snapshot, over what is open: what has ended is never counted. Raises DatabaseUnavailable."""
    queries = (
        select(orders.c.status, func.count()).where(orders.c.status.in_(OPEN_STATUSES)).group_by(orders.c.status),
        select(review_items.c.step, func.count())
        .where(review_items.c.closed_at.is_(None))
        .group_by(review_items.c.step),
        count_unsettled(),
    )
    async with database.snapshot() as connection:
        by_status, by_step, by_state = [
            [(tuple(row[:-1]), row[-1]) for row in (await connection.execute(query)).all()] for query in queries
        ]
        return Backlog(
            orders=by_status,
            review_items=by_step,
            inbox=by_state,
            oldest_submitted_seconds=await oldest_submitted_seconds(connection),
            oldest_waiting_seconds=await oldest_waiting_seconds(connection),
        )
