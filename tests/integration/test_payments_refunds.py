"""An operator's refund takes its place under the cap of what was captured, before the gateway is asked."""

import asyncio

from sqlalchemy import update

from adapters.payments import read_terms, record_reading
from adapters.refunds import newest_number, next_number, open_refund
from adapters.settlement import record_disputes
from adapters.stripe_answers import Dispute
from adapters.tables import orders, refunds
from domain.keys import EffectKey, Step
from domain.messages import RefundAsked, RefundOpened
from domain.order import OrderStatus, RefundRefusal
from tests.integration.attempts import until_somebody_waits
from tests.integration.till import DUE, Till


async def a_sold_order(till: Till) -> str:
    """A confirmed order whose money is taken."""
    order_id = await till.a_captured_order()
    async with till.database.begin() as connection:
        sold = update(orders).where(orders.c.order_id == order_id)
        await connection.execute(sold.values(status=OrderStatus.CONFIRMED.value, stage=OrderStatus.CONFIRMED.value))
    return order_id


async def opened(till: Till, order_id: str, name: str, amount: int) -> RefundOpened:
    asked = RefundAsked(refund_id=name, amount=amount, actor="olga", reason="a broken cup")
    async with till.database.begin() as connection:
        return await open_refund(connection, order_id, await read_terms(connection, order_id), asked)


async def test_of_two_refunds_at_once_the_second_sees_the_first(till: Till) -> None:
    order_id = await a_sold_order(till)
    asked = RefundAsked(refund_id="first", amount=1000, actor="olga", reason="a broken cup")
    async with till.database.begin() as connection:
        await open_refund(connection, order_id, await read_terms(connection, order_id), asked)
        second = asyncio.create_task(opened(till, order_id, "second", 1000))
        await until_somebody_waits(till.database)
    assert (await second).refusal is RefundRefusal.REFUND_OPEN


async def test_a_name_stands_for_the_first_refund_that_was_asked_for_by_it(till: Till) -> None:
    order_id = await a_sold_order(till)
    first = await opened(till, order_id, "first", 1000)
    for amount in (1000, 1200):
        again = await opened(till, order_id, "first", amount)
        assert (again.amount, again.asked, again.refusal) == (1000, first.asked, None)


async def test_a_retry_of_a_refund_that_came_back_finds_no_room_when_another_has_taken_it(till: Till) -> None:
    order_id = await a_sold_order(till)
    key = EffectKey(order_id, Step.REFUND_PAYMENT, item="first")
    await opened(till, order_id, "first", 3000)
    async with till.database.begin() as connection:
        await connection.execute(update(refunds).where(refunds.c.refund_key == str(key)).values(status="failed"))
    assert (await opened(till, order_id, "second", 3000)).refusal is None
    async with till.database.begin() as connection:
        came_back = await newest_number(connection, key)
        assert await next_number(connection, key, came_back, "a retry") is None


async def test_disputed_money_is_not_refunded_and_a_reading_of_its_intent_does_not_clear_it_up(till: Till) -> None:
    order_id = await a_sold_order(till)
    intent = await till.gateway.read_intent((await till.row(order_id)).intent_id)
    async with till.database.begin() as connection:
        await record_disputes(connection, order_id, [Dispute(f"dp_{order_id}", DUE, won=False, closed=False)])
    async with till.database.begin() as connection:
        await record_reading(connection, order_id, intent, [])
    assert (await till.row(order_id)).status == "DISPUTED"
    assert (await opened(till, order_id, "first", 1000)).refusal is RefundRefusal.DISPUTED
