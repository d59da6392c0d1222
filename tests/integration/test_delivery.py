"""Delivery: an event wakes the saga it is about, and nobody else's."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest
from sqlalchemy import func, insert, select, update
from temporalio.client import Client

from adapters.database import Database
from adapters.inbox import KEPT, IncomingEvent, claim_waiting, prune_inbox, store_event
from adapters.tables import payments, shipments, webhook_inbox
from domain.order import OrderStatus
from events.delivery import Delivery, deliver_waiting
from events.relay import start_order
from tests.builders import an_accepted_order, unique
from tests.integration.sagas import Saga, a_closed_order, a_running_order, inbox, move, seen
from tests.polling import eventually
from workflows.names import money_workflow_id, order_workflow_id

CANCELLED = (OrderStatus.COMPENSATING, OrderStatus.CANCELLED_COMPENSATED)
CONFIRMED = (OrderStatus.AWAITING_PAYMENT, OrderStatus.CONFIRMED)


async def an_event(
    database: Database,
    object_id: str | None,
    order_id: str | None = None,
    *,
    source: str = "stripe",
    type_: str = "payment_intent.amount_capturable_updated",
) -> str:
    """The id of an event that waits in the inbox."""
    event_id = unique("evt")
    async with database.begin() as connection:
        assert await store_event(connection, IncomingEvent(source, event_id, type_, object_id, order_id))
    return event_id


async def an_intent(database: Database, order_id: str, *, captured: int = 0) -> str:
    """The id of the order's stored intent."""
    intent_id = unique("pi")
    row = {"order_id": order_id, "intent_id": intent_id, "currency": "EUR", "amount": 5000}
    async with database.begin() as connection:
        await connection.execute(insert(payments).values(row | {"authorized": captured, "captured": captured}))
    return intent_id


async def grow_old(database: Database, age: timedelta) -> None:
    """Everything in the inbox came this much earlier, and is due."""
    async with database.begin() as connection:
        await connection.execute(
            update(webhook_inbox).values(
                received_at=webhook_inbox.c.received_at - age,
                settled_at=webhook_inbox.c.settled_at - age,
                next_attempt_at=func.clock_timestamp(),
            )
        )


@asynccontextmanager
async def delivering(database: Database, client: Client, number: int = 1) -> AsyncIterator[None]:
    stop = asyncio.Event()
    tasks = [asyncio.create_task(Delivery(database, client).run(stop)) for _ in range(number)]
    try:
        yield
    finally:
        stop.set()
        async with asyncio.timeout(10):
            await asyncio.gather(*tasks)


async def until_seen(saga: Saga, event_id: str) -> None:
    async def arrived() -> bool:
        return event_id in await seen(saga)

    await eventually(arrived)


async def test_an_event_reaches_the_open_saga_by_order_or_by_intent(database: Database, sagas: Client) -> None:
    order_id, saga = await a_running_order(database, sagas)
    early = await an_event(database, "pi_not_stored_yet", order_id)
    assert await deliver_waiting(database, sagas) == 1
    intent = await an_intent(database, order_id)
    named = await an_event(database, intent, order_id)
    by_intent = await an_event(database, intent, type_="charge.refunded")
    assert await deliver_waiting(database, sagas) == 2
    assert sorted(await seen(saga)) == sorted([early, named, by_intent])
    assert set((await inbox(database)).values()) == {"delivered"}


async def test_an_event_arrives_at_once_when_delivery_listens(database: Database, sagas: Client) -> None:
    order_id, saga = await a_running_order(database, sagas)
    async with delivering(database, sagas):
        await until_seen(saga, await an_event(database, "pi_1", order_id))
        began = time.monotonic()
        for _ in range(3):
            await until_seen(saga, await an_event(database, "pi_1", order_id))
        # Three turns of polling would take three seconds.
        assert time.monotonic() - began < 2


async def test_an_event_before_the_start_waits_for_it(database: Database, sagas: Client) -> None:
    """S16: nobody redelivers it."""
    order_id = await an_accepted_order(database)
    event_id = await an_event(database, "pi_1", order_id)
    async with delivering(database, sagas):

        async def tried() -> bool:
            async with database.snapshot() as connection:
                return bool((await connection.execute(select(webhook_inbox.c.attempts))).scalar_one())

        await eventually(tried)
        assert await inbox(database) == {event_id: "waiting"}
        await start_order(sagas, order_id, customer_id="ada", total=5000, currency="EUR")
        await until_seen(sagas.get_workflow_handle(order_workflow_id(order_id)), event_id)


