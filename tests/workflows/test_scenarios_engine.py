"""Scenarios from the field: workers that are away while timers and events come, and starts that come in numbers."""

import asyncio
from contextlib import AbstractAsyncContextManager

import pytest
from temporalio.api.enums.v1 import EventType
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.worker import Replayer

from domain.keys import Step
from domain.messages import PaymentUpdated
from events.relay import start_order
from runtime.workers import WORKFLOWS, running_workers, workflow_runner
from tests.baskets import Basket
from tests.conftest import MakeDatabase
from tests.polling import eventually
from tests.shop import Shop
from tests.workflows import order_o
from tests.workflows.conftest import PATIENT
from tests.workflows.skipping import shop_on, start_environment
from tests.workflows.till import CAPTURABLE, Till
from workflows.names import Queue
from workflows.order import OrderWorkflow

FIRED = EventType.EVENT_TYPE_TIMER_FIRED
#: By the real clock: a server whose time is skipped waits for a worker before it lets a second timer fire.
DEADLINE_SECONDS = 20.0


@pytest.mark.long
async def test_an_event_and_a_deadline_that_come_while_the_workers_are_away_end_clean(
    make_database: MakeDatabase,
) -> None:
    """S75: the event before the deadline, after it, or never: the gateway is asked, and a replay does the same."""
    others = [queue for queue in Queue if queue is not Queue.ORDERS]
    async with (
        await start_environment() as environment,
        shop_on(environment, make_database, PATIENT, queues=others) as shop,
    ):
        till = Till(shop, environment)
        async with orders_worker(shop):
            before, after, never = await asyncio.gather(*(asleep(till) for _ in range(3)))
        await tell(till, before)
        await asyncio.gather(*(overdue(shop, basket) for basket in (before, after, never)))
        await tell(till, after)
        assert await what_waits(shop, before) == [EventType.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED, FIRED]
        assert await what_waits(shop, after) == [FIRED, EventType.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED]
        assert await what_waits(shop, never) == [FIRED]
        async with orders_worker(shop):
            await order_o.clean(shop, before, after, never)
        await replay(shop, before, after, never)
        for basket in (before, after, never):
            assert len(await till.calls(basket, "confirm")) == len(await till.calls(basket, "capture")) == 1
            assert await till.calls(basket, "cancel") == []


async def asleep(till: Till) -> Basket:
    """An order whose saga sleeps until its deadline."""
    basket = await order_o.waiting(till)

    async def look() -> bool:
        return EventType.EVENT_TYPE_TIMER_STARTED in await history(till.shop, basket)

    await eventually(look)
    return basket


async def history(shop: Shop, basket: Basket) -> list[int]:
    """Types of the events of the order's saga."""
    return [event.event_type for event in (await shop.saga(basket.order_id).fetch_history()).events]


async def what_waits(shop: Shop, basket: Basket) -> list[int]:
    """Types of the events that the order's saga has not seen yet, the oldest first."""
    types = await history(shop, basket)
    seen = max(place for place, one in enumerate(types) if one == EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED)
    return [one for one in types[seen:] if one in {FIRED, EventType.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED}]


async def overdue(shop: Shop, basket: Basket) -> None:
    """Until the order's deadline is over at the server, and no worker has heard of it."""

    async def look() -> bool:
        return FIRED in await what_waits(shop, basket)

    await eventually(look, within_seconds=60)


def orders_worker(shop: Shop) -> AbstractAsyncContextManager[None]:
    """The worker that decides about orders, until the block ends."""
    settings = shop.settings.model_copy(update={"payment_deadline_seconds": DEADLINE_SECONDS})
    return running_workers(shop.client, settings, [Queue.ORDERS], PATIENT, [shop.gates])


async def tell(till: Till, basket: Basket) -> None:
    """The event reaches the order's saga at the server."""
    intent = (await till.intent(basket))["id"]
    update = PaymentUpdated(event_id=f"evt-{basket.order_id}", type=CAPTURABLE, intent_id=intent)
    await till.shop.saga(basket.order_id).signal(OrderWorkflow.payment_updated, update)


async def replay(shop: Shop, *baskets: Basket) -> None:
    """Repeats the orders' histories on this code; raises where it would do something else."""
    repeating = Replayer(workflows=WORKFLOWS, workflow_runner=workflow_runner(), data_converter=pydantic_data_converter)
    for basket in baskets:
        await repeating.replay_workflow(await shop.saga(basket.order_id).fetch_history())


async def test_twenty_starts_of_one_order_are_one_effect_at_each_service(till: Till) -> None:
    """S80: they come while the first one stands at its first step."""
    shop = till.shop
    basket = await shop.basket()
    opening = shop.gates.hold(basket.order_id, Step.OPEN_ORDER)
    await order_o.place(shop, basket)
    await opening.reached()

    async def start() -> None:
        await start_order(shop.client, basket.order_id, customer_id=basket.customer, total=5000, currency="EUR")

    await asyncio.gather(*(start() for _ in range(20)))
    opening.open()
    await order_o.clean(shop, basket)
    steps = (Step.OPEN_ORDER, Step.SCREEN_ORDER, Step.RESERVE_STOCK, Step.BURN_POINTS, Step.BOOK_SHIPMENT)
    assert [shop.gates.calls(basket.order_id, step) for step in steps] == [1] * len(steps)
    for op in ("create", "confirm", "capture"):
        assert len(await till.calls(basket, op)) == 1, op
