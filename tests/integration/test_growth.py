"""After years of orders a step, a request and a scrape read as much as on the first day: what they are about."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

from temporalio.testing import ActivityEnvironment

from activities.inventory import InventoryActivities
from activities.loyalty import LoyaltyActivities
from activities.orders import OrdersActivities
from adapters.backlog import read_backlog
from adapters.courier import Shipment
from adapters.database import Database
from adapters.fraud_scorer import FraudScorer
from adapters.inbox import (
    IncomingEvent,
    claim_waiting,
    keep_waiting,
    move_shipment,
    prune_inbox,
    settle,
    store_event,
)
from adapters.orders import list_orders, read_order, read_results, read_timeline
from adapters.outbox import claim_submitted, mark_failed, mark_published
from adapters.payments import authorize_refund, read_terms, record_reading, store_intent
from adapters.shipments import mark_cancelled, read_address, store_shipment
from adapters.stripe_answers import Intent, IntentStatus, Refund, RefundStatus
from domain.keys import Step
from domain.messages import OrderInput, ParkClosed, ParkedStep, StatusChange, StepInput
from domain.order import OrderStatus, ParkKind, RedriveAction, ShipmentStatus
from runtime.settings import Settings
from tests.builders import a_customer, a_product, an_accepted_order, unique
from tests.integration.filled import ROWS, fill, looked_at

#: A prepared statement gets a plan that knows no values after ten times: what fits an index then fits it always.
ROUNDS = 12


async def run(step: Callable[[Any], Awaitable[Any]], argument: Any) -> None:
    await ActivityEnvironment().run(step, argument)


async def the_saga(database: Database, order_id: str) -> None:
    """The steps of our own tables, forward and back."""
    scorer = FraudScorer("http://127.0.0.1:1", timeout_seconds=1)
    orders = OrdersActivities(database, scorer, Settings(_env_file=None))
    inventory, loyalty = InventoryActivities(database), LoyaltyActivities(database)
    step, since = StepInput(order_id=order_id), datetime(2026, 11, 30, tzinfo=UTC)
    parked = {"order_id": order_id, "step": Step.RESERVE_STOCK, "since": since}
    await run(orders.open_order, OrderInput(order_id=order_id))
    await run(orders.park_step, ParkedStep(**parked, kind=ParkKind.TECHNICAL, error="DatabaseUnavailable"))
    await run(orders.close_park, ParkClosed(**parked, actor="grace", action=RedriveAction.RETRY))
    for forward in (inventory.reserve_stock, loyalty.burn_points, loyalty.apply_store_credit):
        await run(forward, step)
    await run(orders.record_status, StatusChange(order_id=order_id, status=OrderStatus.COMPENSATING))
    for undo in (inventory.release_stock, loyalty.restore_points, loyalty.refund_store_credit):
        await run(undo, step)


async def the_providers(database: Database, order_id: str) -> None:
    """What the gateway and the courier tell, recorded."""
    intent = Intent(unique("pi"), IntentStatus.SUCCEEDED, 900, "EUR", amount_received=900, order_id=order_id)
    refund = Refund(unique("re"), RefundStatus.SUCCEEDED, 900, unique("refund"))
    parcel = Shipment(unique("shp"), f"{order_id}:main", ShipmentStatus.BOOKED)
    async with database.begin() as connection:
        await read_terms(connection, order_id)
        await store_intent(connection, order_id, intent)
        await record_reading(connection, order_id, intent, [refund])
        await authorize_refund(connection, order_id, "run:2", 0)
        await read_address(connection, order_id)
        await store_shipment(connection, order_id, "main", parcel)
        await move_shipment(connection, parcel.id, ShipmentStatus.DISPATCHED)
        await mark_cancelled(connection, order_id, "main")


async def the_messages(database: Database, order_id: str) -> None:
    """What relay and delivery do each turn."""
    async with database.begin() as connection:
        await claim_submitted(connection, 32, order_id=order_id)
        (row,) = await claim_submitted(connection, 32)
        await mark_failed(connection, row.sequence, "ServerUnavailable")
        await mark_published(connection, [row.sequence])
        await store_event(connection, IncomingEvent("stripe", unique("evt"), "t", "pi1", None))
        (event,) = await claim_waiting(connection, 32)
        await keep_waiting(connection, event.key, "not_yet")
        await settle(connection, [event.key], "delivered")
        await prune_inbox(connection, 1000)


async def test_no_step_request_or_scrape_reads_more_because_the_shop_is_old(database: Database) -> None:
    await a_product(database, "A", price=1000, on_hand=1000)
    await fill(database)
    before = await looked_at(database)
    for number in range(1, ROUNDS + 1):
        customer = f"c{number}"
        await a_customer(database, customer, points=50, store_credit=50)
        order_id = await an_accepted_order(
            database, customer_id=customer, points=50, store_credit=50, lines=[{"sku": "A", "quantity": 1}]
        )
        await the_messages(database, order_id)
        await the_saga(database, order_id)
        await the_providers(database, order_id)
        assert await read_order(database, order_id)
        assert await read_timeline(database, order_id)
        assert len(await read_results(database, [order_id, "o1"])) == 2
        assert len(await list_orders(database, 20)) == 20
        assert (await list_orders(database, 20, OrderStatus.COMPENSATING))[0].order_id == order_id
        backlog = await read_backlog(database)
        assert backlog.orders == [(("COMPENSATING",), number)]
    after = await looked_at(database)
    read = {table: after[table] - before[table] for table in before}
    assert {table: rows for table, rows in read.items() if rows > ROWS / 10} == {}
    assert read["orders"] > ROUNDS, "it is measured at all"
