"""`make up --split`: the same endings as in one process, and a party that is down only makes its orders wait."""

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from demo.cases import CASES
from domain.order import StepState
from tests.e2e.doors import PATIENCE_SECONDS
from tests.e2e.running import FIRST_STEPS, RunningShop, running_shop
from tests.polling import eventually
from workflows.names import Queue

#: Six processes of Python start side by side, and steps of a killed worker are tried again after their time-out.
pytestmark = pytest.mark.timeout(600)

BY_NAME = {case.name: case for case in CASES}


@pytest_asyncio.fixture(scope="module")
async def shop(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RunningShop]:
    """A shop with a worker for each party."""
    async with running_shop(tmp_path_factory.mktemp("split"), split=True) as running:
        yield running


async def test_orders_end_as_they_do_in_one_process(shop: RunningShop) -> None:
    names = ("confirmed", "points", "declined", "sold-out", "no-courier", "cancelled")
    await shop.finish(await shop.prepared([BY_NAME[name] for name in names]))
    await shop.assert_books_hold()
    told = await shop.metrics()
    assert told.keys() == {"api", *(f"worker-{party}" for party in Queue)}
    assert "orders_accepted_total 6.0" in told["api"]
    for party, step in FIRST_STEPS.items():
        assert f'orders_step_seconds_count{{outcome="done",step="{step}"}}' in told[f"worker-{party}"]


@pytest.mark.parametrize("party", list(Queue))
async def test_orders_wait_for_a_party_that_is_down_and_then_end_as_they_would_have(
    shop: RunningShop, party: Queue
) -> None:
    orders = await shop.prepared([BY_NAME["points"], BY_NAME["no-courier"]])
    part = f"worker-{party}"
    shop.stack.pause_restarts(part)
    shop.stack.kill(part)
    finishing = asyncio.create_task(shop.finish(orders))
    try:
        await asyncio.gather(*(until_it_stands_before(shop, order.order_id, party) for order in orders))
        assert not finishing.done()
        shop.stack.resume_restarts(part)
        await finishing
    finally:
        shop.stack.resume_restarts(part)
        finishing.cancel()
    await shop.assert_books_hold()


async def until_it_stands_before(shop: RunningShop, order_id: str, party: Queue) -> None:
    """Until the order has done all that comes before the party's first step, and nothing of that step."""
    before = list(FIRST_STEPS.values())[: list(Queue).index(party)]

    async def look() -> bool:
        query = "SELECT step FROM order_steps WHERE order_id = %s AND state = %s"
        done = {step for (step,) in await shop.rows(query, order_id, StepState.DONE)}
        assert FIRST_STEPS[party] not in done
        return bool(await shop.rows("SELECT 1 FROM orders WHERE order_id = %s", order_id)) and done.issuperset(before)

    await eventually(look, within_seconds=PATIENCE_SECONDS)
