"""What cannot go on by itself is seen in every place, moved by one word, and gone from every place afterwards."""

import asyncio

from temporalio.client import WorkflowUpdateFailedError
from temporalio.testing import WorkflowEnvironment

from domain.keys import Step
from domain.messages import RedriveStep
from domain.order import RedriveAction
from tests.gates import a_bug, database_down
from tests.shop import Shop
from workflows.names import CANCEL_REASON, CUSTOMER_ID, ORDER_STATUS, ORDER_TOTAL, PARKED_STEP
from workflows.order import OrderWorkflow


async def test_a_parked_step_is_seen_everywhere_and_vanishes_everywhere(shop: Shop) -> None:
    basket = await shop.basket()
    bug = shop.gates.fail(basket.order_id, Step.BOOK_SHIPMENT, a_bug)
    order_id = await shop.place(basket)
    view = await shop.reaches(order_id, "NEEDS_REVIEW")
    assert [(one.step, one.item, one.kind, one.error) for one in view.needs_review] == [
        ("book_shipment", "main", "DECISION", "ZeroDivisionError")
    ]
    found = (await shop.saga(order_id).describe()).typed_search_attributes
    assert (found.get(ORDER_STATUS), found.get(PARKED_STEP)) == ("NEEDS_REVIEW", ["book_shipment:main"])
    assert (found.get(CUSTOMER_ID), found.get(ORDER_TOTAL)) == (basket.customer, 5000)
    state = await shop.saga(order_id).query(OrderWorkflow.status)
    assert (state.status, state.payment) == ("NEEDS_REVIEW", "AUTHORIZED")
    assert [(one.step, one.kind) for one in state.needs_review] == [("book_shipment:main", "DECISION")]
    bug.open()
    assert await shop.redrive(order_id, "book_shipment", "retry", item="main") == 202
    await shop.ended(order_id)
    found = (await shop.saga(order_id).describe()).typed_search_attributes
    assert (found.get(ORDER_STATUS), found.get(PARKED_STEP), found.get(CANCEL_REASON)) == ("CONFIRMED", None, None)
    await shop.assert_clean(basket, order_id)


async def test_the_status_returns_to_the_stage_that_the_park_covered(shop: Shop) -> None:
    basket = await shop.basket()
    bug = shop.gates.fail(basket.order_id, Step.BOOK_SHIPMENT, a_bug, times=3)
    second_try = shop.gates.hold(basket.order_id, Step.CAPTURE_PAYMENT)
    order_id = await shop.place(basket)
    await shop.reaches(order_id, "NEEDS_REVIEW")
    bug.open()
    assert await shop.redrive(order_id, "book_shipment", "retry") == 202
    await second_try.reached()
    view = await shop.view(order_id)
    assert (view.status, view.needs_review) == ("AWAITING_PAYMENT", [])
    found = (await shop.saga(order_id).describe()).typed_search_attributes
    assert (found.get(ORDER_STATUS), found.get(PARKED_STEP)) == ("AWAITING_PAYMENT", None)
    second_try.open()
    await shop.ended(order_id)
    await shop.assert_clean(basket, order_id)


async def test_an_undone_order_tells_its_reason_in_temporal_and_in_its_timeline(shop: Shop) -> None:
    basket = await shop.basket()
    order_id = await shop.place(basket, payment_method="pm_card_chargeDeclined")
    await shop.ended(order_id)
    result = await shop.saga(order_id).result()
    assert (result.order_id, result.status, result.reason) == (order_id, "CANCELLED_COMPENSATED", "CARD_DECLINED")
    found = (await shop.saga(order_id).describe()).typed_search_attributes
    assert (found.get(ORDER_STATUS), found.get(CANCEL_REASON)) == ("CANCELLED_COMPENSATED", "CARD_DECLINED")
    lines = [(line.step, line.state) for line in await shop.saga(order_id).query(OrderWorkflow.timeline)]
    # The gateway's own event about the end of its intent may make the release look once more.
    assert list(dict.fromkeys(lines)) == [
        ("open_order", "begun"),
        ("open_order", "done"),
        ("screen_order", "begun"),
        ("screen_order", "done"),
        ("reserve_stock", "begun"),
        ("reserve_stock", "done"),
        ("authorize_payment", "begun"),
        ("authorize_payment", "CARD_DECLINED"),
        ("release_payment", "begun"),
        ("release_payment", "done"),
        ("release_stock", "begun"),
        ("release_stock", "done"),
    ]


