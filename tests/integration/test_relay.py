"""The relay: every accepted order is started, once, whoever crashed."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from sqlalchemy import func, select, update
from temporalio.client import Client, WorkflowExecutionStatus

from adapters.database import Database
from adapters.outbox import append_event
from adapters.tables import outbox
from domain.events import EventType, OrderFacts, order_event
from domain.messages import OrderInput
from events.relay import Relay, publish_submitted, start_order
from events.runs import Runs
from tests.builders import an_accepted_order
from tests.integration.sagas import a_running_order
from tests.polling import eventually
from workflows.names import order_workflow_id


@asynccontextmanager
async def running(*relays: Relay) -> AsyncIterator[None]:
    stop = asyncio.Event()
    tasks = [asyncio.create_task(relay.run(stop)) for relay in relays]
    try:
        yield
    finally:
        stop.set()
        async with asyncio.timeout(10):
            await asyncio.gather(*tasks)


async def unpublished(database: Database) -> int:
    async with database.snapshot() as connection:
        query = select(func.count()).select_from(outbox).where(outbox.c.published_at.is_(None))
        return (await connection.execute(query)).scalar_one()


async def is_running(client: Client, order_id: str) -> bool:
    found = await client.get_workflow_handle(order_workflow_id(order_id)).describe()
    return found.status is WorkflowExecutionStatus.RUNNING


async def one_run(client: Client, order_id: str) -> None:
    """Fails unless exactly one run has this order's workflow id."""

    async def runs() -> int:
        return (await client.count_workflows(f"WorkflowId = '{order_workflow_id(order_id)}'")).count

    assert await eventually(runs) == 1


async def all_published(database: Database) -> None:
    async def done() -> bool:
        return await unpublished(database) == 0

    await eventually(done, within_seconds=20)


async def test_accepted_orders_are_started_while_it_runs(database: Database, temporal: Client) -> None:
    before = await an_accepted_order(database)
    async with running(Relay(database, temporal)):
        await all_published(database)
        after = await an_accepted_order(database)
        await all_published(database)
    assert await is_running(temporal, before)
    assert await is_running(temporal, after)


async def test_an_order_is_started_at_once_when_the_relay_listens(database: Database, temporal: Client) -> None:
    async with running(Relay(database, temporal)):
        await an_accepted_order(database)
        await all_published(database)
        began = asyncio.get_running_loop().time()
        for _ in range(3):
            await an_accepted_order(database)
            await all_published(database)
        # Three turns of polling would take three seconds.
        assert asyncio.get_running_loop().time() - began < 2


async def test_a_saga_that_already_runs_or_has_ended_is_left_alone(database: Database, sagas: Client) -> None:
    """A crash between start and commit: the row is still unpublished."""
    running_id, _ = await a_running_order(database, sagas)
    ended_id, saga = await a_running_order(database, sagas)
    await saga.signal("finish")
    await saga.result()
    published = await publish_submitted(database, sagas)
    assert (published.started, published.failed) == (2, 0)
    assert await unpublished(database) == 0
    assert await is_running(sagas, running_id)
    assert not await is_running(sagas, ended_id)
    assert (await saga.describe()).run_id == (await sagas.get_workflow_handle(saga.id).describe()).run_id


async def test_an_order_that_ended_well_meanwhile_is_not_started_again(database: Database, sagas: Client) -> None:
    """The guard saw no run of it, and then it ended."""
    order_id, saga = await a_running_order(database, sagas)
    await saga.signal("finish")
    await saga.result()
    before = (await saga.describe()).run_id
    for completed in (False, True):
        await Runs(sagas).start_again(OrderInput(order_id=order_id), "ada", 5000, "EUR", completed=completed)
        assert ((await saga.describe()).run_id != before) is completed


async def test_several_relays_start_each_order_once(database: Database, temporal: Client) -> None:
    order_ids = [await an_accepted_order(database) for _ in range(40)]
    async with running(*(Relay(database, temporal) for _ in range(3))):
        await all_published(database)
    for order_id in order_ids:
        await one_run(temporal, order_id)
    async with database.snapshot() as connection:
        assert (await connection.execute(select(func.max(outbox.c.attempts)))).scalar_one() == 0


async def test_what_another_relay_holds_is_not_waited_for(database: Database, temporal: Client) -> None:
    order_id = await an_accepted_order(database)
    async with database.begin() as holder:
        await holder.execute(select(outbox).with_for_update())
        published = await publish_submitted(database, temporal, order_id=order_id)
        assert (published.started, published.failed) == (0, 0)
    assert (await publish_submitted(database, temporal, order_id=order_id)).started == 1


async def test_an_outage_of_temporal_loses_no_order(database: Database, temporal: Client, no_temporal: Client) -> None:
    """S87: whoever starts orders is down for as long as it takes."""
    order_ids = [await an_accepted_order(database) for _ in range(3)]
    async with running(Relay(database, no_temporal)):

        async def tried() -> bool:
            async with database.snapshot() as connection:
                return ((await connection.execute(select(func.min(outbox.c.attempts)))).scalar_one() or 0) >= 1

        await eventually(tried)
    assert await unpublished(database) == 3
    async with running(Relay(database, temporal)):
        await all_published(database)
    for order_id in order_ids:
        assert await is_running(temporal, order_id)


async def test_an_order_that_cannot_be_started_holds_up_no_other(database: Database, temporal: Client) -> None:
    """S88: its row cannot be read; the others pass, and it is not told as published."""
    poison, good = await an_accepted_order(database), await an_accepted_order(database)
    async with database.begin() as connection:
        await connection.execute(update(outbox).where(outbox.c.order_id == poison).values(data={}))
    published = await publish_submitted(database, temporal)
    assert (published.started, published.failed) == (1, 1)
    assert await is_running(temporal, good)
    async with database.snapshot() as connection:
        (row,) = (await connection.execute(select(outbox).where(outbox.c.published_at.is_(None)))).all()
    assert (row.order_id, row.attempts, row.last_error) == (poison, 1, "KeyError")


async def test_other_events_are_left_for_their_consumers(database: Database, temporal: Client) -> None:
    facts = OrderFacts(order_id="o", customer_id="ada", currency="EUR", total=1, points=0, store_credit=0, amount_due=1)
    async with database.begin() as connection:
        await append_event(connection, order_event(EventType.ORDER_CONFIRMED, facts), correlation_id="c")
    published = await publish_submitted(database, temporal)
    assert (published.started, published.failed) == (0, 0)
    assert await unpublished(database) == 1


async def test_an_outage_of_the_database_is_sat_out(database: Database, temporal: Client) -> None:
    async with running(Relay(database, temporal)):
        await an_accepted_order(database)
        await all_published(database)
        async with database.begin() as connection:
            await connection.exec_driver_sql(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        order_id = await an_accepted_order(database)
        await all_published(database)
    assert await is_running(temporal, order_id)


async def test_starting_twice_is_starting_once(database: Database, temporal: Client) -> None:
    order_id = await an_accepted_order(database)
    await asyncio.gather(
        *(start_order(temporal, order_id, customer_id="ada", total=1, currency="EUR") for _ in range(20))
    )
    await one_run(temporal, order_id)
