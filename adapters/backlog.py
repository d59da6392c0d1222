"""What is waiting and what has happened, in numbers: for gauges, counters and alerts."""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Float, Select, case, cast, func, literal_column, select
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.database import Database
from adapters.inbox import count_unsettled, oldest_waiting_seconds
from adapters.outbox import oldest_submitted_seconds
from adapters.tables import holds, orders, reconciliation_findings, reconciliation_runs, refunds, review_items
from adapters.tallies import Counts, Totals, read_totals
from domain.order import CLOSED_STATUSES, OrderStatus

OPEN_STATUSES = sorted(set(OrderStatus) - CLOSED_STATUSES)


@dataclass(frozen=True)
class Backlog:
    """Counts by their labels, ages in seconds (0: nothing waits).

    `orders` are those that have not ended, by status. `parked` and `parked_ages` are by step and kind, `refunds` by
    status, `findings` by run, kind and who decides, of the last run of each kind; `runs` tells how long ago that ended.
    """

    orders: Counts
    parked: Counts
    parked_ages: Counts
    inbox: Counts
    refunds: Counts
    refund_ages: Counts
    holds: Counts
    findings: Counts
    runs: Counts
    oldest_submitted_seconds: float
    oldest_waiting_seconds: float
    totals: Totals


async def read_backlog(database: Database) -> Backlog:
    """All numbers from one snapshot, over what is open: what has ended is never counted. Raises DatabaseUnavailable."""
    async with database.snapshot() as connection:
        runs = await _last_runs(connection)
        return Backlog(
            orders=await _counts(
                connection,
                select(orders.c.status, func.count())
                .where(orders.c.status.in_(OPEN_STATUSES))
                .group_by(orders.c.status),
            ),
            parked=await _counts(connection, _parked(func.count())),
            parked_ages=await _counts(connection, _parked(_age(func.min(review_items.c.opened_at)))),
            inbox=await _counts(connection, count_unsettled()),
            refunds=await _counts(connection, _refunds(func.count())),
            refund_ages=await _counts(connection, _refunds(_age(func.min(refunds.c.created_at)))),
            holds=await _counts(
                connection,
                select(holds.c.party, func.count()).where(holds.c.released_at.is_(None)).group_by(holds.c.party),
            ),
            findings=await _counts(connection, _findings(list(runs))),
            runs=[((kind,), seconds) for kind, seconds in runs.values()],
            oldest_submitted_seconds=await oldest_submitted_seconds(connection),
            oldest_waiting_seconds=await oldest_waiting_seconds(connection),
            totals=await read_totals(connection),
        )


async def _counts(connection: AsyncConnection, query: Select[Any]) -> Counts:
    return [(tuple(row[:-1]), row[-1]) for row in (await connection.execute(query)).all()]


def _age(since: ColumnElement[Any]) -> ColumnElement[float]:
    return cast(func.extract("epoch", func.clock_timestamp() - since), Float)


def _parked(value: ColumnElement[Any]) -> Select[Any]:
    labels = (review_items.c.step, review_items.c.kind)
    return select(*labels, value).where(review_items.c.closed_at.is_(None)).group_by(*labels)


def _refunds(value: ColumnElement[Any]) -> Select[Any]:
    """In SQL's own words, as the partial index has it: even a prepared statement fits it."""
    on_their_way = refunds.c.status.in_([literal_column("'requested'"), literal_column("'pending'")])
    return select(refunds.c.status, value).where(on_their_way).group_by(refunds.c.status)


async def _last_runs(connection: AsyncConnection) -> dict[str, tuple[str, float]]:
    """The reconciliation's last finished run of each kind: kind and age in seconds, by its id."""
    found: dict[str, tuple[str, float]] = {}
    for kind in ("guard", "nightly"):
        query = (
            select(reconciliation_runs.c.run_id, _age(reconciliation_runs.c.finished_at))
            .where(reconciliation_runs.c.kind == kind, reconciliation_runs.c.finished_at.is_not(None))
            .order_by(reconciliation_runs.c.started_at.desc())
            .limit(1)
        )
        for row in await connection.execute(query):
            found[row[0]] = (kind, row[1])
    return found


def _findings(run_ids: list[str]) -> Select[Any]:
    decides = case((reconciliation_findings.c.action.is_(None), "person"), else_="shop")
    labels = (reconciliation_runs.c.kind, reconciliation_findings.c.kind, decides)
    return (
        select(*labels, func.count())
        .join_from(reconciliation_findings, reconciliation_runs)
        .where(reconciliation_findings.c.run_id == func.any(run_ids))
        .group_by(*labels)
    )
