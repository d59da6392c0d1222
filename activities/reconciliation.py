"""The orders' part of the guard and of the nightly reconciliation: it opens, compares, repairs and ends a run.

It reads every book and writes none but the run's own. Repairs are messages to the workflow that owns what is wrong, so
two runs at once, or one that is tried again, repair once.
"""

from collections import defaultdict
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Protocol

from temporalio import activity

from activities.orders import Deadlines
from adapters.books.own import orders_to_run
from adapters.database import Database
from adapters.reconciliation import differences, findings, runs, staged
from adapters.reconciliation.findings import OrderFacts
from adapters.temporal import TemporalUnavailable
from domain.errors import NotServed
from domain.messages import BegunEffect, OrderInput
from domain.order import CLOSED_STATUSES, UNDONE_STATUSES, OrderStatus
from domain.reconciliation import (
    UNDO_OF_FINDING,
    BeginRun,
    BegunRun,
    CompareRun,
    EndRun,
    Finding,
    FindingKind,
    PartRead,
    RunResult,
    RunState,
    SeenRun,
)

#: Rows of one page; a heartbeat goes with each.
PAGE = 500

_RESTARTS = frozenset({FindingKind.NOT_STARTED, FindingKind.DEAD_RUN, FindingKind.LAGGING_ORDER})
_WAITING = frozenset({FindingKind.STARTS_WAIT, FindingKind.WEBHOOKS_WAIT})
_MONEY = frozenset({FindingKind.MONEY_KEPT, FindingKind.OPEN_HOLD, FindingKind.REFUND_UNSETTLED})


class Runs(Protocol):
    """Temporal, as far as a run looks at it and sends messages. Raises TemporalUnavailable."""

    async def running(self) -> set[str]: ...
    def since(self, since: datetime) -> AsyncIterator[Sequence[SeenRun]]: ...
    async def newest(self, order_ids: Sequence[str]) -> list[SeenRun]: ...
    async def start(self, order_id: str, customer_id: str, total: int, currency: str) -> str: ...
    async def start_again(
        self, dead: OrderInput, customer_id: str, total: int, currency: str, *, completed: bool
    ) -> str: ...
    async def settle_money(self, order_id: str, intent_id: str) -> str: ...
    async def give_back(self, order_id: str, undos: list[BegunEffect]) -> str: ...


class ReconciliationSettings(Deadlines, Protocol):
    """The settings that a run knows."""

    @property
    def reconcile_time_zone(self) -> str: ...


