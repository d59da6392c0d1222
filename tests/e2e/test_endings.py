"""Each ending of an order, reached from outside, with one worker for everything and with a worker for each party."""

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from domain.order import CLOSED_STATUSES, CancelReason, OrderStatus
from tests.e2e.endings import ALONE, DEADLINES, ENDINGS, Ending
from tests.e2e.running import RunningShop, running_shop

#: The courier's second look is a minute after its first; the first test of a stack waits for all orders.
LIMIT_SECONDS = 600

Endings = dict[str, BaseException | list[str]]


@pytest_asyncio.fixture(scope="module", params=["one worker", "a worker for each party"])
async def shop(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RunningShop]:
    """A shop where nobody waits long for a shopper or a reviewer."""
    split = request.param != "one worker"
    async with running_shop(tmp_path_factory.mktemp("endings"), split=split, **DEADLINES) as running:
        yield running


@pytest_asyncio.fixture(scope="module")
async def ended(shop: RunningShop) -> Endings:
    """All orders side by side; by sentence what is not as it should be with them."""
    results = await asyncio.gather(*(lived(shop, ending) for ending in ENDINGS), return_exceptions=True)
    return {ending.sentence: result for ending, result in zip(ENDINGS, results, strict=True)}


async def lived(shop: RunningShop, ending: Ending) -> list[str]:
    """One order from its place on the shelf to its end; what is not as it should be, by everybody's books."""
    (order,) = await shop.prepared([ending.case])
    following = asyncio.create_task(shop.followed(order))
    try:
        await ending.story(shop, order)
        await following
    finally:
        following.cancel()
    unseen = sorted(ending.passes - shop.seen[order.order_id])
    return order.differences() + [f"was never seen {status}" for status in unseen]


def test_every_status_and_every_reason_has_an_order_that_ends_or_passes_there() -> None:
    cases = [ending.case for ending in ENDINGS]
    assert {case.reason for case in cases} - {None} == set(CancelReason)
    assert {case.status for case in cases} == CLOSED_STATUSES - {OrderStatus.REFUNDED}
    passed = frozenset[OrderStatus]().union(*(ending.passes for ending in ENDINGS))
    assert passed == set(OrderStatus) - CLOSED_STATUSES


def test_every_ending_is_told_apart() -> None:
    assert len({ending.sentence for ending in ENDINGS}) == len({ending.case.name for ending in ENDINGS}) == len(ENDINGS)


@pytest.mark.long
@pytest.mark.timeout(LIMIT_SECONDS)
@pytest.mark.parametrize("ending", ENDINGS, ids=lambda ending: ending.sentence)
async def test_an_order_ends_right(ended: Endings, ending: Ending) -> None:
    outcome = ended[ending.sentence]
    if isinstance(outcome, BaseException):
        raise outcome
    assert outcome == []


@pytest.mark.long
@pytest.mark.timeout(LIMIT_SECONDS)
@pytest.mark.usefixtures("ended")
async def test_a_hold_that_the_bank_drops_is_no_payment(shop: RunningShop) -> None:
    assert await lived(shop, ALONE) == []


@pytest.mark.long
@pytest.mark.timeout(LIMIT_SECONDS)
@pytest.mark.usefixtures("ended")
async def test_the_books_hold_after_all_of_them(shop: RunningShop) -> None:
    await shop.assert_books_hold()
