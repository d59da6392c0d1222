"""An order is taken for its run once, and only when the shop sells what it names. A person looks where it matters."""

import asyncio
from datetime import timedelta

from temporalio.common import WorkflowIDReusePolicy
from temporalio.testing import WorkflowEnvironment

from domain.keys import Step
from domain.messages import OrderInput
from tests.baskets import Basket, fresh
from tests.gates import a_bug, database_down
from tests.shop import Shop
from workflows.names import ORDER_STATUS, Queue
from workflows.order import OrderWorkflow


async def a_suspect(shop: Shop) -> Basket:
    """A basket whose customer scores 95."""
    return await shop.basket(suffix="-score-95")


async def test_an_unknown_sku_rejects_the_order_before_anything_is_taken(shop: Shop) -> None:
    """S77: asked once."""
    basket = await shop.basket()
    lines = [{"sku": basket.a, "quantity": 1}, {"sku": fresh("ghost"), "quantity": 1}]
    order_id = await shop.place(basket, lines=lines)
    view = await shop.ended(order_id)
    assert (view.status, view.message) == (
        "REJECTED",
        "We could not accept your order: we do not sell something in it. Nothing was taken from your card.",
    )
    assert shop.gates.calls(order_id, Step.OPEN_ORDER) == 1
    assert shop.gates.calls(order_id, Step.RESERVE_STOCK) == 0
    await shop.assert_undone(basket, order_id, "UNKNOWN_SKU")


async def test_a_closed_order_that_is_started_again_changes_nothing(shop: Shop) -> None:
    bought, refused = await shop.basket(), await shop.basket()
    await asyncio.gather(shop.place(bought), shop.place(refused, payment_method="pm_card_chargeDeclined"))
    for basket in (bought, refused):
        await shop.ended(basket.order_id)
    first = [await shop.saga(basket.order_id).result() for basket in (bought, refused)]
    again = [
        await shop.client.execute_workflow(
            OrderWorkflow.run,
            OrderInput(order_id=basket.order_id),
            id=shop.saga(basket.order_id).id,
            task_queue=Queue.ORDERS,
            id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
        )
        for basket in (bought, refused)
    ]
    assert again == first
    assert [shop.gates.calls(basket.order_id, Step.RESERVE_STOCK) for basket in (bought, refused)] == [1, 1]
    await shop.assert_clean(bought, bought.order_id)
    await shop.assert_undone(refused, refused.order_id, "CARD_DECLINED")


async def test_an_order_that_cannot_be_opened_for_a_while_is_opened_by_itself_later(shop: Shop) -> None:
    blip, outage = await shop.basket(), await shop.basket()
    shop.gates.fail(blip.order_id, Step.OPEN_ORDER, database_down, times=11)
    shop.gates.fail(outage.order_id, Step.OPEN_ORDER, database_down, times=12)
    await asyncio.gather(shop.place(blip), shop.place(outage))
    await asyncio.gather(shop.ended(blip.order_id), shop.ended(outage.order_id))
    assert await shop.reviews(blip.order_id) == []
    (item,) = await shop.reviews(outage.order_id)
    assert (item.step, item.kind, item.error, item.closed_by) == (
        "open_order",
        "TECHNICAL",
        "DatabaseUnavailable",
        "system",
    )
    for basket in (blip, outage):
        await shop.assert_clean(basket, basket.order_id)


async def test_an_operator_refuses_an_order_that_a_bug_keeps_from_opening(shop: Shop) -> None:
    basket = await shop.basket()
    shop.gates.fail(basket.order_id, Step.OPEN_ORDER, a_bug)
    order_id = await shop.place(basket)
    view = await shop.reaches(order_id, "NEEDS_REVIEW")
    assert view.message == ("We are looking into a problem with your order. Please do not order again.")
    assert [(item.step, item.kind, item.error) for item in view.needs_review] == [
        ("open_order", "DECISION", "ZeroDivisionError")
    ]
    assert shop.gates.calls(order_id, Step.OPEN_ORDER) == 3
    assert await shop.redrive(order_id, "open_order", "compensate") == 202
    view = await shop.ended(order_id)
    assert view.status == "REJECTED"
    await shop.assert_undone(basket, order_id, "CANCELLED_BY_OPERATOR")


async def test_a_suspicious_order_goes_on_when_a_reviewer_approves_it(
    shop: Shop, environment: WorkflowEnvironment
) -> None:
    basket = await a_suspect(shop)
    order_id = await shop.place_in_real_time(basket)
    view = await shop.reaches(order_id, "AWAITING_REVIEW")
    assert view.message.startswith("A colleague is looking at your order before we accept it.")
    description = await shop.saga(order_id).describe()
    assert description.typed_search_attributes.get(ORDER_STATUS) == "AWAITING_REVIEW"
    assert await shop.review(order_id, "approve") == 202
    assert await shop.review(order_id, "reject") == 409
    await environment.fast_forward(shop.saga(order_id))
    await shop.ended(order_id)
    await shop.assert_clean(basket, order_id)
    decided = [line for line in await shop.timeline(order_id) if line.item == "review"]
    assert [(line.step, line.state, line.actor, line.reason) for line in decided] == [
        ("screen_order", "done", "operator", "a test")
    ]


