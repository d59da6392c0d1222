"""Many parked orders, and one command: the good ones go on, the broken ones are left alone, nothing is done twice."""

import asyncio
from collections import Counter
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from adapters.parked import Wanted, read_parked
from domain.keys import Step
from domain.order import RedriveAction
from terminal.app import PLAIN_WIDTH
from terminal.operator.redrive import Word, exit_code, redrive_all
from terminal.shop import Shop as Doors
from tests.baskets import Basket
from tests.commands import Ended, command, plain_environment
from tests.conftest import MakeDatabase
from tests.gates import Gate, a_bug
from tests.shop import QUICK, Shop
from tests.workflows.skipping import shop_on, start_environment

#: Orders on their way at once.
AT_ONCE = 8
#: For many orders on a busy machine: none of their steps runs into a time-out.
UNHURRIED = QUICK.model_copy(update={"step_timeout_seconds": 60, "several_requests_timeout_seconds": 60})
DONE_BEFORE = (Step.OPEN_ORDER, Step.SCREEN_ORDER, Step.RESERVE_STOCK, Step.AUTHORIZE_PAYMENT)


async def ops(shop: Shop, home: Path, *words: str) -> Ended:
    """The command as a person types it, on this shop."""
    environment = plain_environment(
        home,
        DATABASE_URL=shop.settings.database_for("orders"),
        TEMPORAL_ADDRESS=shop.client.service_client.config.target_host,
        STRIPE_API_KEY="sk_test_of_the_tests",
        STRIPE_API_BASE=shop.simulators.gateway_url,
    )
    return await command(environment, "ops.py", *words, limit_seconds=600)


async def redrive(shop: Shop, which: Wanted, reason: str, *, first: int = 10, limit: int | None = None) -> Ended:
    """The same in this process: it spares each test the start of a command."""
    told = StringIO()
    word = Word(RedriveAction.RETRY, "eve", reason, first, wait_seconds=120)
    items = (await read_parked(shop.database, which))[:limit]
    doors = Doors(shop.settings, shop.database, shop.client)
    results = await redrive_all(doors, items, word, Console(file=told, width=PLAIN_WIDTH))
    return Ended(exit_code(results), told.getvalue(), "")


async def parked(shop: Shop, number: int, step: Step, error: Any = a_bug) -> list[tuple[Basket, Gate]]:
    """So many orders that are parked at this step, each with the gate that keeps it there, by their ids."""
    limit = asyncio.Semaphore(AT_ONCE)

    async def park() -> tuple[Basket, Gate]:
        async with limit:
            basket = await shop.basket()
            gate = shop.gates.fail(basket.order_id, step, error)
            await shop.place(basket)
            await shop.until_parked(basket.order_id, step)
            return basket, gate

    return sorted(await asyncio.gather(*(park() for _ in range(number))), key=lambda order: order[0].order_id)


def a_request_nobody_will_have() -> Exception:
    """Another bug, so another cause."""
    return LookupError("tests")


async def effects(shop: Shop, order_id: str) -> list[tuple[object, int]]:
    """How often each step before the parked one was called, and what the gateway was asked to do in them."""
    (intent,) = await shop.intents(order_id)
    asked = Counter(call["op"] for call in intent["calls"] if call["op"] in {"create", "confirm"})
    return [(step, shop.gates.calls(order_id, step)) for step in DONE_BEFORE] + sorted(asked.items())


async def assert_half_of_them_are_redriven(shop: Shop, number: int) -> None:
    """Every second one is truly broken; one `redrive` confirms the others and repeats nothing."""
    orders = await parked(shop, number, Step.BOOK_SHIPMENT)
    good, broken = orders[::2], orders[1::2]
    for _, gate in good:
        gate.open()
    before = [await effects(shop, basket.order_id) for basket, _ in orders]
    which = Wanted(step=Step.BOOK_SHIPMENT, error="ZeroDivisionError")
    ended = await redrive(shop, which, "ticket 1")
    assert (ended.code, ended.err) == (4, ""), ended.out
    assert f"{len(good)} went on, {len(broken)} came back" in ended.out
    for basket, _ in good:
        await shop.ended(basket.order_id)
        await shop.assert_clean(basket, basket.order_id)
        assert [item.closed_by for item in await shop.reviews(basket.order_id)] == ["eve"]
    for basket, _ in broken:
        view = await shop.view(basket.order_id)
        assert [(item.step, item.error) for item in view.needs_review] == [("book_shipment", "ZeroDivisionError")]
        came_back = [line for line in await shop.timeline(basket.order_id) if line.state == "came back from retry"]
        assert [(line.actor, line.reason) for line in came_back] == [("eve", "ZeroDivisionError: ticket 1")]
    assert [await effects(shop, basket.order_id) for basket, _ in orders] == before, "no completed step is repeated"
    for _, gate in broken:
        gate.open()
    assert (await redrive(shop, which, "mended")).code == 0
    for basket, _ in broken:
        await shop.ended(basket.order_id)
        await shop.assert_clean(basket, basket.order_id)


