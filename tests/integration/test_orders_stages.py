"""The order's stage, its review items and its events, always in step with each other."""

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import insert, select

from adapters.database import Database
from adapters.orders import read_order, read_timeline
from adapters.reviews import change_stage, close_review, open_review
from adapters.steps import stamp
from adapters.tables import outbox, payments
from domain.errors import OrderNotFound
from domain.keys import EffectKey, Step
from domain.messages import ParkClosed, ParkedStep, StatusChange, StatusRecorded
from domain.order import CancelReason, OrderStatus, ParkKind, PaymentStatus, RedriveAction, StepState
from domain.views import OrderView
from tests.builders import an_accepted_order, the_fixture_products
from tests.integration.attempts import until_somebody_waits

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
ONE = datetime(2026, 11, 30, 13, tzinfo=UTC)


@pytest.fixture
async def order_id(database: Database) -> str:
    await the_fixture_products(database)
    return await an_accepted_order(database)


async def move(
    database: Database, order_id: str, status: OrderStatus, reason: CancelReason | None = None
) -> StatusRecorded:
    async with database.begin() as connection:
        return await change_stage(connection, StatusChange(order_id=order_id, status=status, reason=reason))


async def park(
    database: Database,
    order_id: str,
    step: Step = Step.AUTHORIZE_PAYMENT,
    item: str = "",
    *,
    kind: ParkKind = ParkKind.TECHNICAL,
    error: str = "PaymentServiceUnavailable",
    since: datetime = NOON,
) -> None:
    parked = ParkedStep(order_id=order_id, step=step, item=item, kind=kind, error=error, since=since)
    async with database.begin() as connection:
        await open_review(connection, parked)


async def unpark(
    database: Database,
    order_id: str,
    step: Step = Step.AUTHORIZE_PAYMENT,
    item: str = "",
    *,
    action: RedriveAction = RedriveAction.RETRY,
    since: datetime = NOON,
) -> None:
    closed = ParkClosed(
        order_id=order_id, step=step, item=item, actor="grace", action=action, reason="it is back", since=since
    )
    async with database.begin() as connection:
        await close_review(connection, closed)


async def seen(database: Database, order_id: str) -> OrderView:
    view = await read_order(database, order_id)
    assert view is not None
    return view


async def events(database: Database, order_id: str) -> list[dict[str, Any]]:
    async with database.snapshot() as connection:
        query = select(outbox).where(outbox.c.order_id == order_id, outbox.c.type != "OrderSubmitted")
        return [dict(row) for row in (await connection.execute(query.order_by(outbox.c.sequence))).mappings()]


async def test_a_confirmed_order_is_told_once_and_stays_confirmed(database: Database, order_id: str) -> None:
    for status in (OrderStatus.AWAITING_PAYMENT, OrderStatus.CONFIRMED, OrderStatus.CONFIRMED):
        assert (await move(database, order_id, status)).status is status
    for backward in (OrderStatus.AWAITING_PAYMENT, OrderStatus.COMPENSATING, OrderStatus.PENDING):
        assert await move(database, order_id, backward) == StatusRecorded(status=OrderStatus.CONFIRMED)
    (event,) = await events(database, order_id)
    assert (event["type"], event["event_id"]) == ("OrderConfirmed", f"{order_id}:OrderConfirmed")
    assert event["data"] == {
        "order_id": order_id,
        "customer_id": "ada",
        "currency": "EUR",
        "total": 5000,
        "points": 0,
        "store_credit": 0,
        "amount_due": 5000,
        "reason": None,
    }


async def test_a_cancelled_order_is_told_once_with_its_reason(database: Database, order_id: str) -> None:
    await move(database, order_id, OrderStatus.COMPENSATING, CancelReason.CARD_DECLINED)
    await move(database, order_id, OrderStatus.CANCELLED_COMPENSATED)
    stands = await move(database, order_id, OrderStatus.CANCELLED_COMPENSATED, CancelReason.OUT_OF_STOCK)
    assert stands == StatusRecorded(status=OrderStatus.CANCELLED_COMPENSATED, reason=CancelReason.CARD_DECLINED)
    (event,) = await events(database, order_id)
    assert (event["type"], event["data"]["reason"]) == ("OrderCancelled", "CARD_DECLINED")


