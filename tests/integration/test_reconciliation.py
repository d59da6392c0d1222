"""The nightly reconciliation finds each kind of difference among thousands of orders, and nothing else."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import uuid4

import pytest
import pytest_asyncio
from sqlalchemy import select, text, update
from temporalio.testing import ActivityEnvironment

from activities.provider_books import CourierBooksActivities, GatewayBooksActivities
from activities.reconciliation import ReconciliationActivities
from adapters.courier import Courier
from adapters.database import Database
from adapters.inbox import IncomingEvent, store_event
from adapters.payment_gateway import PaymentGateway
from adapters.reconciliation.runs import newest_run, read_report
from adapters.steps import stamp
from adapters.tables import reconciliation_orders, reconciliation_runs
from benchmarks.filled import OldShop
from domain.keys import EffectKey, Step
from domain.messages import BegunEffect, OrderInput
from domain.order import StepState
from domain.reconciliation import (
    BeginRun,
    BegunRun,
    CompareRun,
    EndRun,
    FindingKind,
    Report,
    RunKind,
    RunState,
    SeenRun,
)
from runtime.settings import Settings
from simulators import Config, Simulators
from tests.builders import an_accepted_order
from tests.conftest import MakeDatabase

SOME, MANY = 300, 10_000


@dataclass
class Messages:
    """A Temporal that has forgotten all runs, and remembers what it is sent."""

    sent: list[tuple[str, str]] = field(default_factory=list)

    async def running(self) -> set[str]:
        return set()

    async def since(self, since: datetime) -> AsyncIterator[Sequence[SeenRun]]:
        for page in list[Sequence[SeenRun]]():
            yield page

    async def newest(self, order_ids: Sequence[str]) -> list[SeenRun]:
        return [SeenRun(order_id, RunState.MISSING) for order_id in order_ids]

    async def start(self, order_id: str, customer_id: str, total: int, currency: str) -> str:
        self.sent.append(("start", order_id))
        return "started"

    async def start_again(
        self, dead: OrderInput, customer_id: str, total: int, currency: str, *, completed: bool
    ) -> str:
        self.sent.append(("start again", dead.order_id))
        return "started again"

    async def settle_money(self, order_id: str, intent_id: str) -> str:
        self.sent.append(("settle", order_id))
        return "settles"

    async def give_back(self, order_id: str, undos: list[BegunEffect]) -> str:
        self.sent += [(undo.step, f"{order_id} {undo.item}".rstrip()) for undo in undos]
        return "gives back"


class Reconciler:
    """The activities of all three parties, as the workflow calls them."""

    def __init__(self, database: Database, simulators: Simulators, stack: AsyncExitStack) -> None:
        self.messages = Messages()
        self.shop = OldShop(database, simulators.gateway_url, simulators.courier_url)
        gateway = PaymentGateway("sk_test_of_the_tests", base_url=simulators.gateway_url, timeout_seconds=5)
        courier = Courier(simulators.courier_url, timeout_seconds=5)
        stack.push_async_callback(gateway.close)
        stack.push_async_callback(courier.close)
        self._orders = ReconciliationActivities(database, self.messages, Settings(_env_file=None))
        self._gateway = GatewayBooksActivities(database, gateway)
        self._courier = CourierBooksActivities(database, courier)
        self._run = ActivityEnvironment().run

    @property
    def database(self) -> Database:
        """Our own books."""
        return self.shop.database

    async def begin(self, kind: RunKind) -> BegunRun:
        """A run that looks at everything that stands still."""
        begin = BeginRun(kind=kind, grace_seconds=0, run_id=f"{kind}-{uuid4()}")
        begun: BegunRun = await self._run(self._orders.begin_run, begin)
        again: BegunRun = await self._run(self._orders.begin_run, begin)
        assert begun.kept or begun == again, "a second try begins where the first one did"
        return begun

    async def whole(self, kind: RunKind) -> Report:
        """A run from its beginning to its end."""
        self.messages.sent.clear()
        begun = await self.begin(kind)
        assert begun.kept is None
        await self._run(self._gateway.read_gateway_books, begun)
        parcels = await self._run(self._courier.read_courier_books, begun)
        await self._run(self._orders.look_at_runs, begun)
        await self._run(self._orders.compare_books, CompareRun(run_id=begun.run_id, grace_seconds=0))
        await self._run(self._orders.repair_findings, begun)
        await self.end(begun, complete=True, cursor=parcels.cursor)
        async with self.database.begin() as connection:
            report = await read_report(connection, begun.run_id)
        assert report is not None
        return report

    async def end(self, begun: BegunRun, *, complete: bool, cursor: str | None = None) -> None:
        """The end of a run."""
        await self._run(self._orders.end_run, EndRun(run_id=begun.run_id, complete=complete, cursor=cursor))

    async def change(self, statement: str, number: int) -> None:
        """Writes past all code of ours."""
        async with self.database.begin() as connection:
            await connection.execute(text(statement), {"order_id": self.shop.order_id(number)})


@asynccontextmanager
async def a_reconciler(database: Database, orders: int = 0) -> AsyncIterator[Reconciler]:
    """So many closed orders in three books that agree."""
    async with AsyncExitStack() as stack:
        simulators = await stack.enter_async_context(Simulators(Config()))
        found = Reconciler(database, simulators, stack)
        if orders:
            await found.shop.fill(orders)
        yield found


@pytest_asyncio.fixture(scope="module")
async def reconciler(make_database: MakeDatabase) -> AsyncIterator[Reconciler]:
    """A shop with some orders."""
    async with a_reconciler(await make_database(), SOME) as found:
        yield found


def told(report: Report, shop: OldShop) -> dict[int, FindingKind]:
    """What was found, by the order's number."""
    numbers = {shop.order_id(number): number for number in range(1, MANY + 1)}
    return {numbers[finding.subject]: finding.kind for finding in report.findings}


