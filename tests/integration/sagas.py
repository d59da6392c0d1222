"""Orders with stand-in sagas, in the states that a test needs."""

from typing import Any

from sqlalchemy import select, update
from temporalio.client import Client, WorkflowHandle

from adapters.database import Database
from adapters.tables import orders, webhook_inbox
from domain.order import OrderStatus
from events.relay import start_order
from tests.builders import an_accepted_order
from workflows.names import order_workflow_id

Saga = WorkflowHandle[Any, Any]


async def a_running_order(database: Database, client: Client, behaviour: str = "accept") -> tuple[str, Saga]:
    """An order whose saga runs, with its saga."""
    order_id = await an_accepted_order(database)
    await start_order(client, order_id, customer_id="ada", total=5000, currency="EUR")
    saga = client.get_workflow_handle(order_workflow_id(order_id))
    await saga.signal("behave", behaviour)
    return order_id, saga


async def a_closed_order(database: Database, client: Client, *path: OrderStatus) -> str:
    """An order whose saga has ended after these stages."""
    order_id, saga = await a_running_order(database, client)
    await move(database, order_id, *path)
    await saga.signal("finish")
    await saga.result()
    return order_id


async def move(database: Database, order_id: str, *path: OrderStatus) -> None:
    """Writes these stages one after the other."""
    async with database.begin() as connection:
        for status in path:
            await connection.execute(
                update(orders).where(orders.c.order_id == order_id).values(status=status.value, stage=status.value)
            )


async def seen(saga: Saga) -> list[str]:
    """What the stand-in was told so far."""
    told: list[str] = await saga.query("seen")
    return told


async def inbox(database: Database) -> dict[str, str]:
    """The state of each event in the inbox."""
    async with database.snapshot() as connection:
        rows = await connection.execute(select(webhook_inbox.c.event_id, webhook_inbox.c.state))
        return {row.event_id: row.state for row in rows}