async def test_two_deliveries_never_hold_the_same_event(database: Database) -> None:
    event_ids = {await an_event(database, "pi_1", "nobody") for _ in range(4)}
    async with database.begin() as one, database.begin() as other:
        mine = {event.event_id for event in await claim_waiting(one, 3)}
        theirs = {event.event_id for event in await claim_waiting(other, 3)}
    assert len(mine) == 3
    assert mine | theirs == event_ids
    assert not mine & theirs


async def test_late_money_gets_a_workflow_of_its_own(database: Database, sagas: Client) -> None:
    """S20: once for events that come together, again for one that comes days later."""
    order_id = await a_closed_order(database, sagas, *CANCELLED)
    intent = await an_intent(database, order_id)
    money = sagas.get_workflow_handle(money_workflow_id(intent))
    for _ in range(2):
        event_id = await an_event(database, intent, order_id, type_="payment_intent.succeeded")
        await deliver_waiting(database, sagas)
        assert await money.result() == [order_id, intent, event_id]
    assert set((await inbox(database)).values()) == {"delivered"}
    order = await sagas.get_workflow_handle(order_workflow_id(order_id)).describe()
    assert order.close_time is not None, "the order's own saga is not started again"


async def test_a_dispute_after_confirmation_is_late_money(database: Database, sagas: Client) -> None:
    order_id = await a_closed_order(database, sagas, *CONFIRMED)
    intent = await an_intent(database, order_id, captured=5000)
    event_id = await an_event(database, intent, type_="charge.dispute.created")
    await deliver_waiting(database, sagas)
    assert await sagas.get_workflow_handle(money_workflow_id(intent)).result() == [order_id, intent, event_id]


async def test_the_news_that_a_captured_payment_went_well_is_no_news(database: Database, sagas: Client) -> None:
    order_id = await a_closed_order(database, sagas, *CONFIRMED)
    intent = await an_intent(database, order_id, captured=5000)
    event_id = await an_event(database, intent, order_id, type_="payment_intent.succeeded")
    await deliver_waiting(database, sagas)
    assert await inbox(database) == {event_id: "ignored"}


async def test_an_open_order_without_a_run_keeps_its_events(database: Database, sagas: Client) -> None:
    """A terminated run: its next one must see the event, and nobody else may touch the money."""
    order_id, saga = await a_running_order(database, sagas)
    await saga.terminate()
    event_id = await an_event(database, await an_intent(database, order_id), order_id)
    await deliver_waiting(database, sagas)
    assert await inbox(database) == {event_id: "waiting"}
    await move(database, order_id, *CANCELLED)
    await grow_old(database, timedelta(0))
    await deliver_waiting(database, sagas)
    assert await inbox(database) == {event_id: "delivered"}


async def test_somebody_elses_intent_never_touches_an_order(database: Database, sagas: Client) -> None:
    order_id, saga = await a_running_order(database, sagas)
    other_id, other = await a_running_order(database, sagas)
    intent = await an_intent(database, order_id)
    await an_event(database, "pi_other", order_id)
    await an_event(database, intent, other_id)
    assert await deliver_waiting(database, sagas) == 2
    assert (await seen(saga), await seen(other)) == ([], [])
    assert set((await inbox(database)).values()) == {"ignored"}