@pytest.mark.parametrize("orders", [SOME, pytest.param(MANY, marks=pytest.mark.long)])
async def test_each_seeded_difference_is_found_and_nothing_else(database: Database, orders: int) -> None:
    async with a_reconciler(database, orders) as reconciler:
        clean = await reconciler.whole(RunKind.NIGHTLY)
        assert (clean.findings, clean.checked, reconciler.messages.sent) == ([], orders, [])
        await another_night(reconciler)
        await seed_differences(reconciler)
        report = await reconciler.whole(RunKind.NIGHTLY)
        await assert_found(reconciler, report)


async def seed_differences(reconciler: Reconciler) -> None:
    """Two of each kind, in one of the three books."""
    shop = reconciler.shop

    def intent(number: int, status: str, amount: int = 5000) -> dict[str, object]:
        order_id = shop.order_id(number)
        return {"id": f"pi_{order_id}", "order_id": order_id, "amount": amount, "currency": "EUR", "status": status}

    def parcel(number: int, status: str) -> dict[str, object]:
        order_id = shop.order_id(number)
        return {"id": f"shp_{order_id}", "reference": f"{order_id}:main", "warehouse": "main", "status": status}

    # 7, 8 and 17, 18, 27 were undone; the others are confirmed.
    await shop.tell_gateway([intent(7, "succeeded"), intent(8, "requires_capture")])
    await shop.tell_gateway([intent(1, "canceled"), intent(2, "succeeded", 4000)])
    await shop.tell_courier([parcel(17, "booked"), parcel(3, "cancelled")])
    await reconciler.change("UPDATE reservations SET state = 'reserved' WHERE order_id = :order_id", 18)
    await reconciler.change("UPDATE reservations SET quantity = 2 WHERE order_id = :order_id AND sku = 'bulk-a'", 4)


async def assert_found(reconciler: Reconciler, report: Report) -> None:
    """Each one, by its kind, and what was sent to repair it."""
    shop = reconciler.shop
    assert told(report, shop) == {
        7: FindingKind.MONEY_KEPT,
        8: FindingKind.OPEN_HOLD,
        1: FindingKind.CAPTURE_DIFFERS,
        2: FindingKind.CAPTURE_DIFFERS,
        17: FindingKind.PARCEL_LEFT,
        3: FindingKind.PARCEL_MISSING,
        18: FindingKind.STOCK_DIFFERS,
        4: FindingKind.STOCK_DIFFERS,
    }
    # What a confirmed order has at the providers is for a person to decide; the rest is sent.
    assert sorted(reconciler.messages.sent) == sorted(
        [
            ("settle", shop.order_id(7)),
            ("settle", shop.order_id(8)),
            (Step.CANCEL_SHIPMENT, f"{shop.order_id(17)} main"),
            (Step.RELEASE_STOCK, shop.order_id(18)),
        ]
    )
    assert sorted(f.subject for f in report.findings if f.action is None) == [shop.order_id(n) for n in (1, 2, 3, 4)]


async def another_night(reconciler: Reconciler) -> None:
    """The runs so far are of the night before."""
    async with reconciler.database.begin() as connection:
        night = reconciliation_runs.c.night
        await connection.execute(update(reconciliation_runs).values(night=night - text("1")))


