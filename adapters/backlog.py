"""What is waiting, in numbers: for gauges and alerts."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import func, select

from adapters.database import Database
from adapters.inbox import oldest_waiting_seconds
from adapters.outbox import oldest_unpublished_seconds
from adapters.tables import orders, review_items, webhook_inbox
from domain.events import EventType

#: Label values and a count.
Counts = Sequence[tuple[Sequence[str], int]]


@dataclass(frozen=True)
class Backlog:
    """Counts by their labels, ages in seconds (0: nothing waits)."""

    orders: Counts
    review_items: Counts
    inbox: Counts
    oldest_submitted_seconds: float
    oldest_waiting_seconds: float


async def read_backlog(database: Database) -> Backlog:
    """All numbers from one snapshot. Raises DatabaseUnavailable."""
    queries = (
        select(orders.c.status, func.count()).group_by(orders.c.status),
        select(review_items.c.step, func.count())
        .where(review_items.c.closed_at.is_(None))
        .group_by(review_items.c.step),
        select(webhook_inbox.c.source, webhook_inbox.c.state, func.count()).group_by(
            webhook_inbox.c.source, webhook_inbox.c.state
        ),
    )
    async with database.snapshot() as connection:
        by_status, by_step, by_state = [
            [(tuple(row[:-1]), row[-1]) for row in (await connection.execute(query)).all()] for query in queries
        ]
        return Backlog(
            orders=by_status,
            review_items=by_step,
            inbox=by_state,
            oldest_submitted_seconds=await oldest_unpublished_seconds(connection, [EventType.ORDER_SUBMITTED]),
            oldest_waiting_seconds=await oldest_waiting_seconds(connection),
        )