async def test_one_redrive_confirms_the_good_half_and_tries_each_of_the_broken_half_once(shop: Shop) -> None:
    await assert_half_of_them_are_redriven(shop, 12)


@pytest.mark.long
async def test_one_redrive_of_five_hundred_parked_orders_confirms_the_good_half(make_database: MakeDatabase) -> None:
    async with (
        await start_environment() as environment,
        shop_on(environment, make_database, UNHURRIED, provider_timeout_seconds=5) as shop,
    ):
        await assert_half_of_them_are_redriven(shop, 500)


async def test_a_cause_that_only_comes_back_stops_after_its_first_batch_and_another_cause_goes_on(
    shop: Shop,
) -> None:
    broken = await parked(shop, 6, Step.RESERVE_STOCK, a_request_nobody_will_have)
    good = await parked(shop, 4, Step.RESERVE_STOCK)
    for _, gate in good:
        gate.open()
    which = Wanted(step=Step.RESERVE_STOCK)

    async def came_back() -> dict[str, int]:
        items = await read_parked(shop.database, Wanted(step=Step.RESERVE_STOCK, error="LookupError"))
        return {item.order_id: item.redrives for item in items}

    ended = await redrive(shop, which, "ticket 2", first=2)
    assert ended.code == 4
    assert "a whole batch came to nothing, 4 were not tried" in ended.out
    for basket, _ in good:
        await shop.ended(basket.order_id)
        await shop.assert_clean(basket, basket.order_id)
    assert sorted((await came_back()).values()) == [0, 0, 0, 0, 1, 1]
    await redrive(shop, which, "ticket 2", first=2)
    assert sorted((await came_back()).values()) == [0, 0, 1, 1, 1, 1], "it begins with those that were not tried"
    for _, gate in broken:
        gate.open()
    assert (await redrive(shop, which, "mended")).code == 0
    for basket, _ in broken:
        await shop.ended(basket.order_id)


async def test_a_dry_run_sends_nothing_and_a_limit_leaves_the_rest(shop: Shop, tmp_path: Path) -> None:
    orders = await parked(shop, 3, Step.CAPTURE_PAYMENT)
    for _, gate in orders:
        gate.open()
    words = ("redrive", "--step", "capture_payment", "--error", "ZeroDivisionError")
    told = await ops(shop, tmp_path, *words, "--dry-run")
    assert (told.code, "retry would be sent to 3, nothing was" in told.out) == (0, True)
    assert all(basket.order_id in told.out for basket, _ in orders)
    assert len(await read_parked(shop.database, Wanted(step=Step.CAPTURE_PAYMENT, error="ZeroDivisionError"))) == 3
    assert (await ops(shop, tmp_path, *words, "--limit", "1", "--reason", "ticket 3")).code == 0
    items = await read_parked(shop.database, Wanted(step=Step.CAPTURE_PAYMENT, error="ZeroDivisionError"))
    assert len([item for item in items if item.order_id in {basket.order_id for basket, _ in orders}]) == 2
    assert (await redrive(shop, Wanted(step=Step.CAPTURE_PAYMENT, error="ZeroDivisionError"), "ticket 3")).code == 0
    for basket, _ in orders:
        await shop.ended(basket.order_id)
        await shop.assert_clean(basket, basket.order_id)


async def test_one_order_is_compensated_or_refused_in_words(shop: Shop, tmp_path: Path) -> None:
    ((basket, gate),) = await parked(shop, 1, Step.BOOK_SHIPMENT)
    order_id = basket.order_id
    wrong = await ops(shop, tmp_path, "redrive", order_id, "--action", "skip", "--reason", "ticket 4")
    assert (wrong.code, "book_shipment can only compensate, retry" in wrong.complaint) == (2, True)
    done = await ops(shop, tmp_path, "redrive", order_id, "--action", "compensate", "--reason", "ticket 4")
    assert (done.code, done.err) == (0, "")
    await shop.ended(order_id)
    await shop.assert_undone(basket, order_id, "CANCELLED_BY_OPERATOR")
    assert "nothing like that is parked" in (await redrive(shop, Wanted(order_id=order_id), "again")).out
    gate.open()