async def test_a_night_that_is_complete_is_not_done_again(reconciler: Reconciler) -> None:
    await another_night(reconciler)
    report = await reconciler.whole(RunKind.NIGHTLY)
    again = await reconciler.begin(RunKind.NIGHTLY)
    assert again.kept is not None
    assert (again.kept.run_id, again.kept.findings) == (report.run_id, len(report.findings))
    async with reconciler.database.begin() as connection:
        assert await newest_run(connection, RunKind.NIGHTLY) == report.run_id


async def test_a_night_that_could_not_read_everything_is_done_again(reconciler: Reconciler) -> None:
    await another_night(reconciler)
    begun = await reconciler.begin(RunKind.NIGHTLY)
    await ActivityEnvironment().run(
        reconciler._orders.end_run,
        EndRun(run_id=begun.run_id, complete=False),
    )
    assert (await reconciler.begin(RunKind.NIGHTLY)).kept is None


async def test_reports_are_kept_for_thirty_days(reconciler: Reconciler) -> None:
    old, young, now = [await reconciler.begin(RunKind.GUARD) for _ in range(3)]
    table = reconciliation_runs
    async with reconciler.database.begin() as connection:
        aged = update(table).where(table.c.run_id == old.run_id)
        await connection.execute(aged.values(started_at=table.c.started_at - timedelta(days=31)))
    for begun in (young, now):
        await reconciler.end(begun, complete=False)
    async with reconciler.database.begin() as connection:
        assert await read_report(connection, old.run_id) is None
        assert await read_report(connection, young.run_id) is not None


async def test_the_guard_looks_at_each_closed_order_twice_and_then_leaves_it_to_the_night(
    reconciler: Reconciler,
) -> None:
    for _ in range(2):
        await reconciler.whole(RunKind.GUARD)
    await reconciler.change("UPDATE orders SET updated_at = clock_timestamp() WHERE order_id = :order_id", 27)
    staged = [await looked_at(reconciler, reconciler.shop.order_id(27)) for _ in range(4)]
    assert staged == [True, True, False, False]


async def looked_at(reconciler: Reconciler, order_id: str) -> bool:
    """Whether the guard's next run compares this order."""
    begun = await reconciler.begin(RunKind.GUARD)
    table = reconciliation_orders
    async with reconciler.database.begin() as connection:
        query = select(table.c.order_id).where(table.c.run_id == begun.run_id, table.c.order_id == order_id)
        found = await connection.scalar(query)
    await reconciler.end(begun, complete=True)
    return found is not None


async def test_an_order_that_temporal_does_not_know_is_started_or_asked_about(database: Database) -> None:
    async with a_reconciler(database) as reconciler:
        never, once = await an_accepted_order(database), await an_accepted_order(database)
        async with database.begin() as connection:
            await stamp(connection, EffectKey(once, Step.OPEN_ORDER), StepState.DONE)
        report = await reconciler.whole(RunKind.GUARD)
    assert {finding.subject: finding.kind for finding in report.findings} == {
        never: FindingKind.NOT_STARTED,
        once: FindingKind.DEAD_RUN,
    }
    assert sorted(reconciler.messages.sent) == [("start", never), ("start again", once)]


async def test_what_is_past_its_deadline_or_was_never_passed_on_is_told(database: Database) -> None:
    async with a_reconciler(database) as reconciler:
        waiting, parked, late = [await an_accepted_order(database) for _ in range(3)]
        async with database.begin() as connection:
            await store_event(connection, IncomingEvent("stripe", "evt_1", "t", "pi_1", None))
            for statement in (
                "UPDATE orders SET updated_at = updated_at - interval '3 hours' WHERE order_id <> :waiting",
                "UPDATE webhook_inbox SET received_at = received_at - interval '6 minutes'",
                "UPDATE outbox SET created_at = created_at - interval '6 minutes' WHERE order_id = :waiting",
                "INSERT INTO review_items (order_id, step, kind, error) VALUES (:parked, 's', 'TECHNICAL', 'e')",
            ):
                names = {"waiting": waiting, "parked": parked}
                await connection.execute(
                    text(statement), {name: value for name, value in names.items() if f":{name}" in statement}
                )
        report = await reconciler.whole(RunKind.GUARD)
    found = {finding.kind: finding for finding in report.findings if finding.kind is not FindingKind.NOT_STARTED}
    assert found.keys() == {FindingKind.OVERDUE, FindingKind.WEBHOOKS_WAIT, FindingKind.STARTS_WAIT}
    assert (found[FindingKind.OVERDUE].subject, found[FindingKind.OVERDUE].action) == (late, None)
    assert found[FindingKind.WEBHOOKS_WAIT].action == found[FindingKind.STARTS_WAIT].action == "woken"
    assert found[FindingKind.STARTS_WAIT].detail.startswith("1 wait, the oldest for 36")
