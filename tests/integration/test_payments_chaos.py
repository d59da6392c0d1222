"""Whatever goes wrong at the gateway, in any order: nobody is left charged, and the books say what the gateway says.

Each order gets its own random story from a seed: attempts, undos and look-ups at once, with faults in their way.
"""

import asyncio
import random
from typing import Any

import pytest

from domain.errors import OrderError
from domain.order import PaymentStatus
from tests.integration.till import DUE, Till
from tests.polling import eventually

ORDERS_A_SEED = 6
FAULTS: list[dict[str, Any]] = [
    {"mode": "drop"},
    {"mode": "error", "status": 500},
    {"mode": "error", "status": 502},
    {"mode": "error", "status": 503},
    {"mode": "conflict"},
    {"mode": "answer", "body": "<html>All good.</html>"},
    {"mode": "delay", "delay_ms": 30},
]
OPS = ["create", "confirm", "capture", "cancel", "refund", "read"]


async def a_story(till: Till, chance: random.Random) -> str:
    order_id = await till.order(chance.choice(["pm_card_visa", "pm_card_visa", "pm_sim_silent"]))
    for _ in range(chance.randint(1, 6)):
        await till.desk.fault(
            op=chance.choice(OPS), order_id=order_id, times=chance.randint(1, 2), **chance.choice(FAULTS)
        )
    steps = [till.authorize, till.read, till.capture, till.capture, till.release]
    for number in range(chance.randint(3, 6)):
        choices = steps[: 1 if number == 0 else len(steps)]
        together = (chance.choice(choices)(order_id) for _ in range(chance.randint(1, 3)))
        for outcome in await asyncio.gather(*together, return_exceptions=True):
            # Faults and fences are told in our own words, whatever happens.
            assert not isinstance(outcome, Exception) or isinstance(outcome, OrderError), repr(outcome)
    return order_id


async def undo(till: Till, order_id: str) -> bool:
    """One more attempt at the undo: whether it is done."""
    try:
        return (await till.release(order_id)).status is not PaymentStatus.REFUND_PENDING
    except OrderError:
        return False


@pytest.mark.parametrize("seed", range(6))
async def test_after_the_undo_nobody_is_left_charged_and_the_books_agree(till: Till, seed: int) -> None:
    chance = random.Random(seed)
    stories = [a_story(till, random.Random(chance.random())) for _ in range(ORDERS_A_SEED)]
    for order_id in await asyncio.gather(*stories):
        await till.forget_faults()
        await eventually(lambda order_id=order_id: undo(till, order_id))  # type: ignore[misc]
        assert (await till.held(order_id), await till.kept(order_id)) == (0, 0)
        row = await till.row(order_id)
        intents = await till.intents(order_id)
        assert sum(intent["captured"] for intent in intents) in {0, DUE}
        if row is not None:
            own = next(intent for intent in intents if intent["id"] == row.intent_id)
            assert (row.captured, row.refunded) == (own["captured"], own["refunded"])
            assert sum(amount for kind, amount in await till.movements(order_id) if kind == "refunded") == row.refunded


@pytest.mark.parametrize("seed", range(6, 10))
async def test_whatever_was_in_the_way_the_money_is_taken_once(till: Till, seed: int) -> None:
    chance = random.Random(seed)
    order_id = await till.order()
    for op in ("create", "confirm", "capture", "read"):
        await till.desk.fault(op=op, order_id=order_id, times=chance.randint(1, 2), **chance.choice(FAULTS))

    async def taken() -> bool:
        for step in (till.authorize, till.capture):
            await asyncio.gather(step(order_id), step(order_id), return_exceptions=True)
        row = await till.row(order_id)
        return row is not None and row.status == "CAPTURED"

    await eventually(taken)
    assert (await till.held(order_id), await till.kept(order_id)) == (0, DUE)
    assert await till.movements(order_id) == [("authorized", DUE), ("captured", DUE)]
