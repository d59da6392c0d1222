"""Scenarios from the field that need real processes: killed in one exact moment, or out of reach in one."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from demo.cases import Case
from demo.run import Running
from domain.order import PaymentStatus
from tests.e2e.doors import PATIENCE_SECONDS
from tests.e2e.running import RunningShop
from tests.polling import eventually

#: What a killed worker was doing is tried again after 10 or 20 s.
pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]

BURNS_POINTS = Case("burns-points", "points pay a part of it", points=500)
SLOW_HOLD = Case(
    "slow-hold",
    "the gateway holds at once and answers later",
    points=500,
    faults=({"op": "confirm", "mode": "delay", "delay_ms": 4000},),
)
WAITS = Case("waits", "the bank takes its time", payment_method="pm_sim_never", points=500)


async def test_a_worker_killed_between_the_hold_and_its_record_holds_the_money_once(shop: RunningShop) -> None:
    """S04: the shopper sends the order again, too."""
    (order,) = await shop.prepared([SLOW_HOLD])
    await shop.place(order)

    async def held() -> bool:
        return any(intent["authorized"] for intent in await shop.doors.intents(order.order_id))

    await eventually(held, within_seconds=PATIENCE_SECONDS)
    assert (await shop.doors.order(order.order_id)).payment.status is not PaymentStatus.AUTHORIZED
    shop.stack.kill("worker")
    await shop.place(order)
    await shop.finish([order])
    assert len(await shop.doors.intents(order.order_id)) == 1
    await shop.assert_books_hold()


@pytest.mark.parametrize("server", ["postgres", "temporal"])
async def test_a_webhook_that_comes_during_an_outage_is_refused_or_takes_effect(shop: RunningShop, server: str) -> None:
    """S29: a 2xx is a promise, anything else leaves no mark and is sent again."""
    (order,) = await shop.prepared([WAITS])
    intent = await shop.place_until_payment(order, {PaymentStatus.PROCESSING})
    async with down(shop, server):
        await shop.doors.late_yes(intent)
        status = await told(shop, order)
    assert 200 <= status < 300 if server == "temporal" else status == 503
    await shop.finish([order])
    seen = await shop.rows("SELECT state FROM webhook_inbox WHERE order_id = %s", order.order_id)
    assert {state for (state,) in seen} <= {"delivered", "ignored"}
    await shop.assert_books_hold()


@asynccontextmanager
async def down(shop: RunningShop, part: str) -> AsyncIterator[None]:
    """The part is dead until the block ends."""
    shop.stack.pause_restarts(part)
    shop.stack.kill(part)
    try:
        yield
    finally:
        shop.stack.resume_restarts(part)
        await shop.stack.ready(part)


async def told(shop: RunningShop, order: Running) -> int:
    """The shop's first answer to the gateway's newest event about the order."""
    url = shop.url(shop.settings.sim_gateway_port, "/_sim/events")

    async def look() -> dict[str, Any] | None:
        async with shop.http.get(url) as answer:
            events = [one for one in (await answer.json())["events"] if one["order_id"] == order.order_id]
        return events[-1] if events and events[-1]["last_status"] is not None else None

    event = await eventually(look, within_seconds=PATIENCE_SECONDS)
    assert event is not None
    return int(event["last_status"])


async def test_workers_killed_after_the_reservation_leave_nothing_reserved(shop: RunningShop) -> None:
    """S55: a reservation has no time limit of its own, it lives as long as its order."""
    (order,) = await shop.prepared([BURNS_POINTS])
    faults = shop.url(shop.settings.sim_gateway_port, "/_sim/faults")
    hang = {"op": "create", "mode": "hang", "times": 100, "order_id": order.order_id}
    async with shop.http.post(faults, json=hang) as answer:
        fault = (await answer.json())["id"]
    await shop.place(order)

    async def reserved() -> bool:
        return (await shop.doors.available(order.case.sku)) < order.stock_before

    await eventually(reserved, within_seconds=PATIENCE_SECONDS)
    async with down(shop, "worker"), shop.http.delete(f"{faults}/{fault}") as answer:
        assert answer.ok
    await shop.finish([order])
    assert await reserved_pieces(shop, order.case.sku) == 0
    await shop.assert_books_hold()


async def reserved_pieces(shop: RunningShop, sku: str) -> int:
    """Pieces of one SKU that are set aside, over all warehouses."""
    async with shop.http.get(shop.url(shop.settings.ops_port, f"/ops/stock/{sku}")) as answer:
        return sum(place["reserved"] for place in (await answer.json())["warehouses"])


async def test_workers_killed_again_and_again_make_one_effect_at_each_service(shop: RunningShop) -> None:
    """S80: the same order is sent again meanwhile."""
    orders = await shop.prepared([SLOW_HOLD, BURNS_POINTS])

    async def disturb() -> None:
        for _ in range(2):
            await shop.stack.ready("worker")
            await asyncio.gather(*(shop.place(order) for order in orders))
            shop.stack.kill("worker")

    await shop.finish_while(orders, disturb)
    for order in orders:
        ledger = await gateway(shop, order)
        assert [intent["captured"] for intent in ledger["intents"]] == [order.case.kept]
        keys = {(call["op"], call["key"]) for call in ledger["calls"] if call["op"] not in {"read", "list"}}
        assert len(keys) == len({op for op, _ in keys}), keys
    await shop.assert_books_hold()


async def gateway(shop: RunningShop, order: Running) -> dict[str, Any]:
    """The gateway's own book about the order."""
    url = shop.url(shop.settings.sim_gateway_port, "/_sim/ledger")
    async with shop.http.get(url, params={"order_id": order.order_id}) as answer:
        found: dict[str, Any] = await answer.json()
        return found
