"""Scenarios from the field: one idempotency key, sent again in every way, ends as one order."""

import asyncio
from typing import Any

from adapters.database import Database
from tests.replicas import a_replica
from tests.shop import Http, Shop
from tests.workflows import order_o


async def post(door: Http, document: dict[str, Any], key: str) -> tuple[int, str | None]:
    """The answer's status, and the order's id where there is one."""
    answer = await door.post("/orders", json=document, headers={"Idempotency-Key": key})
    return answer.status, (await answer.json(content_type=None)).get("order_id")


async def test_a_first_try_that_failed_before_any_step_leaves_the_key_free(shop: Shop) -> None:
    """S83: the 503 is not remembered; the retry is taken and ends CLEAN."""
    basket = await shop.basket()
    document = basket.document(points=order_o.POINTS)
    unreachable = Database("postgresql://nobody@127.0.0.1:1/nothing", application="tests")
    async with a_replica(shop, unreachable) as lonely:
        assert (await post(lonely, document, basket.key))[0] == 503
    await unreachable.close()
    assert await post(shop.shopper, document, basket.key) == (202, basket.order_id)
    await order_o.clean(shop, basket)


async def test_a_first_try_whose_answer_was_lost_after_the_start_is_the_same_order(shop: Shop) -> None:
    """S83: asked again while the saga runs, and after it has ended."""
    basket = await shop.basket()
    document = basket.document(points=order_o.POINTS)
    await order_o.place(shop, basket)
    await shop.started(basket.order_id)
    async with a_replica(shop) as survivor:
        assert await post(survivor, document, basket.key) == (200, basket.order_id)
        await order_o.clean(shop, basket)
        assert await post(survivor, document, basket.key) == (200, basket.order_id)
    await order_o.clean(shop, basket)


async def test_fifty_requests_at_once_at_two_replicas_are_one_order(shop: Shop) -> None:
    """S85: one is told 202, the others 200 and the same id."""
    basket = await shop.basket()
    document = basket.document(points=order_o.POINTS)
    async with a_replica(shop) as replica:
        doors = [shop.shopper, replica] * 25
        answers = await asyncio.gather(*(post(door, document, basket.key) for door in doors))
        assert sorted(status for status, _ in answers) == [200] * 49 + [202]
        assert {order_id for _, order_id in answers} == {basket.order_id}
        await order_o.clean(shop, basket)


async def test_a_key_means_nothing_at_another_endpoint(shop: Shop) -> None:
    """S82: the key of an order cancels it, too, and a second time it is the same cancel."""
    basket = await shop.basket(suffix="-score-95")
    await shop.place_in_real_time(basket, points=order_o.POINTS)
    await shop.reaches(basket.order_id, "AWAITING_REVIEW")
    for _ in range(2):
        headers = {"Idempotency-Key": basket.key}
        answer = await shop.shopper.post(f"/orders/{basket.order_id}/cancel", headers=headers)
        assert answer.status == 202
    await order_o.undone(shop, basket, reason="CANCELLED_BY_CUSTOMER")