async def test_a_rejected_order_is_told_once_with_its_reason(database: Database, order_id: str) -> None:
    await move(database, order_id, OrderStatus.REJECTED, CancelReason.UNKNOWN_SKU)
    (event,) = await events(database, order_id)
    assert (event["type"], event["data"]["reason"]) == ("OrderRejected", "UNKNOWN_SKU")


async def test_a_stage_cannot_be_jumped_over(database: Database, order_id: str) -> None:
    assert (await move(database, order_id, OrderStatus.CANCELLED_COMPENSATED)).status is OrderStatus.PENDING
    assert (await move(database, order_id, OrderStatus.NEEDS_REVIEW)).status is OrderStatus.PENDING
    assert await events(database, order_id) == []


async def test_of_a_confirmation_and_a_cancel_at_once_only_one_counts(database: Database, order_id: str) -> None:
    await asyncio.gather(
        *(move(database, order_id, status) for status in (OrderStatus.CONFIRMED, OrderStatus.COMPENSATING) * 5)
    )
    status = (await seen(database, order_id)).status
    assert len(await events(database, order_id)) == (1 if status is OrderStatus.CONFIRMED else 0)


async def test_a_cancel_waits_for_the_confirmation_that_is_under_way(database: Database, order_id: str) -> None:
    async with database.begin() as connection:
        await change_stage(connection, StatusChange(order_id=order_id, status=OrderStatus.CONFIRMED))
        cancel = asyncio.create_task(move(database, order_id, OrderStatus.COMPENSATING))
        await until_somebody_waits(database)
    assert (await cancel).status is OrderStatus.CONFIRMED


async def test_a_parked_step_covers_the_stage_and_gives_it_back(database: Database, order_id: str) -> None:
    await move(database, order_id, OrderStatus.AWAITING_PAYMENT)
    await park(database, order_id)
    view = await seen(database, order_id)
    assert view.status is OrderStatus.NEEDS_REVIEW
    (item,) = view.needs_review
    assert (item.step, item.kind, item.error) == ("authorize_payment", "TECHNICAL", "PaymentServiceUnavailable")
    await unpark(database, order_id)
    view = await seen(database, order_id)
    assert (view.status, view.needs_review) == (OrderStatus.AWAITING_PAYMENT, [])


async def test_parking_again_renews_the_item_instead_of_opening_another(database: Database, order_id: str) -> None:
    await park(database, order_id)
    since = (await seen(database, order_id)).needs_review[0].since
    await park(database, order_id, kind=ParkKind.DECISION, error="PaymentMismatch")
    (item,) = (await seen(database, order_id)).needs_review
    assert (item.kind, item.error, item.since) == (ParkKind.DECISION, "PaymentMismatch", since)


async def test_the_status_returns_only_when_the_last_item_is_closed(database: Database, order_id: str) -> None:
    await move(database, order_id, OrderStatus.COMPENSATING, CancelReason.OUT_OF_STOCK)
    await park(database, order_id, Step.CANCEL_SHIPMENT, "east")
    await park(database, order_id, Step.CANCEL_SHIPMENT, "west")
    await unpark(database, order_id, Step.CANCEL_SHIPMENT, "east")
    view = await seen(database, order_id)
    assert (view.status, [item.item for item in view.needs_review]) == (OrderStatus.NEEDS_REVIEW, ["west"])
    await unpark(database, order_id, Step.CANCEL_SHIPMENT, "west")
    await unpark(database, order_id, Step.CANCEL_SHIPMENT, "west")
    assert (await seen(database, order_id)).status is OrderStatus.COMPENSATING


async def test_a_park_that_arrives_after_it_was_closed_opens_nothing(database: Database, order_id: str) -> None:
    await park(database, order_id)
    await unpark(database, order_id)
    await park(database, order_id)
    assert (await seen(database, order_id)).needs_review == []
    assert (await seen(database, order_id)).status is OrderStatus.PENDING


async def test_closing_an_old_park_late_leaves_the_new_one_open(database: Database, order_id: str) -> None:
    await park(database, order_id)
    await unpark(database, order_id)
    await park(database, order_id, since=ONE)
    await unpark(database, order_id, since=NOON)
    assert len((await seen(database, order_id)).needs_review) == 1


