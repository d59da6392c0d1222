"""The shop's own steps, as the worker runs them."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import insert
from temporalio.testing import ActivityEnvironment

from activities.orders import OrdersActivities
from adapters.database import Database
from adapters.orders import read_order, read_timeline
from adapters.steps import stamp
from adapters.tables import reservations
from domain.errors import ContradictionError, FraudServiceUnavailable, OrderNotFound, UnknownSku
from domain.keys import EffectKey, Step
from domain.messages import BegunEffect, OrderInput, ParkClosed, ParkedStep, StatusChange, StepInput
from domain.order import CancelReason, OrderStatus, ParkKind, RedriveAction, StepState
from domain.policy import OrderPolicy
from runtime.settings import Settings
from tests.builders import a_product, an_accepted_order, the_fixture_products


class FakeScorer:
    """Scores 12; down while `broken`."""

    def __init__(self) -> None:
        self.broken = False
        self.asked: list[tuple[str, str, int, str]] = []

    async def score(self, order_id: str, customer_id: str, amount: int, currency: str) -> int:
        self.asked.append((order_id, customer_id, amount, currency))
        if self.broken:
            raise FraudServiceUnavailable("down")
        return 12


@pytest.fixture
def scorer() -> FakeScorer:
    return FakeScorer()


@pytest.fixture
def activities(database: Database, scorer: FakeScorer) -> OrdersActivities:
    settings = Settings(payment_deadline_seconds=60, review_limits={"EUR": 40_000}, _env_file=None)
    return OrdersActivities(database, scorer, settings, OrderPolicy(first_wait_seconds=0.5))


async def run(step: Callable[[Any], Awaitable[Any]], argument: Any) -> Any:
    return await ActivityEnvironment().run(step, argument)


async def stamps(database: Database, order_id: str) -> list[tuple[str, str, str, str | None]]:
    timeline = await read_timeline(database, order_id)
    return [(line.step, line.item, line.state, line.reason) for line in timeline or []]


async def status_of(database: Database, order_id: str) -> OrderStatus:
    view = await read_order(database, order_id)
    assert view is not None
    return view.status


async def test_opening_an_order_freezes_its_amounts_and_its_policy(
    database: Database, activities: OrdersActivities
) -> None:
    await the_fixture_products(database)
    order_id = await an_accepted_order(database, points=500, store_credit=100)
    opened = await run(activities.open_order, OrderInput(order_id=order_id))
    assert (opened.customer_id, opened.currency, opened.total, opened.amount_due) == ("ada", "EUR", 5000, 4400)
    assert (opened.points, opened.store_credit) == (500, 100)
    assert (opened.status, opened.reason, opened.closed) == (OrderStatus.PENDING, None, False)
    assert opened.policy == OrderPolicy(first_wait_seconds=0.5, payment_deadline_seconds=60, review_limit_minor=40_000)
    again = await run(activities.open_order, OrderInput(order_id=order_id))
    assert again.model_copy(update={"begun": []}) == opened
    assert await stamps(database, order_id) == [("open_order", "", "done", None)]


async def test_a_currency_without_a_limit_is_always_reviewed(database: Database, activities: OrdersActivities) -> None:
    await a_product(database, "A", currency="SEK")
    order_id = await an_accepted_order(database, currency="SEK", lines=[{"sku": "A", "quantity": 1}])
    opened = await run(activities.open_order, OrderInput(order_id=order_id))
    assert opened.policy.review_limit_minor is None


async def test_an_order_with_an_unknown_sku_is_refused(database: Database, activities: OrdersActivities) -> None:
    order_id = await an_accepted_order(database)
    with pytest.raises(UnknownSku):
        await run(activities.open_order, OrderInput(order_id=order_id))
    assert await stamps(database, order_id) == [("open_order", "", "refused", "UNKNOWN_SKU")]
    rejection = StatusChange(order_id=order_id, status=OrderStatus.REJECTED, reason=CancelReason.UNKNOWN_SKU)
    await run(activities.record_status, rejection)
    opened = await run(activities.open_order, OrderInput(order_id=order_id))
    assert (opened.closed, opened.status, opened.reason) == (True, OrderStatus.REJECTED, CancelReason.UNKNOWN_SKU)


async def test_a_run_for_an_order_that_is_not_there_is_a_contradiction(activities: OrdersActivities) -> None:
    with pytest.raises(OrderNotFound):
        await run(activities.open_order, OrderInput(order_id="nobody"))
    with pytest.raises(OrderNotFound):
        await run(activities.screen_order, StepInput(order_id="nobody"))


async def test_a_confirmed_order_is_closed_once_its_stock_is_sold(
    database: Database, activities: OrdersActivities
) -> None:
    await the_fixture_products(database)
    order_id = await an_accepted_order(database, points=5000)
    confirmed = await run(activities.confirm_order, StepInput(order_id=order_id))
    assert confirmed.status is OrderStatus.CONFIRMED
    assert not (await run(activities.open_order, OrderInput(order_id=order_id))).closed
    async with database.begin() as connection:
        await stamp(connection, EffectKey(order_id, Step.COMMIT_STOCK), StepState.DONE)
    assert (await run(activities.open_order, OrderInput(order_id=order_id))).closed


async def test_opening_an_order_again_tells_what_its_earlier_run_may_have_begun(
    database: Database, activities: OrdersActivities
) -> None:
    await the_fixture_products(database)
    order_id = await an_accepted_order(database, points=500)
    assert (await run(activities.open_order, OrderInput(order_id=order_id))).begun == []
    taken = [
        BegunEffect(step=step)
        for step in (Step.RESERVE_STOCK, Step.BURN_POINTS, Step.APPLY_STORE_CREDIT, Step.AUTHORIZE_PAYMENT)
    ]
    assert (await run(activities.open_order, OrderInput(order_id=order_id))).begun == taken
    async with database.begin() as connection:
        for warehouse in ("north", "east"):
            row = {"order_id": order_id, "sku": "A", "warehouse": warehouse, "quantity": 1}
            await connection.execute(insert(reservations).values(row))
    assert (await run(activities.open_order, OrderInput(order_id=order_id))).begun == [
        *taken,
        BegunEffect(step=Step.BOOK_SHIPMENT, item="east"),
        BegunEffect(step=Step.BOOK_SHIPMENT, item="north"),
    ]


async def test_confirming_again_changes_nothing_and_an_undone_order_is_not_confirmed(
    database: Database, activities: OrdersActivities
) -> None:
    await the_fixture_products(database)
    sold, undone = await an_accepted_order(database), await an_accepted_order(database)
    for _ in range(2):
        assert (await run(activities.confirm_order, StepInput(order_id=sold))).status is OrderStatus.CONFIRMED
    assert await stamps(database, sold) == [("confirm_order", "", "done", None)]
    await run(activities.record_status, StatusChange(order_id=undone, status=OrderStatus.COMPENSATING))
    with pytest.raises(ContradictionError):
        await run(activities.confirm_order, StepInput(order_id=undone))
    assert await status_of(database, undone) is OrderStatus.COMPENSATING
    assert ("confirm_order", "", "done", None) not in await stamps(database, undone)


async def test_the_scorer_is_asked_about_the_total_and_its_word_is_stamped(
    database: Database, activities: OrdersActivities, scorer: FakeScorer
) -> None:
    await the_fixture_products(database)
    order_id = await an_accepted_order(database, customer_id="ada-score-12", points=500)
    assert (await run(activities.screen_order, StepInput(order_id=order_id))).score == 12
    assert scorer.asked == [(order_id, "ada-score-12", 5000, "EUR")]
    assert await stamps(database, order_id) == [("screen_order", "", "done", "score 12")]


async def test_a_scorer_that_is_down_leaves_no_stamp(
    database: Database, activities: OrdersActivities, scorer: FakeScorer
) -> None:
    await the_fixture_products(database)
    order_id = await an_accepted_order(database)
    scorer.broken = True
    with pytest.raises(FraudServiceUnavailable):
        await run(activities.screen_order, StepInput(order_id=order_id))
    assert await stamps(database, order_id) == []


async def test_the_timeline_tells_who_moved_the_order(database: Database, activities: OrdersActivities) -> None:
    await the_fixture_products(database)
    order_id = await an_accepted_order(database)
    cancel = StatusChange(
        order_id=order_id,
        status=OrderStatus.COMPENSATING,
        reason=CancelReason.CANCELLED_BY_CUSTOMER,
        actor="ada",
    )
    await run(activities.record_status, cancel)
    late = StatusChange(order_id=order_id, status=OrderStatus.AWAITING_PAYMENT)
    assert (await run(activities.record_status, late)).status is OrderStatus.COMPENSATING
    timeline = await read_timeline(database, order_id)
    assert timeline is not None
    (line,) = timeline
    assert (line.step, line.item, line.actor, line.reason) == (
        "record_status",
        "COMPENSATING",
        "ada",
        "CANCELLED_BY_CUSTOMER",
    )


async def test_a_step_is_parked_and_goes_on(database: Database, activities: OrdersActivities) -> None:
    await the_fixture_products(database)
    order_id = await an_accepted_order(database)
    since = datetime(2026, 11, 30, 12, tzinfo=UTC)
    parked = ParkedStep(
        order_id=order_id, step=Step.RESERVE_STOCK, kind=ParkKind.TECHNICAL, error="DatabaseUnavailable", since=since
    )
    await run(activities.park_step, parked)
    assert await status_of(database, order_id) is OrderStatus.NEEDS_REVIEW
    closed = ParkClosed(
        order_id=order_id, step=Step.RESERVE_STOCK, actor="system", action=RedriveAction.RETRY, since=since
    )
    await run(activities.close_park, closed)
    assert await status_of(database, order_id) is OrderStatus.PENDING