async def test_of_two_operators_at_once_one_decides(shop: Shop) -> None:
    baskets = [await shop.basket() for _ in range(5)]
    bugs = [shop.gates.fail(basket.order_id, Step.RESERVE_STOCK, a_bug) for basket in baskets]
    for basket in baskets:
        await shop.place(basket)
    for basket, bug in zip(baskets, bugs, strict=True):
        await shop.reaches(basket.order_id, "NEEDS_REVIEW")
        bug.open()
        words = [shop.redrive(basket.order_id, "reserve_stock", action) for action in ("retry", "compensate")]
        answers = await asyncio.gather(*words)
        assert sorted(answers) == [202, 409]
        view = await shop.ended(basket.order_id)
        assert view.status == ("CONFIRMED" if answers[0] == 202 else "CANCELLED_COMPENSATED")
        (item,) = await shop.reviews(basket.order_id)
        assert (item.closed_by, item.action) == ("operator", "retry" if answers[0] == 202 else "compensate")


async def test_two_decisions_in_one_batch_are_one(shop: Shop) -> None:
    basket = await shop.basket()
    bug = shop.gates.fail(basket.order_id, Step.RESERVE_STOCK, a_bug)
    order_id = await shop.place(basket)
    await shop.reaches(order_id, "NEEDS_REVIEW")
    bug.open()
    retry = RedriveStep(step=Step.RESERVE_STOCK, action=RedriveAction.RETRY, actor="tests", reason="tests")
    updates = [shop.saga(order_id).execute_update(OrderWorkflow.redrive_step, retry) for _ in range(5)]
    answers = await asyncio.gather(*updates, return_exceptions=True)
    assert sorted(isinstance(answer, WorkflowUpdateFailedError) for answer in answers) == [False] + [True] * 4
    await shop.ended(order_id)
    await shop.assert_clean(basket, order_id)


async def test_a_decision_about_nothing_is_refused(shop: Shop) -> None:
    basket = await shop.basket()
    gate = shop.gates.hold(basket.order_id, Step.RESERVE_STOCK)
    order_id = await shop.place(basket)
    await gate.reached()
    assert await shop.redrive(order_id, "reserve_stock", "retry") == 409
    assert await shop.review(order_id, "approve") == 409
    gate.open()
    await shop.ended(order_id)
    assert await shop.redrive(order_id, "reserve_stock", "retry") == 409
    await shop.assert_clean(basket, order_id)


async def test_a_technical_park_looks_again_at_growing_intervals(shop: Shop, environment: WorkflowEnvironment) -> None:
    """15 min, 30 min, 1 h, 2 h, 4 h and then every 4 h."""
    basket = await shop.basket()
    shop.gates.fail(basket.order_id, Step.RELEASE_STOCK, database_down, times=7 * 5)
    order_id = await shop.place(basket, payment_method="pm_card_chargeDeclined")
    await shop.ended(order_id)
    assert shop.gates.calls(order_id, Step.RELEASE_STOCK) == 7 * 5 + 1
    started = (await shop.saga(order_id).describe()).start_time
    hours = (await environment.get_current_time(shop.saga(order_id)) - started).total_seconds() / 3600
    assert 15.7 < hours < 15.8
    (item,) = await shop.reviews(order_id)
    assert (item.step, item.kind) == ("release_stock", "TECHNICAL")
    await shop.assert_undone(basket, order_id, "CARD_DECLINED")


async def test_the_books_that_show_parks_may_be_down_while_a_step_parks_and_goes_on(shop: Shop) -> None:
    basket = await shop.basket()
    shop.gates.fail(basket.order_id, Step.PARK_STEP, database_down, times=25)
    shop.gates.fail(basket.order_id, Step.CLOSE_PARK, database_down, times=25)
    bug = shop.gates.fail(basket.order_id, Step.RESERVE_STOCK, a_bug)
    order_id = await shop.place(basket)
    await shop.gates.ended(order_id, Step.PARK_STEP, 26)
    bug.open()
    assert await shop.redrive(order_id, "reserve_stock", "retry") == 202
    await shop.ended(order_id)
    assert [item.closed_by for item in await shop.reviews(order_id)] == ["operator"]
    await shop.assert_clean(basket, order_id)