async def test_a_thousand_events_of_nobody_do_not_keep_the_others(database: Database, sagas: Client) -> None:
    """S27."""
    known = [await a_running_order(database, sagas) for _ in range(10)]
    async with database.begin() as connection:
        for number in range(1000):
            event = IncomingEvent("stripe", unique("evt"), "payment_intent.succeeded", unique("pi"), unique("nobody"))
            await store_event(connection, event)
            if number % 100 == 99:
                order_id = known[number // 100][0]
                await store_event(connection, IncomingEvent("stripe", f"own-{order_id}", "x", unique("pi"), order_id))
    async with delivering(database, sagas, number=2):
        for order_id, saga in known:
            await until_seen(saga, f"own-{order_id}")

        async def settled() -> bool:
            return "waiting" not in (await inbox(database)).values()

        await eventually(settled, within_seconds=20)
    states = list((await inbox(database)).values())
    assert (states.count("set_aside"), states.count("delivered")) == (1000, 10)


async def test_an_event_that_names_no_order_may_come_before_its_intent_is_stored(
    database: Database, sagas: Client
) -> None:
    order_id, saga = await a_running_order(database, sagas)
    first, second = await an_event(database, "pi_early"), await an_event(database, "pi_nobody")
    await deliver_waiting(database, sagas)
    assert set((await inbox(database)).values()) == {"waiting"}
    async with database.begin() as connection:
        row = {"order_id": order_id, "intent_id": "pi_early", "currency": "EUR", "amount": 1}
        await connection.execute(insert(payments).values(row))
    await grow_old(database, timedelta(seconds=61))
    await deliver_waiting(database, sagas)
    assert await inbox(database) == {first: "delivered", second: "set_aside"}
    assert await seen(saga) == [first]


async def test_what_nobody_needs_any_more_is_forgotten_after_thirty_days_a_batch_at_a_time(
    database: Database, sagas: Client
) -> None:
    order_id, _ = await a_running_order(database, sagas)
    for _ in range(2):
        await an_event(database, None, "nobody")
        await an_event(database, "pi_1", order_id)
    waiting = await an_event(database, "pi_2", await an_accepted_order(database))
    await deliver_waiting(database, sagas)
    await grow_old(database, KEPT)
    kept = await an_event(database, None, "nobody"), await an_event(database, "pi_1", order_id)
    await deliver_waiting(database, sagas)
    for pruned in (3, 1, 0):
        async with database.begin() as connection:
            assert await prune_inbox(connection, 3) == pruned
    assert await inbox(database) == {waiting: "waiting", kept[0]: "set_aside", kept[1]: "delivered"}


async def test_of_nobody_s_events_only_so_many_are_kept(
    database: Database, sagas: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S27: the newest ones."""
    monkeypatch.setattr("adapters.inbox.SET_ASIDE_MOST", 2)
    events = [await an_event(database, None, "nobody") for _ in range(5)]
    await deliver_waiting(database, sagas)
    for pruned in (3, 0):
        async with database.begin() as connection:
            assert await prune_inbox(connection, 10) == pruned
    assert await inbox(database) == dict.fromkeys(events[-2:], "set_aside")


async def test_events_are_delivered_while_old_ones_cannot_be_forgotten(
    database: Database, sagas: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = []

    async def failing(*_: object) -> int:
        tried.append(time.monotonic())
        raise RuntimeError("a bug")

    monkeypatch.setattr("events.delivery.prune_inbox", failing)
    order_id, saga = await a_running_order(database, sagas)
    async with delivering(database, sagas):
        for _ in range(2):
            await until_seen(saga, await an_event(database, "pi_1", order_id))
    assert len(tried) == 1


async def test_an_outage_of_temporal_loses_no_event(database: Database, sagas: Client, no_temporal: Client) -> None:
    """S29."""
    order_id, saga = await a_running_order(database, sagas)
    event_id = await an_event(database, "pi_1", order_id)
    assert await deliver_waiting(database, no_temporal) == 1
    async with database.snapshot() as connection:
        (row,) = (await connection.execute(select(webhook_inbox))).all()
    assert (row.state, row.attempts, row.last_error) == ("waiting", 1, "TemporalUnavailable")
    async with delivering(database, sagas):
        await until_seen(saga, event_id)


@pytest.mark.parametrize(
    ("before", "event", "after", "state"),
    [
        ("BOOKED", "shipment.dispatched", "DISPATCHED", "delivered"),
        ("BOOKED", "shipment.delivered", "DELIVERED", "delivered"),
        ("DISPATCHED", "shipment.delivered", "DELIVERED", "delivered"),
        ("DELIVERED", "shipment.dispatched", "DELIVERED", "ignored"),
        ("CANCELLED", "shipment.dispatched", "CANCELLED", "ignored"),
        ("BOOKED", "shipment.booked", "BOOKED", "ignored"),
    ],
)
async def test_a_couriers_event_moves_its_shipment_forward_only(
    database: Database, no_temporal: Client, before: str, event: str, after: str, state: str
) -> None:
    order_id = await an_accepted_order(database)
    row = {"order_id": order_id, "warehouse": "main", "reference": f"{order_id}:main", "shipment_id": "shp_1"}
    async with database.begin() as connection:
        await connection.execute(insert(shipments).values(row | {"status": before}))
    event_id = await an_event(database, "shp_1", order_id, source="courier", type_=event)
    await deliver_waiting(database, no_temporal)
    async with database.snapshot() as connection:
        assert (await connection.execute(select(shipments.c.status))).scalar_one() == after
    assert await inbox(database) == {event_id: state}


async def test_a_couriers_event_about_nothing_of_ours_waits_a_minute(database: Database, no_temporal: Client) -> None:
    event_id = await an_event(database, "shp_1", "nobody", source="courier", type_="shipment.dispatched")
    await deliver_waiting(database, no_temporal)
    assert await inbox(database) == {event_id: "waiting"}
    await grow_old(database, timedelta(seconds=61))
    await deliver_waiting(database, no_temporal)
    assert await inbox(database) == {event_id: "set_aside"}
