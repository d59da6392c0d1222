"""The guard finds orders that nobody looks after, and starts them again with a question to an operator."""

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from domain.keys import Step
from domain.reconciliation import FindingKind
from tests.baskets import Basket
from tests.builders import an_order_document
from tests.conftest import MakeDatabase
from tests.guarding import about, kinds, reconcile, terminated
from tests.shop import Shop
from tests.workflows.skipping import shop_on, start_environment

NOWHERE = an_order_document()["shipping_address"] | {"postcode": "00000"}
#: The stages in which a run may be ended by hand, with what is there by then.
FORWARD = (Step.OPEN_ORDER, Step.RESERVE_STOCK, Step.AUTHORIZE_PAYMENT, Step.BOOK_SHIPMENT, Step.CAPTURE_PAYMENT)


@pytest_asyncio.fixture(scope="module")
async def shop(make_database: MakeDatabase) -> AsyncIterator[Shop]:
    """A shop of its own: a guard looks at all orders of one."""
    async with await start_environment() as environment, shop_on(environment, make_database) as shop:
        yield shop


async def decided(shop: Shop, basket: Basket, action: str) -> None:
    """The guard's question, once it is asked, with an operator's answer; until the order has ended."""
    await shop.until_parked(basket.order_id, "open_order", kind="DECISION")
    view = await shop.reaches(basket.order_id, "NEEDS_REVIEW")
    assert [(item.step, item.error) for item in view.needs_review] == [("open_order", "DeadRun")]
    assert await shop.redrive(basket.order_id, "open_order", action) == 202
    await shop.ended(basket.order_id)


async def quiet(shop: Shop, basket: Basket) -> None:
    """Nothing is found about the order any more."""
    assert about(await reconcile(shop), basket.order_id) == []


@pytest.mark.parametrize("step", FORWARD)
async def test_a_run_that_was_ended_at_any_step_is_found_and_goes_on_when_an_operator_says_so(
    shop: Shop, step: Step
) -> None:
    basket = await shop.basket()
    gate = await terminated(shop, basket, step, after=step is not Step.OPEN_ORDER)
    gate.open()
    report = await reconcile(shop)
    assert kinds(report, basket.order_id) == [FindingKind.DEAD_RUN]
    assert about(report, basket.order_id)[0].action == "started again, parks at open_order"
    await decided(shop, basket, "retry")
    await shop.assert_clean(basket, basket.order_id)
    await quiet(shop, basket)


@pytest.mark.parametrize(
    "step",
    [step if step is Step.CAPTURE_PAYMENT else pytest.param(step, marks=pytest.mark.long) for step in FORWARD],
)
async def test_a_run_that_was_ended_at_any_step_is_undone_when_an_operator_says_so(shop: Shop, step: Step) -> None:
    basket = await shop.basket()
    (await terminated(shop, basket, step, after=True)).open()
    await reconcile(shop)
    await decided(shop, basket, "compensate")
    await shop.assert_undone(basket, basket.order_id, "CANCELLED_BY_OPERATOR")
    await quiet(shop, basket)


async def test_nothing_moves_between_the_end_of_a_run_and_the_operators_word(shop: Shop) -> None:
    """S72: ended between the capture and what follows it."""
    basket = await shop.basket()
    (await terminated(shop, basket, Step.CAPTURE_PAYMENT, after=True)).open()
    before = [await shop.intents(basket.order_id), await shop.shipments(basket.order_id)]
    for _ in range(3):
        await reconcile(shop)
    await shop.until_parked(basket.order_id, "open_order")
    assert [await shop.intents(basket.order_id), await shop.shipments(basket.order_id)] == before
    assert len([one for one in await shop.reviews(basket.order_id) if one.closed_at is None]) == 1
    await decided(shop, basket, "retry")
    await shop.assert_clean(basket, basket.order_id)


async def test_a_shopper_may_cancel_an_order_whose_run_was_ended(shop: Shop) -> None:
    basket = await shop.basket()
    (await terminated(shop, basket, Step.CAPTURE_PAYMENT, after=True)).open()
    await reconcile(shop)
    await shop.until_parked(basket.order_id, "open_order")
    assert (await shop.cancel(basket.order_id))[0] == 202
    await shop.ended(basket.order_id)
    await shop.assert_undone(basket, basket.order_id, "CANCELLED_BY_CUSTOMER")


@pytest.mark.parametrize("action", ["retry", "compensate"])
async def test_an_undo_that_was_ended_by_hand_goes_on_whatever_the_operator_says(shop: Shop, action: str) -> None:
    basket = await shop.basket()
    (await terminated(shop, basket, Step.RELEASE_PAYMENT, shipping_address=NOWHERE)).open()
    await reconcile(shop)
    await decided(shop, basket, action)
    await shop.assert_undone(basket, basket.order_id, "NO_SERVICE_TO_ADDRESS")


async def test_a_confirmed_order_whose_run_was_ended_sells_its_stock_without_a_question(shop: Shop) -> None:
    basket = await shop.basket()
    gate = await terminated(shop, basket, Step.COMMIT_STOCK)
    assert kinds(await reconcile(shop), basket.order_id) == [FindingKind.DEAD_RUN]
    gate.open()
    await shop.ended(basket.order_id)
    await shop.assert_clean(basket, basket.order_id)
    assert await shop.reviews(basket.order_id) == []


async def test_what_a_dead_run_had_parked_is_asked_no_more(shop: Shop) -> None:
    basket = await shop.basket()
    broken = shop.gates.fail(basket.order_id, Step.BOOK_SHIPMENT, ZeroDivisionError)
    await shop.place(basket)
    await shop.until_parked(basket.order_id, "book_shipment")
    await shop.saga(basket.order_id).terminate("a test")
    broken.open()
    await reconcile(shop)
    await decided(shop, basket, "retry")
    await shop.assert_clean(basket, basket.order_id)


async def test_two_guards_at_once_start_one_run(shop: Shop) -> None:
    basket = await shop.basket()
    (await terminated(shop, basket, Step.BOOK_SHIPMENT, after=True)).open()
    reports = await asyncio.gather(reconcile(shop), reconcile(shop))
    assert [FindingKind.DEAD_RUN] in [kinds(report, basket.order_id) for report in reports]
    await decided(shop, basket, "retry")
    await shop.assert_clean(basket, basket.order_id)


async def test_orders_that_are_well_are_no_finding(shop: Shop) -> None:
    confirmed, undone, open_one = [await shop.basket() for _ in range(3)]
    await shop.place(confirmed)
    await shop.place(undone, shipping_address=NOWHERE)
    held = shop.gates.hold(open_one.order_id, Step.BOOK_SHIPMENT)
    await shop.place(open_one)
    await shop.ended(confirmed.order_id)
    await shop.ended(undone.order_id)
    await held.reached()
    report = await reconcile(shop)
    assert report.complete
    assert report.checked >= 2
    assert about(report, confirmed.order_id, undone.order_id, open_one.order_id) == []
    held.open()
    await shop.ended(open_one.order_id)
