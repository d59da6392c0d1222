"""A whole running shop, and whoever stands before it: shoppers, operators, and people who kill processes."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, LiteralString

import aiohttp
import psycopg
from psycopg import sql

from demo.cases import Case
from demo.doors import Doors
from demo.run import Running, place_and_follow, prepare
from domain.order import PaymentStatus
from runtime.entry import EntryError
from runtime.stack import Stack
from runtime.stack_env import isolated_settings
from tests.baskets import fresh
from tests.commands import Ended, command, plain_environment
from tests.polling import eventually

#: Nothing is promised about it: what a killed worker was doing is tried again after 10 or 20 s, later on busy machines.
PATIENCE_SECONDS = 180.0


class PatientDoors(Doors):
    """As a shopper's app does it: where a part is down, the same request again."""

    async def _ask(self, *words: Any, **more: Any) -> Any:
        troubles: list[EntryError] = []

        async def ask() -> list[Any]:
            try:
                return [await super(PatientDoors, self)._ask(*words, **more)]
            except EntryError as error:
                troubles.append(error)
                return []

        try:
            return (await eventually(ask, within_seconds=PATIENCE_SECONDS / 3))[0]
        except AssertionError:
            raise troubles[-1] from None


class RunningShop:
    """One stack, all that its processes have said, and the doors to it."""

    def __init__(self, stack: Stack, home: Path, log: list[str], http: aiohttp.ClientSession) -> None:
        self.stack = stack
        self.settings = stack.settings
        self.home = home
        self.log = log
        self.http = http
        self.doors = PatientDoors(stack.settings, http)
        self._environment = plain_environment(home)

    async def run(self, *words: str, stdin: bytes = b"") -> Ended:
        """One command beside the running shop."""
        return await command(self._environment, *words, stdin=stdin)

    def url(self, port: int, path: str) -> str:
        """A route on one of the shop's ports."""
        return f"http://127.0.0.1:{port}{path}"

    async def rows(self, query: LiteralString | sql.Composed, *values: object) -> list[tuple[Any, ...]]:
        """What stands in the database, past all code of ours."""
        async with await self._connection() as connection:
            return list(await (await connection.execute(query, values)).fetchall())

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

        async def look() -> str | None:
            payment = (await self.doors.order(order.order_id)).payment
            return payment.id if payment.status in wanted else None

        return str(await eventually(look, within_seconds=PATIENCE_SECONDS))

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
async def running_shop(home: Path) -> AsyncIterator[RunningShop]:
    """All processes of the shop on free ports, until the block ends."""
    log: list[str] = []
    stack = Stack(isolated_settings(home), tell=lambda part, line: log.append(f"{part} {line}"))
    async with stack, aiohttp.ClientSession() as session:
        yield RunningShop(stack, home, log, session)
