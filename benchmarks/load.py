"""Places orders through the shop's door, and waits until each has ended."""

import asyncio
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import aiohttp
from sqlalchemy import func, select

from adapters.database import Database
from adapters.tables import orders, outbox
from domain.events import EventType
from domain.order import CLOSED_STATUSES
from runtime.entry import EntryError

POLL_SECONDS = 0.25


@dataclass
class Load:
    """What became of one load of orders. Lists are in seconds, one an order."""

    count: int
    accepting: list[float] = field(default_factory=list)
    confirming: list[float] = field(default_factory=list)
    #: From the first order's acceptance to the last one's confirmation.
    seconds: float = 0.0
    statuses: Counter[str] = field(default_factory=Counter)


async def run_load(database: Database, url: str, count: int, concurrency: int, patience_seconds: float) -> Load:
    """Places `count` orders, `concurrency` requests at a time, and waits for their ends or until patience ends.

    Times to the confirmation are the database's own, so that looking costs the shop next to nothing.
    """
    load, run, left = Load(count), f"bench-{uuid4().hex[:8]}", iter(range(count))
    timeout = aiohttp.ClientTimeout(total=60)
    async with aiohttp.ClientSession(timeout=timeout, connector=aiohttp.TCPConnector(limit=concurrency)) as session:

        async def shopper() -> None:
            for number in left:
                began = time.monotonic()
                await _place(session, url, f"{run}-{number}")
                load.accepting.append(time.monotonic() - began)

        async with asyncio.TaskGroup() as group:
            for _ in range(min(concurrency, count)):
                group.create_task(shopper())
    await _wait(database, run, load, patience_seconds)
    await _read_times(database, run, load)
    return load


async def _place(session: aiohttp.ClientSession, url: str, customer_id: str) -> None:
    headers = {"Idempotency-Key": str(uuid4())}
    async with session.post(f"{url}/orders", json=_document(customer_id), headers=headers) as answer:
        if answer.status != 202:
            raise EntryError(f"POST /orders answered {answer.status}: {await answer.text()}")
        await answer.read()


def _document(customer_id: str) -> dict[str, Any]:
    """Two lines of goods from one warehouse, paid by card: every step of the saga but points and credit."""
    address = {"name": "Bench", "line1": "1 High Street", "city": "Berlin", "postcode": "10115", "country": "DE"}
    return {
        "customer_id": customer_id,
        "currency": "EUR",
        "lines": [{"sku": "tea-green", "quantity": 1}, {"sku": "mug-blue", "quantity": 2}],
        "email": "bench@example.com",
        "shipping_address": address,
    }


async def _wait(database: Database, run: str, load: Load, patience_seconds: float) -> None:
    deadline = time.monotonic() + patience_seconds
    query = select(orders.c.status, func.count()).where(orders.c.customer_id.like(f"{run}-%")).group_by(orders.c.status)
    while True:
        async with database.snapshot() as connection:
            load.statuses = Counter({row[0]: row[1] for row in await connection.execute(query)})
        ended = sum(number for status, number in load.statuses.items() if status in CLOSED_STATUSES)
        if ended == load.count or time.monotonic() > deadline:
            return
        await asyncio.sleep(POLL_SECONDS)


async def _read_times(database: Database, run: str, load: Load) -> None:
    query = (
        select(orders.c.created_at, outbox.c.created_at)
        .join(outbox, outbox.c.order_id == orders.c.order_id)
        .where(orders.c.customer_id.like(f"{run}-%"), outbox.c.type == EventType.ORDER_CONFIRMED)
    )
    async with database.snapshot() as connection:
        times = [(row[0], row[1]) for row in await connection.execute(query)]
    load.confirming = [(confirmed - accepted).total_seconds() for accepted, confirmed in times]
    if times:
        first, last = min(accepted for accepted, _ in times), max(confirmed for _, confirmed in times)
        load.seconds = (last - first).total_seconds()
