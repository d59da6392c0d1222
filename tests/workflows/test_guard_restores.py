"""Our database comes back older than what the providers and Temporal know: nothing of it stays silent."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import psycopg
import pytest
import pytest_asyncio
from psycopg import sql
from sqlalchemy import make_url

from domain.keys import Step
from domain.reconciliation import FindingKind, RunKind
from runtime.postgres import ADMIN, PostgresServer
from tests.baskets import Basket
from tests.conftest import MakeDatabase
from tests.gates import Gate
from tests.guarding import about, kinds, reconcile
from tests.shop import Shop
from tests.workflows.skipping import shop_on, start_environment

#: Before which step a copy of the database is taken, and what the operator says. Each exchange takes seconds.
CASES = [
    (Step.AUTHORIZE_PAYMENT, "retry"),
    (Step.OPEN_ORDER, "compensate"),
    *(
        pytest.param(step, action, marks=pytest.mark.long)
        for step in (Step.OPEN_ORDER, Step.RESERVE_STOCK, Step.BOOK_SHIPMENT, Step.CAPTURE_PAYMENT)
        for action in ("retry", "compensate")
        if (step, action) != (Step.OPEN_ORDER, "compensate")
    ),
]


@pytest_asyncio.fixture(scope="module")
async def shop(make_database: MakeDatabase) -> AsyncIterator[Shop]:
    """A shop of its own, whose database is exchanged."""
    async with await start_environment() as environment, shop_on(environment, make_database) as shop:
        yield shop


@asynccontextmanager
async def alone(postgres: PostgresServer, name: str) -> AsyncIterator[psycopg.AsyncConnection]:
    """Nobody is connected to the database, or can be, until the block ends."""
    allow = sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS {}")
    connection = await psycopg.AsyncConnection.connect(postgres.url("postgres", ADMIN), autocommit=True)
    async with connection:
        await connection.execute(allow.format(sql.Identifier(name), sql.SQL("false")))
        await connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", (name,))
        try:
            yield connection
        finally:
            await connection.execute(allow.format(sql.Identifier(name), sql.SQL("true")))


async def copy(shop: Shop, postgres: PostgresServer) -> str:
    """A copy of the database as it is now; its name."""
    name = str(make_url(shop.database.url).database)
    there = sql.Identifier(name), sql.Identifier(f"copy_of_{name}")
    async with alone(postgres, name) as connection:
        await connection.execute(sql.SQL("DROP DATABASE IF EXISTS {}").format(there[1]))
        await connection.execute(sql.SQL("CREATE DATABASE {1} TEMPLATE {0}").format(*there))
    return f"copy_of_{name}"


async def restore(shop: Shop, postgres: PostgresServer, copied: str) -> None:
    """The copy takes the place of the database."""
    name = str(make_url(shop.database.url).database)
    async with alone(postgres, name) as connection:
        await connection.execute(sql.SQL("ALTER DATABASE {} RENAME TO {}").format(*map(sql.Identifier, (name, "old"))))
        rename = sql.SQL("ALTER DATABASE {} RENAME TO {}")
        await connection.execute(rename.format(sql.Identifier(copied), sql.Identifier(name)))
        await connection.execute("DROP DATABASE old")


async def restored_to(shop: Shop, postgres: PostgresServer, basket: Basket, step: Step) -> None:
    """The order is confirmed, and our books are put back to where this step was about to begin."""
    gate: Gate = shop.gates.hold(basket.order_id, step)
    await shop.place(basket)
    await gate.reached()
    copied = await copy(shop, postgres)
    gate.open()
    await shop.ended(basket.order_id)
    await shop.assert_clean(basket, basket.order_id)
    await restore(shop, postgres, copied)


@pytest.mark.parametrize(("step", "action"), CASES)
async def test_an_order_that_the_restored_books_have_earlier_is_asked_about_and_then_the_books_agree(
    shop: Shop, postgres: PostgresServer, step: Step, action: str
) -> None:
    basket = await shop.basket()
    await restored_to(shop, postgres, basket, step)
    report = await reconcile(shop)
    assert FindingKind.LAGGING_ORDER in kinds(report, basket.order_id)
    await shop.until_parked(basket.order_id, "open_order", kind="DECISION")
    assert await shop.redrive(basket.order_id, "open_order", action) == 202
    await shop.ended(basket.order_id)
    for kind in RunKind:
        for finding in about(await reconcile(shop, kind), basket.order_id):
            assert finding.action, "what is left behind is given back by a message"
            await shop.client.get_workflow_handle(finding.action.partition(" ")[0]).result()
    if action == "retry":
        await shop.assert_clean(basket, basket.order_id)
    else:
        await shop.assert_undone(basket, basket.order_id, "CANCELLED_BY_OPERATOR")
    assert about(await reconcile(shop), basket.order_id) == []


async def test_an_order_that_the_restored_books_do_not_have_is_found_with_its_money_and_its_parcel(
    shop: Shop, postgres: PostgresServer
) -> None:
    copied = await copy(shop, postgres)
    basket = await shop.basket()
    await shop.place(basket)
    await shop.ended(basket.order_id)
    [intent], [parcel] = await shop.intents(basket.order_id), await shop.shipments(basket.order_id)
    await restore(shop, postgres, copied)
    report = await reconcile(shop)
    assert kinds(report, basket.order_id) == [FindingKind.RUN_WITHOUT_ORDER]
    assert kinds(report, intent["id"]) == [FindingKind.UNKNOWN_PAYMENT]
    assert kinds(report, parcel["id"]) == [FindingKind.UNKNOWN_PARCEL]
    assert [one.action for one in about(report, basket.order_id, intent["id"], parcel["id"])] == [None] * 3
