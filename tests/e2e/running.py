"""A whole running shop, and whoever stands before it: shoppers, operators, and people who kill processes."""

import asyncio
import json
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, LiteralString

import aiohttp
import psycopg
from psycopg import sql

from demo.cases import Case
from demo.run import Running, look_around, place_and_follow, prepare
from domain.keys import Step
from domain.order import CLOSED_STATUSES, OrderStatus, PaymentStatus
from domain.views import OrderView
from runtime.settings import Settings
from runtime.stack import Stack
from runtime.stack_env import isolated_settings
from tests.baskets import fresh
from tests.commands import LIMIT_SECONDS, Ended, command, plain_environment
from tests.e2e.doors import ASK_AGAIN_SECONDS, PATIENCE_SECONDS, PatientDoors
from tests.polling import eventually
from workflows.names import Queue

#: The first step that each party takes for an order that pays with all it can. The saga itself is the
#: `orders` worker's.
FIRST_STEPS = {
    Queue.ORDERS: Step.OPEN_ORDER,
    Queue.INVENTORY: Step.RESERVE_STOCK,
    Queue.LOYALTY: Step.BURN_POINTS,
    Queue.PAYMENTS: Step.AUTHORIZE_PAYMENT,
    Queue.SHIPPING: Step.BOOK_SHIPMENT,
}


class RunningShop:
    """One stack, all that its processes have said, and the doors to it."""

    def __init__(self, stack: Stack, home: Path, log: list[str], http: aiohttp.ClientSession) -> None:
        self.stack = stack
        self.settings = stack.settings
        self.home = home
        self.log = log
        self.http = http
        self.doors = PatientDoors(stack.settings, http)
        #: By order: each status in which somebody who waited for it saw it.
        self.seen: defaultdict[str, set[OrderStatus]] = defaultdict(set)
        self._environment = plain_environment(home)

    async def run(self, *words: str, stdin: bytes = b"", limit_seconds: float = LIMIT_SECONDS) -> Ended:
        """One command beside the running shop."""
        return await command(self._environment, *words, stdin=stdin, limit_seconds=limit_seconds)

    def url(self, port: int, path: str) -> str:
        """A route on one of the shop's ports."""
        return f"http://127.0.0.1:{port}{path}"

    async def rows(self, query: LiteralString | sql.Composed, *values: object) -> list[tuple[Any, ...]]:
        """What stands in the database, past all code of ours."""
        async with await self._connection() as connection:
            return list(await (await connection.execute(query, values)).fetchall())

    async def metrics(self) -> dict[str, str]:
        """What each process tells a scraper that goes by the stack's list."""
        found: dict[str, str] = {}
        for group in json.loads((self.home / "scrape.json").read_text()):
            async with self.http.get(f"http://{group['targets'][0]}/metrics") as answer:
                found[group["labels"]["process"]] = await answer.text()
        return found

    async def stamps(self) -> int:
        """How many steps of all orders were stamped so far."""
        async with await self._connection() as connection:
            return await _count_stamps(connection)

    async def until_stamps(self, count: int) -> None:
        """Until there are so many."""
        async with await self._connection() as connection:

            async def look() -> bool:
                return await _count_stamps(connection) >= count

            await eventually(look, within_seconds=PATIENCE_SECONDS)

    async def _connection(self) -> psycopg.AsyncConnection:
        return await psycopg.AsyncConnection.connect(self.settings.database_for("orders"), autocommit=True)

    async def prepared(self, cases: Sequence[Case]) -> list[Running]:
        """Orders that can be placed, each with a customer and goods of its own."""
        run = fresh("run")
        return await asyncio.gather(*(prepare(self.doors, case, run) for case in cases))

    async def place(self, order: Running) -> None:
        """Places an order; the answer is there, what follows is not."""
        assert await self.doors.post_order(order.case.document(order.customer_id), order.key) == order.order_id

    async def place_until_payment(self, order: Running, wanted: Collection[PaymentStatus]) -> str:
        """Places an order; returns its intent's id once its payment stands there."""
        await self.place(order)
        return str((await self.until(order, lambda view: view.payment.status in wanted)).payment.id)

    async def until(self, order: Running, wanted: Callable[[OrderView], bool]) -> OrderView:
        """The order, once the shopper sees it so."""

        async def look() -> OrderView | None:
            view = await self._look_at(order)
            return view if wanted(view) else None

        found = await eventually(look, within_seconds=PATIENCE_SECONDS, pause_seconds=ASK_AGAIN_SECONDS)
        assert found is not None
        return found

    async def followed(self, order: Running) -> None:
        """Follows an order to its very end, through all parks, and reads everybody's books about it."""

        async def look() -> bool:
            order.view = await self._look_at(order)
            if order.view.status not in CLOSED_STATUSES or order.view.needs_review:
                return False
            order.timeline = await self.doors.timeline(order.order_id)
            return order.over

        await eventually(look, within_seconds=PATIENCE_SECONDS, pause_seconds=2 * ASK_AGAIN_SECONDS)
        await look_around(self.doors, order)

    async def _look_at(self, order: Running) -> OrderView:
        view = await self.doors.order(order.order_id)
        self.seen[order.order_id].add(view.status)
        return view

    @asynccontextmanager
    async def holding(self, query: LiteralString, *values: object) -> AsyncIterator[None]:
        """Somebody else's transaction at the database, which keeps its locks until the block ends."""
        url = Settings.need(self.settings.database_url, "DATABASE_URL")
        async with await psycopg.AsyncConnection.connect(url) as connection:
            await connection.execute(query, values)
            yield

    async def finish(self, orders: Sequence[Running]) -> None:
        """Places the orders, or again under their keys, and follows them: each must end right by everybody's books."""
        await asyncio.gather(*(place_and_follow(self.doors, one, patience_seconds=PATIENCE_SECONDS) for one in orders))
        troubles = [f"{one.case.name} {one.order_id}: {word}" for one in orders for word in one.differences()]
        assert not troubles, "\n".join(troubles)

    async def finish_while(self, orders: Sequence[Running], disturb: Callable[[], Awaitable[None]]) -> None:
        """`finish`, disturbed for the last time before the last order has ended."""
        finishing = asyncio.create_task(self.finish(orders))
        try:
            await disturb()
            assert not finishing.done(), "the orders ended before they were disturbed"
            await finishing
        finally:
            finishing.cancel()

    async def assert_books_hold(self) -> None:
        """`ops.py prove` finds nothing."""
        ended = await self.run("ops.py", "prove")
        assert (ended.code, ended.err) == (0, ""), ended.out


async def _count_stamps(connection: psycopg.AsyncConnection) -> int:
    row = await (await connection.execute("SELECT count(*) FROM order_steps")).fetchone()
    assert row is not None
    return int(row[0])


@asynccontextmanager
async def running_shop(home: Path, *, split: bool = False, **settings: object) -> AsyncIterator[RunningShop]:
    """All processes of the shop on free ports, until the block ends. `split`: a worker for each party."""
    log: list[str] = []
    stack = Stack(
        isolated_settings(home, **settings), tell=lambda part, line: log.append(f"{part} {line}"), split=split
    )
    async with stack, aiohttp.ClientSession() as session:
        yield RunningShop(stack, home, log, session)
