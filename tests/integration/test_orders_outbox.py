"""Events wait in the outbox until they are out: at least once, in order, and none holds up the others."""

from datetime import timedelta

import pytest
from sqlalchemy import func, select, update

from adapters.database import Database
from adapters.outbox import (
    OutboxRow,
    append_event,
    claim_submitted,
    mark_failed,
    mark_published,
    oldest_submitted_seconds,
)
from adapters.tables import outbox
from domain.events import EventType, OrderFacts, order_event
from tests.builders import an_accepted_order, the_fixture_products


async def due(database: Database, limit: int = 10) -> list[OutboxRow]:
    async with database.begin() as connection:
        return await claim_submitted(connection, limit)


async def fail(database: Database, sequence: int) -> int:
    """Marks the event as failed; returns how many seconds it is set aside for."""
    async with database.begin() as connection:
        await mark_failed(connection, sequence, "ServerUnavailable")
        wait = func.extract("epoch", outbox.c.next_attempt_at - func.clock_timestamp())
        return round((await connection.execute(select(wait).where(outbox.c.sequence == sequence))).scalar_one())


async def test_events_are_claimed_oldest_first_until_they_are_out(database: Database) -> None:
    await the_fixture_products(database)
    order_ids = [await an_accepted_order(database) for _ in range(3)]
    claimed = await due(database)
    assert [row.order_id for row in claimed] == order_ids
    assert claimed[0].event_id == f"{order_ids[0]}:OrderSubmitted"
    assert claimed[0].data["order_id"] == order_ids[0]
    async with database.begin() as connection:
        await mark_published(connection, [row.sequence for row in claimed[:2]])
    assert [row.order_id for row in await due(database)] == order_ids[2:]


async def test_two_relays_never_hold_the_same_event(database: Database) -> None:
    await the_fixture_products(database)
    order_ids = {await an_accepted_order(database) for _ in range(4)}
    async with database.begin() as one, database.begin() as other:
        mine = {row.order_id for row in await claim_submitted(one, 3)}
        theirs = {row.order_id for row in await claim_submitted(other, 3)}
    assert len(mine) == 3
    assert mine | theirs == order_ids
    assert not mine & theirs


async def test_a_failing_event_steps_aside_and_waits_longer_each_time(database: Database) -> None:
    await the_fixture_products(database)
    poison, good = await an_accepted_order(database), await an_accepted_order(database)
    sequence = (await due(database))[0].sequence
    assert [await fail(database, sequence) for _ in range(8)] == [1, 2, 4, 8, 16, 32, 60, 60]
    assert [row.order_id for row in await due(database)] == [good]
    assert poison != good


async def test_the_same_fact_is_told_once(database: Database) -> None:
    facts = OrderFacts(order_id="o", customer_id="ada", currency="EUR", total=1, points=0, store_credit=0, amount_due=1)
    for correlation_id in ("first", "second"):
        async with database.begin() as connection:
            event = order_event(EventType.ORDER_SUBMITTED, facts)
            await append_event(connection, event, correlation_id=correlation_id)
    assert [row.correlation_id for row in await due(database)] == ["first"]


async def test_a_fact_whose_transaction_failed_is_never_told(database: Database) -> None:
    """S87: it was queued, and then the business of the same transaction broke."""
    facts = OrderFacts(order_id="o", customer_id="ada", currency="EUR", total=1, points=0, store_credit=0, amount_due=1)

    async def sell() -> None:
        async with database.begin() as connection:
            await append_event(connection, order_event(EventType.ORDER_SUBMITTED, facts), correlation_id="first")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await sell()
    assert await due(database) == []


async def test_the_oldest_waiting_event_is_what_an_alert_watches(database: Database) -> None:
    async with database.begin() as connection:
        assert await oldest_submitted_seconds(connection) == 0
    await the_fixture_products(database)
    await an_accepted_order(database)
    async with database.begin() as connection:
        await connection.execute(update(outbox).values(created_at=outbox.c.created_at - timedelta(hours=1)))
        assert 3599 < await oldest_submitted_seconds(connection) < 3700
