"""Readings of the gateway may be recorded late, twice or at once: what is known already is never taken back."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from adapters.payments import Payment, mark_declined, record_reading
from adapters.stripe_answers import Intent, Refund, RefundStatus
from tests.integration.attempts import until_somebody_waits
from tests.integration.till import DUE, Till


async def reading(till: Till, order_id: str) -> Intent:
    """What the gateway says of the order's intent now."""
    return await till.gateway.read_intent((await till.row(order_id)).intent_id)


async def record(till: Till, order_id: str, intent: Intent, refunds: Sequence[Refund] = ()) -> Payment:
    async with till.database.begin() as connection:
        return await record_reading(connection, order_id, intent, refunds)


async def test_an_older_reading_that_is_recorded_later_takes_nothing_back(till: Till) -> None:
    taken, freed = await till.a_held_order(), await till.a_held_order()
    older = {order_id: await reading(till, order_id) for order_id in (taken, freed)}
    await till.capture(taken)
    await till.release(freed)
    for order_id, status, captured in ((taken, "CAPTURED", DUE), (freed, "VOIDED", 0)):
        await record(till, order_id, older[order_id])
        row = await till.row(order_id)
        assert (row.status, row.authorized, row.captured) == (status, DUE, captured)


async def test_an_older_reading_of_a_refund_that_is_recorded_later_takes_nothing_back(till: Till) -> None:
    order_id = await till.a_captured_order()
    intent = await reading(till, order_id)
    sent_back = Refund(f"re_{order_id}", RefundStatus.FAILED, DUE, f"{order_id}:refund")
    for refund in (sent_back, replace(sent_back, status=RefundStatus.PENDING)):
        await record(till, order_id, intent, [refund])
        assert await till.refund_rows(order_id) == [("failed", DUE)]
        assert (await till.row(order_id)).status == "CAPTURED"


async def test_two_readings_at_once_are_recorded_one_after_the_other(till: Till) -> None:
    order_id = await till.a_held_order()
    held = await reading(till, order_id)
    await till.desk.intents.capture_async(held.id)
    taken = await reading(till, order_id)

    async with till.database.begin() as connection:
        await record_reading(connection, order_id, taken, ())
        older = asyncio.create_task(record(till, order_id, held))
        await until_somebody_waits(till.database)
    assert (await older).captured == DUE
    row = await till.row(order_id)
    assert (row.status, row.captured) == ("CAPTURED", DUE)


async def test_a_refusal_that_is_recorded_late_says_nothing_about_money_that_is_held(till: Till) -> None:
    order_id = await till.a_held_order()
    async with till.database.begin() as connection:
        await mark_declined(connection, order_id)
    assert (await till.row(order_id)).status == "AUTHORIZED"
