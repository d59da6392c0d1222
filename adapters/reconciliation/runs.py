"""Runs: where each begins to look, how it ended, and the report that is kept of it."""

from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

from sqlalchemy import Select, delete, func, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.tables import (
    reconciliation_findings,
    reconciliation_intents,
    reconciliation_orders,
    reconciliation_parcels,
    reconciliation_refunds,
    reconciliation_runs,
    shipments,
)
from domain.reconciliation import BeginRun, BegunRun, EndRun, Finding, Report, RunKind, RunResult

KEPT = timedelta(days=30)
#: The guard's first run looks back this far; each later one to where the two before it began.
FIRST_LOOK = timedelta(days=1)

_runs, _found = reconciliation_runs, reconciliation_findings
#: Gone when the run ends.
_STAGED = (reconciliation_orders, reconciliation_intents, reconciliation_refunds, reconciliation_parcels)


async def begin_run(connection: AsyncConnection, begin: BeginRun, time_zone: str) -> BegunRun:
    """Opens the run, or finds it open, and says where it begins to look. A night is complete once.

    Idempotent by the run's id: how far it looks is measured from its own first beginning.
    """
    now: datetime = (await connection.execute(select(func.clock_timestamp()))).scalar_one()
    night = now.astimezone(ZoneInfo(time_zone)).date() if begin.kind is RunKind.NIGHTLY else None
    if night and (done := await _complete_run(connection, night)):
        kept = await _result(connection, done)
        return BegunRun(run_id=done, since=now, grace_seconds=begin.grace_seconds, kept=kept)
    opened = insert(_runs).values(run_id=begin.run_id, kind=begin.kind.value, night=night, started_at=now)
    await connection.execute(opened.on_conflict_do_nothing(index_elements=["run_id"]))
    started = (await connection.execute(select(_runs.c.started_at).where(_runs.c.run_id == begin.run_id))).scalar_one()
    if night:
        since = started - timedelta(days=begin.days)
        after = await _newest_parcel_before(connection, since)
    else:
        since = await _where_the_last_but_one_began(connection, started, begin.grace_seconds)
        after = await _last_parcel(connection, started) or await _newest_parcel_before(connection, since)
    return BegunRun(run_id=begin.run_id, since=since, parcels_after=after, grace_seconds=begin.grace_seconds)


async def _complete_run(connection: AsyncConnection, night: date) -> str | None:
    query = select(_runs.c.run_id).where(_runs.c.night == night, _runs.c.complete).order_by(_runs.c.started_at.desc())
    return await connection.scalar(query.limit(1))


async def _where_the_last_but_one_began(
    connection: AsyncConnection, started: datetime, grace_seconds: float
) -> datetime:
    """So each closed order is looked at twice, at least the grace after its end, and what was missed is caught up."""
    before = _before(started).where(_runs.c.kind == RunKind.GUARD.value)
    began = list(await connection.scalars(before.with_only_columns(_runs.c.started_at).limit(2)))
    return began[1] - timedelta(seconds=grace_seconds) if len(began) == 2 else started - FIRST_LOOK


async def _last_parcel(connection: AsyncConnection, started: datetime) -> str | None:
    before = _before(started).where(_runs.c.last_parcel.is_not(None))
    return await connection.scalar(before.with_only_columns(_runs.c.last_parcel).limit(1))


def _before(started: datetime) -> Select[tuple[str]]:
    return (
        select(_runs.c.run_id).where(_runs.c.complete, _runs.c.started_at < started).order_by(_runs.c.started_at.desc())
    )


async def _newest_parcel_before(connection: AsyncConnection, since: datetime) -> str | None:
    query = select(shipments.c.shipment_id).where(shipments.c.created_at < since)
    return await connection.scalar(query.order_by(shipments.c.created_at.desc()).limit(1))


async def end_run(connection: AsyncConnection, end: EndRun) -> RunResult:
    """Closes the run, drops what it compared, and runs older than KEPT. Idempotent."""
    compared = select(func.count()).where(reconciliation_orders.c.run_id == end.run_id)
    values = {
        "finished_at": func.clock_timestamp(),
        "complete": end.complete,
        "last_parcel": end.cursor,
        "checked": compared.scalar_subquery(),
    }
    closing = update(_runs).where(_runs.c.run_id == end.run_id, _runs.c.finished_at.is_(None))
    await connection.execute(closing.values(values))
    for table in _STAGED:
        await connection.execute(delete(table).where(table.c.run_id == end.run_id))
    await connection.execute(delete(_runs).where(_runs.c.started_at < func.clock_timestamp() - KEPT))
    return await _result(connection, end.run_id)


async def _result(connection: AsyncConnection, run_id: str) -> RunResult:
    found = select(func.count()).where(_found.c.run_id == run_id).scalar_subquery()
    query = select(_runs.c.run_id, _runs.c.complete, _runs.c.checked, found.label("findings"))
    row = (await connection.execute(query.where(_runs.c.run_id == run_id))).mappings().one()
    return RunResult.model_validate(dict(row))


async def read_report(connection: AsyncConnection, run_id: str) -> Report | None:
    """One run with its findings, those that nothing was sent for first."""
    run = (await connection.execute(select(_runs).where(_runs.c.run_id == run_id))).mappings().one_or_none()
    if run is None:
        return None
    order = (_found.c.action.is_not(None), _found.c.kind, _found.c.subject)
    rows = await connection.execute(select(_found).where(_found.c.run_id == run_id).order_by(*order))
    return Report.model_validate({**run, "findings": [Finding.model_validate(dict(row)) for row in rows.mappings()]})


async def newest_run(connection: AsyncConnection, kind: RunKind, night: date | None = None) -> str | None:
    """The id of the newest finished run of a kind, or of one night; complete ones go before others of the night."""
    query = select(_runs.c.run_id).where(_runs.c.kind == kind.value, _runs.c.finished_at.is_not(None))
    if night is not None:
        query = query.where(_runs.c.night == night).order_by(_runs.c.complete.desc())
    return await connection.scalar(query.order_by(_runs.c.started_at.desc()).limit(1))
