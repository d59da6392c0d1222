"""Each party's worker down for a minute, one party after the other, while orders stream in."""

import asyncio
import itertools
from datetime import datetime

import pytest

from demo.cases import CURRENCY, Case
from demo.run import Running
from domain.keys import order_id_for
from domain.order import CLOSED_STATUSES, CancelReason, OrderStatus
from tests.baskets import fresh
from tests.commands import Ended
from tests.e2e.doors import ASK_AGAIN_SECONDS
from tests.e2e.running import FIRST_STEPS, RunningShop, running_shop
from tests.polling import eventually
from workflows.names import Queue

#: Five minutes of outages, and after each what waited is carried out.
pytestmark = [pytest.mark.long, pytest.mark.timeout(3600)]

DOWN_SECONDS = 60.0
ORDERS_A_SECOND = 1.0
#: A minute's outage leaves 75 behind. Shoppers hold back on a machine that does not catch up: the test is of what
#: becomes of orders, not of how many a machine can take.
MOST_OPEN = 100
LEAST_WAITING = 20
#: Beside these, somebody types at a terminal.
TYPED_A_SECOND = 0.25
TYPED = int(TYPED_A_SECOND * DOWN_SECONDS * len(Queue))

#: Nothing is promised about it: two idle cores need seconds for what a minute left behind, busy ones need minutes.
RECOVERY_SECONDS = 900.0

PLENTY = {"berlin": 100_000}
RICH = 1_000_000
_UNDONE = OrderStatus.CANCELLED_COMPENSATED

KINDS = (
    Case("plain", "paid by card", stock=PLENTY),
    Case("mixed", "all ways to pay", stock=PLENTY, points=200, store_credit=100),
    Case("silent", "the webhook never comes", stock=PLENTY, payment_method="pm_sim_silent"),
    Case("sold-out", "nothing is left", _UNDONE, CancelReason.OUT_OF_STOCK, stock={"berlin": 0}, points=200),
    Case(
        "declined",
        "the card is declined",
        _UNDONE,
        CancelReason.CARD_DECLINED,
        stock=PLENTY,
        payment_method="pm_card_chargeDeclined",
    ),
    Case(
        "no-courier",
        "nobody goes there",
        _UNDONE,
        CancelReason.NO_SERVICE_TO_ADDRESS,
        stock=PLENTY,
        postcode="00000",
        store_credit=100,
    ),
)

#: What was ordered: the case by the order's id.
Placed = dict[str, Case]


async def test_orders_that_stream_in_end_as_they_would_have_while_each_party_is_down_for_a_minute(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    async with running_shop(tmp_path_factory.mktemp("outages"), split=True) as shop:
        sources = await shop.prepared(KINDS)
        for source in sources:
            await shop.doors.put_customer(source.customer_id, RICH, {CURRENCY: RICH})
        placed, enough = Placed(), asyncio.Event()
        typing = asyncio.create_task(typed(shop, sources[0]))
        ordering = asyncio.create_task(ordered(shop, sources, placed, enough))
        try:
            for party in Queue:
                await down_for_a_minute(shop, party)
            enough.set()
            await ordering
            ended = await typing
        finally:
            ordering.cancel()
            typing.cancel()
        assert (ended.code, ended.err) == (0, ""), ended.out
        assert await ended_otherwise(shop, placed) == []
        await shop.assert_books_hold()


async def ordered(shop: RunningShop, sources: list[Running], placed: Placed, enough: asyncio.Event) -> None:
    """Orders of all kinds in turn over HTTP, at an even pace, until it is enough."""

    async def order(source: Running, key: str) -> None:
        order_id = await shop.doors.post_order(source.case.document(source.customer_id), key)
        assert order_id == order_id_for(source.customer_id, key)
        placed[order_id] = source.case

    async with asyncio.TaskGroup() as group:
        for source in itertools.cycle(sources):
            if len(await open_orders(shop)) < MOST_OPEN:
                group.create_task(order(source, fresh("key")))
            try:
                await asyncio.wait_for(enough.wait(), 1 / ORDERS_A_SECOND)
            except TimeoutError:
                continue
            return


async def typed(shop: RunningShop, source: Running) -> Ended:
    """Many orders placed and followed by one `starter.py`."""
    line = ("--customer", fresh("typist"), "--line", f"{source.case.sku}=1")
    pace = ("--count", str(TYPED), "--rate", str(TYPED_A_SECOND), "--watch")
    return await shop.run("starter.py", "order", *line, *pace, limit_seconds=3000)


async def down_for_a_minute(shop: RunningShop, party: Queue) -> None:
    """The party's worker is killed and stays down; orders wait before its first step, and go on when it is back."""
    part = f"worker-{party}"
    shop.stack.pause_restarts(part)
    shop.stack.kill(part)

    async def gone() -> bool:
        return part not in shop.stack.pids()

    await eventually(gone)
    down = await now(shop)
    await asyncio.sleep(DOWN_SECONDS)
    up = await now(shop)
    shop.stack.resume_restarts(part)
    steps = "SELECT count(*) FROM order_steps WHERE step = %s AND at BETWEEN %s AND %s"
    assert await shop.rows(steps, FIRST_STEPS[party], down, up) == [(0,)]
    waiting = await open_orders(shop)
    assert len(waiting) >= LEAST_WAITING, f"{party}: {len(waiting)}"

    async def done() -> bool:
        return not waiting & await open_orders(shop)

    await eventually(done, within_seconds=RECOVERY_SECONDS, pause_seconds=ASK_AGAIN_SECONDS)


async def now(shop: RunningShop) -> datetime:
    """By the clock that stamps the steps."""
    found: datetime = (await shop.rows("SELECT clock_timestamp()"))[0][0]
    return found


async def open_orders(shop: RunningShop) -> set[str]:
    """Those that are on their way."""
    query = "SELECT order_id FROM orders WHERE status <> ALL (%s)"
    return {order_id for (order_id,) in await shop.rows(query, list(CLOSED_STATUSES))}


async def ended_otherwise(shop: RunningShop, placed: Placed) -> list[str]:
    """The orders that did not end as their kind does, once all of them have."""

    async def closed() -> bool:
        return not await open_orders(shop)

    await eventually(closed, within_seconds=RECOVERY_SECONDS, pause_seconds=ASK_AGAIN_SECONDS)
    query = "SELECT order_id, status, reason FROM orders WHERE order_id = ANY (%s)"
    ends = {order_id: (status, reason) for order_id, status, reason in await shop.rows(query, list(placed))}
    assert ends.keys() == placed.keys()
    return [
        f"{case.name} {order_id} ended {ends[order_id]}"
        for order_id, case in placed.items()
        if ends[order_id] != (case.status, case.reason)
    ]
