"""Totals for metrics: each fact counts once, in its own transaction, whoever writes it."""

import asyncio
from dataclasses import replace
from runpy import run_path

import pytest
from alembic.migration import MigrationContext
from alembic.operations import Operations
from sqlalchemy import Connection, text

from adapters.database import Database
from adapters.reviews import change_stage
from adapters.steps import stamp
from adapters.tallies import BOUNDS, Totals, read_totals
from domain.keys import EffectKey, Step
from domain.messages import StatusChange
from domain.order import CancelReason, OrderStatus, StepState
from tests.builders import an_accepted_order
from tests.imports import ROOT


async def totals(database: Database) -> Totals:
    async with database.begin() as connection:
        return await read_totals(connection)


async def moves(database: Database, order_id: str, status: OrderStatus, reason: CancelReason | None = None) -> None:
    async with database.begin() as connection:
        await change_stage(connection, StatusChange(order_id=order_id, status=status, reason=reason))


async def stamps(database: Database, order_id: str, *states: StepState, revision: int = 1) -> None:
    for state in states:
        async with database.begin() as connection:
            await stamp(connection, EffectKey(order_id, Step.CAPTURE_PAYMENT, revision=revision), state)


async def test_an_order_counts_when_it_is_accepted_and_when_it_ends_and_never_twice(database: Database) -> None:
    sold, undone = await an_accepted_order(database), await an_accepted_order(database)
    for _ in range(2):
        await moves(database, sold, OrderStatus.CONFIRMED)
        await moves(database, undone, OrderStatus.COMPENSATING, CancelReason.OUT_OF_STOCK)
        await moves(database, undone, OrderStatus.CANCELLED_COMPENSATED)
    found = await totals(database)
    assert found.accepted == 2
    assert found.ended == [(("CANCELLED_COMPENSATED", "OUT_OF_STOCK"), 1), (("CONFIRMED", ""), 1)]
    assert sum(found.confirmed_within) == 1


async def test_what_is_rolled_back_does_not_count(database: Database) -> None:
    order_id, before = await an_accepted_order(database), await totals(database)
    async with database.begin() as connection:
        await change_stage(connection, StatusChange(order_id=order_id, status=OrderStatus.CONFIRMED))
        await connection.rollback()
    assert await totals(database) == before


async def test_the_time_to_confirmation_falls_into_the_bucket_that_is_told(database: Database) -> None:
    for number, bound in enumerate((*BOUNDS, BOUNDS[-1] * 2)):
        order_id = await an_accepted_order(database)
        seconds = bound * 0.9 if number < len(BOUNDS) else bound
        async with database.begin() as connection:
            moved = text("UPDATE orders SET created_at = now() - make_interval(secs => :age) WHERE order_id = :order")
            await connection.execute(moved, {"age": seconds, "order": order_id})
        await moves(database, order_id, OrderStatus.CONFIRMED)
    found = await totals(database)
    assert list(found.confirmed_within) == [1] * (len(BOUNDS) + 1)
    assert found.confirmed_seconds == pytest.approx(sum(BOUNDS) * 0.9 + BOUNDS[-1] * 2, rel=0.01)


async def test_orders_side_by_side_all_count(database: Database) -> None:
    await asyncio.gather(*(an_accepted_order(database) for _ in range(30)))
    assert (await totals(database)).accepted == 30


@pytest.mark.parametrize("how", [StepState.DONE, StepState.REFUSED, StepState.UNDONE, StepState.WAIVED])
async def test_an_outcome_becomes_unknown_once_and_known_once(database: Database, how: StepState) -> None:
    order_id = await an_accepted_order(database)
    await stamps(database, order_id, StepState.INTENDED, StepState.UNKNOWN, StepState.UNKNOWN)
    await stamps(database, order_id, StepState.UNKNOWN, revision=2)
    unknown = await totals(database)
    assert (unknown.unknown, unknown.resolved) == ({"capture_payment": 1}, [])
    await stamps(database, order_id, how, how, StepState.DONE, StepState.UNDONE)
    known = replace(unknown, resolved=[(("capture_payment", how.value), 1)])
    assert await totals(database) == known


async def test_an_outcome_that_was_always_known_is_not_counted(database: Database) -> None:
    await stamps(database, await an_accepted_order(database), StepState.INTENDED, StepState.DONE)
    found = await totals(database)
    assert (found.unknown, found.resolved) == ({}, [])


async def test_money_is_late_on_an_order_that_did_not_happen_and_on_no_other(database: Database) -> None:
    sold, undone = await an_accepted_order(database), await an_accepted_order(database)
    await moves(database, sold, OrderStatus.CONFIRMED)
    await moves(database, undone, OrderStatus.REJECTED, CancelReason.UNKNOWN_SKU)
    async with database.begin() as connection:
        for order_id in (sold, undone):
            moved = """
                INSERT INTO money_movements (key, order_id, intent_id, kind, currency, amount)
                SELECT :order || kind, :order, 'pi', kind, 'EUR', 1 FROM unnest(ARRAY['captured', 'refunded']) AS kind
            """
            await connection.execute(text(moved), {"order": order_id})
    assert (await totals(database)).late_money == {"captured": 1, "refunded": 1}


def counted_anew(connection: Connection) -> None:
    """The totals are made again, as on the day when they were first kept."""
    for table in ("outbox", "order_steps", "money_movements"):
        connection.execute(text(f"DROP FUNCTION tally_{table} CASCADE"))
    connection.execute(text("DROP TABLE tallies"))
    with Operations.context(MigrationContext.configure(connection)):
        run_path(str(ROOT / "migrations" / "versions" / "0005_tallies.py"))["upgrade"]()


async def test_what_happened_before_totals_were_kept_is_counted_when_they_are_made(database: Database) -> None:
    sold, undone = await an_accepted_order(database), await an_accepted_order(database)
    await moves(database, sold, OrderStatus.CONFIRMED)
    await moves(database, undone, OrderStatus.REJECTED, CancelReason.UNKNOWN_SKU)
    await stamps(database, undone, StepState.INTENDED, StepState.UNKNOWN, StepState.DONE)
    before = await totals(database)
    async with database.begin() as connection:
        await connection.run_sync(counted_anew)
    assert await totals(database) == before
    await moves(database, await an_accepted_order(database), OrderStatus.CONFIRMED)
    assert (await totals(database)).accepted == before.accepted + 1
