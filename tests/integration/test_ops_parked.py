"""What an operator sees of parked orders and of one order, through the commands as a person types them."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
import pytest_asyncio

from adapters.database import Database
from adapters.reviews import open_review
from domain.keys import Step
from domain.messages import ParkedStep
from domain.order import ParkKind
from runtime.ports import free_port
from tests.builders import an_accepted_order
from tests.commands import Ended, command, plain_environment

Ops = Callable[..., Awaitable[Ended]]


@pytest_asyncio.fixture
async def ops(database: Database, tmp_path: Path) -> AsyncIterator[Ops]:
    """`await ops("parked", …)`: the command on this database; nothing else answers."""
    environment = plain_environment(
        tmp_path,
        DATABASE_URL=database.url.replace("postgresql+psycopg", "postgresql"),
        TEMPORAL_ADDRESS=f"127.0.0.1:{free_port()}",
    )

    async def run(*words: str) -> Ended:
        return await command(environment, "ops.py", *words)

    yield run


async def a_parked_order(
    database: Database, step: Step, error: str, *, item: str = "", kind: ParkKind = ParkKind.DECISION
) -> str:
    order_id = await an_accepted_order(database)
    parked = ParkedStep(order_id=order_id, step=step, item=item, kind=kind, error=error, since=datetime.now(UTC))
    async with database.begin() as connection:
        await open_review(connection, parked)
    return order_id


async def test_parked_orders_are_told_by_cause_and_one_by_one(database: Database, ops: Ops) -> None:
    captures = [await a_parked_order(database, Step.CAPTURE_PAYMENT, "GatewayProtocolError") for _ in range(3)]
    booking = await a_parked_order(database, Step.BOOK_SHIPMENT, "KeyError", item="berlin")
    ended = await ops("parked")
    assert ended.code == 4
    groups, orders = ended.out.split("\n\n")
    assert [line.split()[:4] for line in groups.splitlines()[1:]] == [
        ["capture_payment", "DECISION", "GatewayProtocolError", "3"],
        ["book_shipment", "DECISION", "KeyError", "1"],
    ]
    assert [order_id in orders for order_id in (*captures, booking)] == [True] * 4
    assert "book_shipment berlin" in orders
    filtered = await ops("parked", "--error", "KeyError", "--json")
    assert [one["order_id"] for one in json.loads(filtered.out)] == [booking]
    assert (await ops("parked", "--older-than", "2h")).out == "nothing is parked\n"
    assert (await ops("parked", "--step", "dance")).complaint.startswith("--step: one of open_order, ")
    assert (await ops("parked", "--older-than", "soon")).complaint == "--older-than: write 90s, 15m, 2h or 3d"


async def test_one_order_is_shown_with_what_each_word_would_do(database: Database, ops: Ops) -> None:
    order_id = await a_parked_order(database, Step.RESERVE_STOCK, "KeyError")
    shown = (await ops("show", order_id)).out
    assert f"order {order_id} of customer ada: NEEDS_REVIEW" in shown
    assert "PARKED at reserve_stock since" in shown
    assert f"→ .venv/bin/python ops.py redrive {order_id} --step reserve_stock --action retry --reason '…'" in shown
    assert (
        f"→ .venv/bin/python ops.py redrive {order_id} --step reserve_stock --action compensate --reason '…'" in shown
    )
    told = json.loads((await ops("show", order_id, "--json")).out)
    assert [action["action"] for action in told["parked"][0]["actions"]] == ["retry", "compensate"]
    assert "there is no order with this id" in (await ops("show", "nobody")).complaint


async def test_a_hold_is_placed_shown_and_released_by_name(database: Database, ops: Ops) -> None:
    assert (await ops("hold", "intake", "--reason", "stocktaking", "--actor", "eve")).code == 0
    assert "is on hold already" in (await ops("hold", "intake", "--reason", "me too")).out
    shown = (await ops("status")).out
    assert "ON HOLD intake: by eve since" in shown
    assert "stocktaking" in shown
    assert [one["party"] for one in json.loads((await ops("status", "--json")).out)["holds"]] == ["intake"]
    assert "intake is released" in (await ops("release", "intake", "--reason", "done", "--actor", "eve")).out
    assert "intake was not on hold" in (await ops("release", "intake", "--reason", "done")).out
    assert "nothing is on hold" in (await ops("status")).out


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("hold", "moon", "--reason", "x"), "'moon' is not one of 'gateway', 'courier', 'intake'"),
        (("redrive", "--reason", "all of them"), "name an ORDER, or which ones"),
        (("redrive", "--step", "open_order"), "--reason: say why"),
        (("hold", "gateway"), "Missing option '--reason'"),
        (("hold", "gateway", "--reason", " "), "--reason: 1 to 200 characters"),
        (("hold", "gateway", "--reason", "x", "--actor", "two words"), "--actor: 1 to 128 visible"),
    ],
)
async def test_what_was_typed_wrong_is_one_line(ops: Ops, words: tuple[str, ...], complaint: str) -> None:
    ended = await ops(*words)
    assert (ended.code, complaint in ended.complaint) == (2, True), ended.err