async def test_an_operator_cancels_and_a_reviewer_decides_by_name_and_reason(shop: Shop, tmp_path: Path) -> None:
    """Cancel, approve, refund; and each said too late."""
    cancelled, suspicious = await shop.basket(), await shop.basket(suffix="-score-95")
    gate = shop.gates.hold(cancelled.order_id, Step.RESERVE_STOCK)
    await shop.place(cancelled)
    await gate.reached()
    said = ("--reason", "ticket 5", "--actor", "eve")
    accepted = await ops(shop, tmp_path, "cancel", cancelled.order_id, *said)
    assert (accepted.code, accepted.err) == (0, "")
    gate.open()
    await shop.ended(cancelled.order_id)
    await shop.assert_undone(cancelled, cancelled.order_id, "CANCELLED_BY_OPERATOR")
    lines = [line for line in await shop.timeline(cancelled.order_id) if line.item == "COMPENSATING"]
    assert [(line.actor, line.reason) for line in lines] == [("eve", "CANCELLED_BY_OPERATOR: ticket 5")]
    await shop.place_in_real_time(suspicious)
    await shop.reaches(suspicious.order_id, "AWAITING_REVIEW")
    shown = (await ops(shop, tmp_path, "show", suspicious.order_id)).out
    assert f"ops.py review {suspicious.order_id} approve" in shown
    assert (await ops(shop, tmp_path, "review", suspicious.order_id, "approve", *said)).code == 0
    await shop.ended(suspicious.order_id)
    await shop.assert_clean(suspicious, suspicious.order_id)
    sold = (await ops(shop, tmp_path, "show", suspicious.order_id)).out
    assert "gives back up to 50.00 EUR" in sold
    taken = await ops(shop, tmp_path, "refund", suspicious.order_id, "--amount", "500", "--key", "ticket-5", *said)
    assert (taken.code, taken.out.startswith("refund ticket-5 of 5.00 EUR is taken")) == (0, True), taken.err
    above = await ops(shop, tmp_path, "refund", suspicious.order_id, "--amount", "5000", *said)
    assert (above.code, above.out.startswith("refused, ")) == (3, True)
    late = await ops(shop, tmp_path, "cancel", suspicious.order_id, *said)
    assert (late.code, late.out.startswith("refused, too-late: ")) == (3, True)
    again = await ops(shop, tmp_path, "review", suspicious.order_id, "reject", *said)
    assert (again.code, again.out.startswith("refused, no-such-wait: ")) == (3, True)


async def test_what_an_undo_would_do_is_told_before_and_is_what_is_done(shop: Shop, tmp_path: Path) -> None:
    basket = await shop.basket(credit=1000)
    bug = shop.gates.fail(basket.order_id, Step.CAPTURE_PAYMENT, a_bug)
    order_id = await shop.place(basket, points=500, store_credit=1000)
    await shop.until_parked(order_id, Step.CAPTURE_PAYMENT)
    shown = (await ops(shop, tmp_path, "show", order_id)).out
    (parcel,) = await shop.shipments(order_id)
    told = [line.strip() for line in shown.splitlines() if line.strip().startswith("- ")]
    assert told == [
        f"- cancel parcel {parcel['id']} from main",
        "- void the hold of 35.00 EUR",
        "- give back 10.00 EUR of store credit",
        "- restore 500 points",
        *(f"- release 1 × {sku} in main" for sku in sorted((basket.a, basket.b))),
    ]
    assert "the gateway now: requires_capture: 35.00 EUR held, 0.00 EUR taken" in shown
    assert (await ops(shop, tmp_path, "redrive", order_id, "--action", "compensate", "--reason", "t")).code == 0
    await shop.ended(order_id)
    await shop.assert_undone(basket, order_id, "CANCELLED_BY_OPERATOR")
    shown = (await ops(shop, tmp_path, "show", order_id)).out
    assert "nothing is parked, and nothing is left to do" in shown
    assert "no goods, points or credit" in shown
    bug.open()