async def test_a_skipped_step_is_stamped_as_waived_with_who_and_why(database: Database, order_id: str) -> None:
    await park(database, order_id, Step.RELEASE_PAYMENT)
    await unpark(database, order_id, Step.RELEASE_PAYMENT, action=RedriveAction.SKIP)
    timeline = await read_timeline(database, order_id)
    assert timeline is not None
    waived = [(line.step, line.actor, line.reason) for line in timeline if line.state == "waived"]
    assert waived == [("release_payment", "grace", "it is back")]


async def test_a_stage_changed_under_a_park_stays_covered_until_it_is_closed(database: Database, order_id: str) -> None:
    await park(database, order_id)
    assert (await move(database, order_id, OrderStatus.COMPENSATING)).status is OrderStatus.COMPENSATING
    assert (await seen(database, order_id)).status is OrderStatus.NEEDS_REVIEW
    await unpark(database, order_id)
    assert (await seen(database, order_id)).status is OrderStatus.COMPENSATING


async def test_a_confirmed_order_keeps_its_status_while_a_step_is_parked(database: Database, order_id: str) -> None:
    await park(database, order_id)
    await move(database, order_id, OrderStatus.CONFIRMED)
    await park(database, order_id, Step.COMMIT_STOCK)
    view = await seen(database, order_id)
    assert (view.status, len(view.needs_review)) == (OrderStatus.CONFIRMED, 2)
    await unpark(database, order_id)
    await unpark(database, order_id, Step.COMMIT_STOCK)
    view = await seen(database, order_id)
    assert (view.status, view.needs_review) == (OrderStatus.CONFIRMED, [])


async def test_the_timeline_tells_who_closed_what_and_why(database: Database, order_id: str) -> None:
    await park(database, order_id)
    await unpark(database, order_id)
    timeline = await read_timeline(database, order_id)
    assert timeline is not None
    assert [(line.step, line.state, line.actor, line.reason) for line in timeline] == [
        ("authorize_payment", "parked", "system", "TECHNICAL: PaymentServiceUnavailable"),
        ("authorize_payment", "review closed: retry", "grace", "it is back"),
    ]


async def test_a_step_that_was_tried_again_shows_the_time_of_its_newest_try(database: Database, order_id: str) -> None:
    payment, stock = EffectKey(order_id, Step.AUTHORIZE_PAYMENT), EffectKey(order_id, Step.RESERVE_STOCK)
    newest = []
    for key, attempt in ((payment, 1), (stock, 1), (payment, 2)):
        async with database.begin() as connection:
            newest.append(await stamp(connection, key, StepState.INTENDED, attempt=attempt))
    timeline = await read_timeline(database, order_id)
    assert timeline is not None
    assert [(line.step, line.attempt, line.at) for line in timeline] == [
        ("reserve_stock", 1, newest[1]),
        ("authorize_payment", 2, newest[2]),
    ]


async def test_a_tombstone_shows_since_when_it_stands(database: Database, order_id: str) -> None:
    key = EffectKey(order_id, Step.AUTHORIZE_PAYMENT)
    times = []
    for attempt in (1, 2):
        async with database.begin() as connection:
            times.append(await stamp(connection, key, StepState.UNDONE, attempt=attempt))
    (line,) = await read_timeline(database, order_id) or []
    assert (line.state, line.attempt) == ("undone", 2)
    assert line.at < times[1]


async def test_the_shopper_is_not_asked_to_act_once_the_order_is_undone(database: Database, order_id: str) -> None:
    async with database.begin() as connection:
        await connection.execute(
            insert(payments).values(
                order_id=order_id,
                intent_id=f"pi_{order_id}",
                status=PaymentStatus.REQUIRES_ACTION.value,
                currency="EUR",
                amount=100,
                next_action={"type": "use_stripe_sdk"},
            )
        )
    assert (await seen(database, order_id)).payment.next_action is not None
    await move(database, order_id, OrderStatus.COMPENSATING, CancelReason.CANCELLED_BY_CUSTOMER)
    assert (await seen(database, order_id)).payment.next_action is None
    await park(database, order_id, Step.RELEASE_PAYMENT)
    parked = await seen(database, order_id)
    assert (parked.status, parked.payment.next_action) == (OrderStatus.NEEDS_REVIEW, None)


async def test_an_order_that_is_not_there_has_no_stage_and_no_review(database: Database) -> None:
    with pytest.raises(OrderNotFound):
        await move(database, "nobody", OrderStatus.CONFIRMED)
    with pytest.raises(OrderNotFound):
        await park(database, "nobody")
