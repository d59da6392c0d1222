"""kill -9 of every part of the shop, in the middle of its work: no order ends differently, nothing happens twice."""

import random

import pytest

from demo.cases import CASES, Case
from domain.order import PaymentStatus
from tests.e2e.running import RunningShop

#: Most of it is waiting for the time-outs of what a killed worker was doing.
pytestmark = pytest.mark.timeout(600)

SEED = 20_261_130

#: What the demo's orders do not meet, or pass too quickly to be killed in.
MORE_CASES = (
    Case("capture-lost", "the gateway takes the money and cannot say so", faults=({"op": "capture", "mode": "drop"},)),
    Case("parcel-lost", "the courier books and cannot say so", postcode="50400"),
    Case("slow-hold", "the gateway is slow", faults=({"op": "confirm", "mode": "delay", "delay_ms": 2000},)),
    Case("slow-capture", "the gateway is slow", faults=({"op": "capture", "mode": "delay", "delay_ms": 2000},)),
)
ORDERS = (*CASES, *MORE_CASES)
#: The least number of stamps that they leave behind. Moments are told by stamps: a slow machine has the same ones.
STAMPS = 130

SOME_ORDERS = tuple(case for case in ORDERS if case.name in {"confirmed", "points", "declined", "capture-lost"})
SOME_STAMPS = 45
#: They wait for somebody outside, half an hour if need be.
WAITING_ORDERS = (
    Case("3-d-secure", "the bank wants to see the shopper", payment_method="pm_card_authenticationRequired"),
    Case("processing", "the bank takes its time", payment_method="pm_sim_never"),
)
WAITING = {PaymentStatus.REQUIRES_ACTION, PaymentStatus.PROCESSING}


async def test_a_worker_killed_twice_changes_no_order(shop: RunningShop) -> None:
    """S04, S80: at any moment; each service sees one effect."""
    orders = await shop.prepared(ORDERS)
    before, chance, half = await shop.stamps(), random.Random(SEED), STAMPS // 2

    async def kill_early_and_late() -> None:
        # No oftener: a step that can be undone has three tries, and each death of the worker may cost it one.
        for begin in (0, half):
            await shop.stack.ready("worker")
            await shop.until_stamps(before + begin + chance.randrange(1, half))
            shop.stack.kill("worker")

    await shop.finish_while(orders, kill_early_and_late)
    await shop.assert_books_hold()


@pytest.mark.parametrize("server", ["postgres", "simulators", "temporal"])
async def test_a_server_killed_while_orders_run_and_wait_changes_none_of_them(shop: RunningShop, server: str) -> None:
    running, waiting = await shop.prepared(SOME_ORDERS), await shop.prepared(WAITING_ORDERS)
    intents = [await shop.place_until_payment(one, WAITING) for one in waiting]
    moment = await shop.stamps() + random.Random(SEED).randrange(1, SOME_STAMPS)

    async def kill() -> None:
        await shop.until_stamps(moment)
        shop.stack.kill(server)

    await shop.finish_while(running, kill)
    for intent in intents:
        await shop.doors.late_yes(intent)
    await shop.finish(waiting)
    await shop.assert_books_hold()


async def test_an_order_whose_api_was_killed_between_its_answer_and_its_start_is_started(shop: RunningShop) -> None:
    """S83, S87: and the shopper, who asks again, has one order."""
    (order,) = await shop.prepared(CASES[:1])
    # Without Temporal the API cannot have started it before it dies: only the relay is left.
    shop.stack.pause_restarts("temporal")
    shop.stack.kill("temporal")
    try:
        await shop.place(order)
        shop.stack.kill("api")
    finally:
        shop.stack.resume_restarts("temporal")
    await shop.finish([order])
    await shop.assert_books_hold()