class ReconciliationActivities:
    """Served on the queue `orders`. Raises NotServed while Temporal does not answer."""

    def __init__(self, database: Database, runs: Runs, settings: ReconciliationSettings) -> None:
        self._database = database
        self._runs = runs
        self._settings = settings

    @activity.defn
    async def begin_run(self, begin: BeginRun) -> BegunRun:
        """Opens the run and keeps the closed orders that it will compare. Idempotent by the run's id."""
        async with self._database.begin() as connection:
            begun = await runs.begin_run(connection, begin, self._settings.reconcile_time_zone)
            if begun.kept is None:
                await staged.let_work_long(connection)
                await staged.stage_closed_orders(connection, begin.kind, begun)
        return begun

    @activity.defn
    async def look_at_runs(self, run: BegunRun) -> PartRead:
        """Finds orders without a live run, and runs that our books do not know, or know otherwise."""
        with _answering():
            found = await self._without_run(run)
            async for page in self._runs.since(run.since):
                activity.heartbeat()
                found += await self._unknown(page)
        async with self._database.begin() as connection:
            await findings.write_findings(connection, run.run_id, found)
        return PartRead()

    async def _without_run(self, run: BegunRun) -> list[Finding]:
        running = await self._runs.running()
        needed = await orders_to_run(self._database, run.grace_seconds)
        suspects = [order_id for order_id in needed if order_id not in running]
        found: list[SeenRun] = []
        for start in range(0, len(suspects), PAGE):
            activity.heartbeat()
            seen = await self._runs.newest(suspects[start : start + PAGE])
            found += [one for one in seen if one.state is not RunState.RUNNING]
        # The order may have ended while its run was looked at.
        still = set(await orders_to_run(self._database, run.grace_seconds)) if found else set()
        found = [one for one in found if one.order_id in still]
        async with self._database.begin() as connection:
            opened = await findings.ever_opened(connection, [one.order_id for one in found])
            rows = await findings.statuses(connection, [one.order_id for one in found])
        return [_dead(one, rows[one.order_id], opened=one.order_id in opened) for one in found]

    async def _unknown(self, page: Sequence[SeenRun]) -> list[Finding]:
        """The list lags behind: whatever differs is looked at by itself."""
        suspects = [run.order_id for run, status in await self._with_status(page) if _differ(run, status)]
        seen = await self._with_status(await self._runs.newest(suspects))
        return [_strange(run, status) for run, status in seen if _differ(run, status)]

    async def _with_status(self, seen: Sequence[SeenRun]) -> list[tuple[SeenRun, OrderStatus | None]]:
        async with self._database.begin() as connection:
            rows = await findings.statuses(connection, [run.order_id for run in seen])
        return [(run, rows.get(run.order_id)) for run in seen]

    @activity.defn
    async def compare_books(self, compare: CompareRun) -> None:
        """Keeps what differs between the books, and what waits too long. Idempotent: the newer detail stands."""
        deadlines = {
            OrderStatus.AWAITING_REVIEW: self._settings.review_deadline_seconds,
            OrderStatus.AWAITING_PAYMENT: self._settings.payment_deadline_seconds,
        }
        async with self._database.begin() as connection:
            await staged.let_work_long(connection)
            await staged.stage_named_orders(connection, compare.run_id)
            await staged.drop_changed_orders(connection, compare.run_id)
            await differences.write_differences(connection, compare.run_id, frozenset(compare.failed))
            found = await findings.overdue_orders(connection, deadlines)
            found += await findings.waiting_messages(connection)
            found += [
                Finding(subject=part.value, kind=FindingKind.NOT_COMPARED, detail=f"could not be read: {error}")
                for part, error in compare.failed.items()
            ]
            await findings.write_findings(connection, compare.run_id, found)

    @activity.defn
    async def repair_findings(self, run: BegunRun) -> None:
        """Sends the messages that repair what can be repaired without a person, and notes each.

        Idempotent by the ids of the workflows that they start: what works on it already is left alone.
        """
        last: Finding | None = None
        with _answering():
            while page := await self._unrepaired(run.run_id, last):
                undos: dict[str, list[BegunEffect]] = defaultdict(list)
                for finding in page:
                    activity.heartbeat()
                    if action := await self._repair(run.run_id, finding, undos):
                        await self._note(run.run_id, finding, action)
                for finding in page:
                    if finding.subject in undos and finding.kind in UNDO_OF_FINDING:
                        activity.heartbeat()
                        action = await self._runs.give_back(finding.subject, undos[finding.subject])
                        await self._note(run.run_id, finding, action)
                last = page[-1]

    async def _unrepaired(self, run_id: str, after: Finding | None) -> list[Finding]:
        async with self._database.begin() as connection:
            return await findings.unrepaired(connection, run_id, after, PAGE)

    async def _note(self, run_id: str, finding: Finding, action: str) -> None:
        async with self._database.begin() as connection:
            await findings.note_action(connection, run_id, finding, action)

    async def _repair(self, run_id: str, finding: Finding, undos: dict[str, list[BegunEffect]]) -> str | None:
        """What was sent; undos of one order are collected and sent together. None: only a person can decide."""
        order_id: str | None = finding.subject
        async with self._database.begin() as connection:
            if finding.kind in _WAITING:
                return await findings.wake(connection)
            if finding.kind is FindingKind.UNKNOWN_PAYMENT:
                order_id = await findings.order_of_intent(connection, run_id, finding.subject)
            order = await findings.order_facts(connection, order_id) if order_id else None
            if order and order.undone and finding.kind in UNDO_OF_FINDING:
                items = await findings.items_to_undo(connection, run_id, finding)
                undos[order.order_id] += [BegunEffect(step=UNDO_OF_FINDING[finding.kind], item=item) for item in items]
                return None
        if order and finding.kind in _RESTARTS:
            return await self._start(run_id, finding.kind, order)
        intent_id = _intent_to_settle(finding, order) if order else None
        return await self._runs.settle_money(order.order_id, intent_id) if order and intent_id else None

    async def _start(self, run_id: str, kind: FindingKind, order: OrderFacts) -> str:
        facts = (order.customer_id, order.total, order.currency)
        if kind is FindingKind.NOT_STARTED:
            return await self._runs.start(order.order_id, *facts)
        async with self._database.begin() as connection:
            warehouses = await findings.live_parcels(connection, run_id, order.order_id)
        dead = OrderInput(order_id=order.order_id, found_dead=True, warehouses=warehouses)
        return await self._runs.start_again(dead, *facts, completed=kind is FindingKind.LAGGING_ORDER)

    @activity.defn
    async def end_run(self, end: EndRun) -> RunResult:
        """Closes the run, and forgets what it compared and what is too old. Idempotent."""
        async with self._database.begin() as connection:
            await staged.let_work_long(connection)
            return await runs.end_run(connection, end)


