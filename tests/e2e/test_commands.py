"""starter.py and ops.py against a whole running shop."""

import json

import psycopg
import pytest

from tests.builders import an_order_document
from tests.commands import Ended
from tests.e2e.running import RunningShop


class Desk:
    """Commands beside the running shop, which they find by its `stack.env`."""

    def __init__(self, shop: RunningShop) -> None:
        self.run = shop.run
        self.home = shop.home
        self._url = shop.settings.database_for("orders")

    async def order(self, *words: str) -> Ended:
        """Places an order."""
        return await self.run("starter.py", "order", *words)

    async def write(self, statement: str, *values: str) -> None:
        """Past all code of ours."""
        async with await psycopg.AsyncConnection.connect(self._url, autocommit=True) as connection:
            await connection.execute(statement.encode(), values)


@pytest.fixture
def desk(shop: RunningShop) -> Desk:
    return Desk(shop)


def order_id(ended: Ended) -> str:
    """The id that the command printed first."""
    return ended.out.split()[1]


async def test_an_order_is_followed_to_its_confirmation(desk: Desk) -> None:
    ended = await desk.order("--points", "500", "--store-credit", "200", "--watch")
    assert (ended.code, ended.err) == (0, "")
    lines = ended.out.splitlines()
    assert lines[0] == f"order     {order_id(ended)} accepted: PENDING"
    assert lines[1] == f"workflow  order-{order_id(ended)}"
    assert lines[2].endswith(f"/namespaces/default/workflows/order-{order_id(ended)}")
    steps = [line.split()[2] for line in lines[3:-1]]
    assert [step for step in steps if step in {"open_order", "capture_payment", "confirm_order", "commit_stock"}] == [
        "open_order",
        "capture_payment",
        "capture_payment",
        "confirm_order",
        "commit_stock",
    ]
    assert lines[-1].startswith(f"Order {order_id(ended)} ended CONFIRMED after ")


async def test_an_order_that_is_undone_ends_with_3_and_says_why(desk: Desk) -> None:
    ended = await desk.order("--payment-method", "pm_card_chargeDeclined", "--watch")
    assert (ended.code, ended.err) == (3, "")
    assert "ended CANCELLED_COMPENSATED, CARD_DECLINED" in ended.out.splitlines()[-1]


async def test_the_same_key_is_the_same_order(desk: Desk) -> None:
    (desk.home / "order.json").write_text(
        json.dumps(an_order_document(lines=[{"sku": "tea-green", "quantity": 2}], payment_method="pm_sim_never"))
    )
    first = await desk.order("order.json", "--key", "4711")
    again = await desk.order("order.json", "--key", "4711", "--watch", "--timeout", "0")
    assert first.code == 0
    assert "is known already" in again.out
    assert order_id(again) == order_id(first)
    assert again.code == 5
    assert "is still open" in again.out.splitlines()[-1]


async def test_many_orders_are_placed_at_a_pace_and_summed_up(desk: Desk) -> None:
    ended = await desk.order("--count", "5", "--rate", "50", "--watch")
    assert (ended.code, ended.err) == (0, "")
    assert "accepted 5, ended 5 of 5" in ended.out
    assert ["CONFIRMED", "5"] in [line.split() for line in ended.out.splitlines()]


async def test_status_and_list_show_what_was_ordered(desk: Desk) -> None:
    placed = order_id(await desk.order("--line", "kettle-steel=1", "--watch"))
    listed = await desk.run("starter.py", "list", "--status", "CONFIRMED")
    assert placed in listed.out
    shown = await desk.run("starter.py", "status", placed)
    for word in ("CONFIRMED", "1 × kettle-steel", "captured 49.00 EUR", "BOOKED", "commit_stock"):
        assert word in shown.out
    assert "Alice Example" not in shown.out


async def test_the_books_hold_until_they_do_not(desk: Desk) -> None:
    placed = order_id(await desk.order("--watch"))
    for words in (("ops.py", "prove"), ("ops.py", "prove", placed)):
        ended = await desk.run(*words)
        assert (ended.code, ended.err) == (0, ""), ended.out
        assert "lines hold" in ended.out.splitlines()[-1]
    await desk.write("UPDATE shipments SET status = 'CANCELLED' WHERE order_id = %s", placed)
    ended = await desk.run("ops.py", "prove")
    assert ended.code == 1
    assert f"FAILS a confirmed order has a shipment from each warehouse: {placed}: " in ended.out
    ended = await desk.run("ops.py", "prove", placed, "--json")
    assert ended.code == 1
    found = json.loads(ended.out)
    assert {line["name"] for line in found["lines"] if not line["holds"]} == {
        "a confirmed order has a shipment from each warehouse",
        "live shipments at the courier = booked",
    }
    await desk.write("UPDATE shipments SET status = 'BOOKED' WHERE order_id = %s", placed)


async def test_an_open_order_without_a_run_is_found(desk: Desk) -> None:
    placed = order_id(await desk.order("--payment-method", "pm_sim_never", "--watch", "--timeout", "0"))
    await desk.write("UPDATE orders SET updated_at = updated_at - interval '1 hour' WHERE order_id = %s", placed)
    assert (await desk.run("ops.py", "prove", placed)).code == 0
    orphan = f"{placed[:-1]}0"
    await desk.write(
        "INSERT INTO orders (order_id, customer_id, status, stage, currency, total, amount_due, correlation_id,"
        " updated_at) VALUES (%s, 'bob', 'PENDING', 'PENDING', 'EUR', 100, 100, 'c', now() - interval '1 hour')",
        orphan,
    )
    ended = await desk.run("ops.py", "prove")
    assert ended.code == 1
    assert f"FAILS every open order has a run: {orphan}: was never started" in ended.out
    await desk.write("DELETE FROM orders WHERE order_id = %s", orphan)