async def test_a_suspicious_order_is_rejected_by_the_reviewer_or_by_the_deadline(
    shop: Shop, environment: WorkflowEnvironment
) -> None:
    rejected, forgotten = await a_suspect(shop), await a_suspect(shop)
    await shop.place_in_real_time(rejected)
    await shop.place_in_real_time(forgotten)
    for basket in (rejected, forgotten):
        await shop.reaches(basket.order_id, "AWAITING_REVIEW")
    assert await shop.review(rejected.order_id, "reject") == 202
    await environment.fast_forward(shop.saga(forgotten.order_id), timedelta(hours=47))
    assert (await shop.view(forgotten.order_id)).status == "AWAITING_REVIEW"
    await environment.fast_forward(shop.saga(forgotten.order_id))
    for basket, reason in ((rejected, "REVIEW_REJECTED"), (forgotten, "REVIEW_TIMED_OUT")):
        view = await shop.ended(basket.order_id)
        assert view.status == "REJECTED"
        assert shop.gates.calls(basket.order_id, Step.RESERVE_STOCK) == 0
        await shop.assert_undone(basket, basket.order_id, reason)


async def test_a_person_is_asked_about_a_large_order_by_the_limit_of_its_currency(shop: Shop) -> None:
    """EUR 500.00, JPY 80000; a currency without a limit is always looked at."""
    baskets = [await shop.basket() for _ in range(5)]
    prices = [("EUR", 50_000), ("EUR", 50_001), ("JPY", 80_000), ("JPY", 80_001), ("CHF", 100)]
    for basket, (currency, price) in zip(baskets, prices, strict=True):
        sku = fresh("L")
        await shop.put_stock(sku, price, 5, currency=currency)
        await shop.place(basket, currency=currency, lines=[{"sku": sku, "quantity": 1}])
    await asyncio.gather(*(shop.ended(basket.order_id) for basket in baskets))
    views = [await shop.view(basket.order_id) for basket in baskets]
    assert [(view.status, view.reason) for view in views] == [
        ("CONFIRMED", None),
        ("REJECTED", "REVIEW_TIMED_OUT"),
        ("CONFIRMED", None),
        ("REJECTED", "REVIEW_TIMED_OUT"),
        ("REJECTED", "REVIEW_TIMED_OUT"),
    ]


async def test_a_scorer_that_is_down_asks_a_person_until_it_gives_a_good_score(shop: Shop) -> None:
    healed, suspect = await shop.basket(), await a_suspect(shop)
    await shop.fault("score", "error", on="fraud", order_id=healed.order_id, status=500, times=5)
    await shop.fault("score", "answer", on="fraud", order_id=suspect.order_id, body={"score": "low"}, times=3)
    for basket in (healed, suspect):
        await shop.place(basket)
    for basket in (healed, suspect):
        await shop.ended(basket.order_id)
    # Three tries, then five minutes later the next ones, of which the last is answered.
    assert shop.gates.calls(healed.order_id, Step.SCREEN_ORDER) == 6
    assert "AWAITING_REVIEW" in [line.item for line in await shop.timeline(healed.order_id)]
    await shop.assert_clean(healed, healed.order_id)
    # A bad score is an answer: nobody asks again, a person decides.
    assert shop.gates.calls(suspect.order_id, Step.SCREEN_ORDER) == 4
    await shop.assert_undone(suspect, suspect.order_id, "REVIEW_TIMED_OUT")


async def test_a_person_may_decide_while_the_scorer_stays_down(shop: Shop, environment: WorkflowEnvironment) -> None:
    basket = await shop.basket()
    await shop.fault("score", "error", on="fraud", order_id=basket.order_id, status=500, times=1000)
    order_id = await shop.place_in_real_time(basket)
    await shop.reaches(order_id, "AWAITING_REVIEW")
    await environment.fast_forward(shop.saga(order_id), timedelta(minutes=11))
    assert shop.gates.calls(order_id, Step.SCREEN_ORDER) == 9
    assert (await shop.view(order_id)).status == "AWAITING_REVIEW"
    assert await shop.review(order_id, "approve") == 202
    await environment.fast_forward(shop.saga(order_id))
    await shop.assert_clean(basket, order_id)


async def test_a_scorer_that_says_not_now_is_waited_for(shop: Shop) -> None:
    basket = await shop.basket()
    await shop.fault("score", "error", on="fraud", order_id=basket.order_id, status=503, retry_after=5, times=4)
    order_id = await shop.place(basket)
    await shop.ended(order_id)
    assert shop.gates.calls(order_id, Step.SCREEN_ORDER) == 5
    assert "AWAITING_REVIEW" not in [line.item for line in await shop.timeline(order_id)]
    await shop.assert_clean(basket, order_id)


async def test_a_person_is_asked_when_the_scorer_says_not_now_for_too_long(shop: Shop) -> None:
    basket = await shop.basket()
    await shop.fault("score", "error", on="fraud", order_id=basket.order_id, status=503, retry_after=60, times=2)
    order_id = await shop.place(basket)
    await shop.ended(order_id)
    assert "AWAITING_REVIEW" in [line.item for line in await shop.timeline(order_id)]
    await shop.assert_clean(basket, order_id)