@contextmanager
def _answering() -> Iterator[None]:
    """Temporal that gives no answer to our calls is waited for, as a database is."""
    try:
        yield
    except TemporalUnavailable as error:
        raise NotServed(str(error)) from None


def _intent_to_settle(finding: Finding, order: OrderFacts) -> str | None:
    """Money of a sold order is a person's business, but for a refund whose end nobody told."""
    if finding.kind is FindingKind.UNKNOWN_PAYMENT:
        return finding.subject if order.intent_id is None else None
    if finding.kind in _MONEY and (order.undone or finding.kind is FindingKind.REFUND_UNSETTLED):
        return order.intent_id
    return None


def _dead(run: SeenRun, status: OrderStatus, *, opened: bool) -> Finding:
    if run.state is RunState.MISSING and not opened:
        return Finding(subject=run.order_id, kind=FindingKind.NOT_STARTED, detail=f"{status}; was never started")
    if run.state is RunState.COMPLETED:
        told = run.told or "otherwise"
        return Finding(subject=run.order_id, kind=FindingKind.LAGGING_ORDER, detail=f"{status}; its run ended {told}")
    ended = run.ended or "gone"
    return Finding(subject=run.order_id, kind=FindingKind.DEAD_RUN, detail=f"{status}; its run is {ended}")


def _differ(run: SeenRun, status: OrderStatus | None) -> bool:
    """Our books do not know the order, or both have closed it, each in its own way.

    A run that was ended by hand has been seen to; an open order whose run has ended is found by itself.
    """
    if status is None:
        return run.state in {RunState.RUNNING, RunState.COMPLETED}
    if run.state is not RunState.COMPLETED or run.told not in CLOSED_STATUSES or status not in CLOSED_STATUSES:
        return False
    return (run.told in UNDONE_STATUSES) != (status in UNDONE_STATUSES)


def _strange(run: SeenRun, status: OrderStatus | None) -> Finding:
    ended = f"its run is {run.ended}, and told {run.told or 'nothing'}"
    if status is None:
        detail = f"not in our books; {ended}"
        return Finding(subject=run.order_id, kind=FindingKind.RUN_WITHOUT_ORDER, detail=detail)
    return Finding(subject=run.order_id, kind=FindingKind.RUN_DIFFERS, detail=f"{status}; {ended}")
