"""One shipment a warehouse. A courier that refuses, is down or is silent costs a void, never a refund."""

import asyncio
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from domain.errors import NoServiceToAddress
from domain.keys import Step
from tests.baskets import Basket
from tests.builders import an_order_document
from tests.gates import a_bug, database_down
from tests.shop import Shop

COURIER_IS_DOWN = "Your order was cancelled: no courier could take it."


def to(postcode: str) -> dict[str, Any]:
    """An order to an address with this postcode."""
    return {"shipping_address": an_order_document()["shipping_address"] | {"postcode": postcode}}


async def a_basket_from(shop: Shop, *warehouses: str) -> Basket:
    """A basket of which each warehouse has one kind only: five pieces of A in the first, of B in the second."""
    basket = await shop.basket(on_hand=0)
    basket.on_hand = 5
    for (sku, price), warehouse in zip(((basket.a, 3000), (basket.b, 2000)), warehouses, strict=True):
        await shop.put_stock(sku, price, 5, warehouse)
    return basket


async def all_ended(shop: Shop, baskets: Sequence[Basket]) -> None:
    await asyncio.gather(*(shop.ended(basket.order_id) for basket in baskets))


async def seconds_at(shop: Shop, order_id: str, step: Step) -> float:
    """How long the saga was at a step, by its own clock."""
    lines = [line for line in await shop.saga(order_id).query("timeline") if line["step"].startswith(step.value)]
    first, last = [datetime.fromisoformat(line["at"]) for line in (lines[0], lines[-1])]
    return (last - first).total_seconds()


async def test_each_warehouse_sends_its_own_parcel(shop: Shop) -> None:
    basket = await a_basket_from(shop, "north", "south")
    order_id = await shop.place(basket)
    view = await shop.ended(order_id)
    assert [(one.warehouse, one.status) for one in view.shipments] == [("north", "BOOKED"), ("south", "BOOKED")]
    await shop.assert_clean(basket, order_id, parcels=2)


async def test_one_refused_parcel_of_several_undoes_the_order(shop: Shop) -> None:
    basket = await a_basket_from(shop, "north", "south")
    shop.gates.fail(basket.order_id, Step.BOOK_SHIPMENT, lambda: NoServiceToAddress("tests"), item="south")
    order_id = await shop.place(basket)
    await shop.ended(order_id)
    assert [one["status"] for one in await shop.shipments(order_id)] == ["cancelled"]
    await shop.assert_undone(basket, order_id, "NO_SERVICE_TO_ADDRESS")


async def test_a_courier_that_does_not_serve_the_address_undoes_the_order_at_once(shop: Shop) -> None:
    basket = await shop.basket(credit=1000)
    order_id = await shop.place(basket, points=500, store_credit=1000, **to("00000"))
    view = await shop.ended(order_id)
    assert view.message == (
        "Your order was cancelled: our courier does not deliver to this address. "
        "Your card was not charged; an amount set aside is free again."
    )
    assert shop.gates.calls(order_id, Step.BOOK_SHIPMENT) == 1
    assert shop.gates.calls(order_id, Step.CAPTURE_PAYMENT) == 0
    await shop.assert_undone(basket, order_id, "NO_SERVICE_TO_ADDRESS")


async def test_a_courier_that_is_down_or_not_understood_undoes_the_order(shop: Shop) -> None:
    down, garbled = await shop.basket(), await shop.basket()
    await shop.fault("book", "answer", on="courier", order_id=garbled.order_id, body={"ok": True}, times=3)
    await shop.place(down, **to("50000"))
    await shop.place(garbled)
    await all_ended(shop, [down, garbled])
    for basket in (down, garbled):
        assert (await shop.view(basket.order_id)).message.startswith(COURIER_IS_DOWN)
        assert shop.gates.calls(basket.order_id, Step.BOOK_SHIPMENT) == 3
        assert shop.gates.calls(basket.order_id, Step.CAPTURE_PAYMENT) == 0
        await shop.assert_undone(basket, basket.order_id, "COURIER_UNAVAILABLE")


async def test_a_courier_that_is_back_at_the_third_try_is_not_noticed(shop: Shop) -> None:
    broken, dropped, unwritten = [await shop.basket() for _ in range(3)]
    await shop.fault("book", "error", on="courier", order_id=broken.order_id, status=500, times=2)
    await shop.fault("book", "drop", on="courier", order_id=dropped.order_id, times=1)
    shop.gates.fail(unwritten.order_id, Step.BOOK_SHIPMENT, database_down, after=True, times=2)
    baskets = [broken, dropped, unwritten]
    for basket in baskets:
        await shop.place(basket)
    await all_ended(shop, baskets)
    for basket in baskets:
        await shop.assert_clean(basket, basket.order_id)


async def test_a_booking_whose_answer_is_always_lost_is_found_and_is_one_parcel(shop: Shop) -> None:
    basket = await shop.basket()
    order_id = await shop.place(basket, **to("50400"))
    await shop.ended(order_id)
    assert len(await shop.shipments(order_id)) == 1
    await shop.assert_clean(basket, order_id)


async def test_a_booking_that_lands_between_the_undo_and_its_second_look_is_cancelled(shop: Shop) -> None:
    """S63: held up at the courier."""
    basket = await shop.basket()
    hang = await shop.fault("book", "hang", on="courier", order_id=basket.order_id, times=3)
    first_look = shop.gates.hold(basket.order_id, Step.CANCEL_SHIPMENT, times=1)
    order_id = await shop.place(basket)
    await first_look.reached()
    second_look = shop.gates.hold(basket.order_id, Step.CANCEL_SHIPMENT, times=1)
    first_look.open()
    await second_look.reached()
    assert await shop.shipments(order_id) == []
    # The others are undone meanwhile, and the order is not closed before the second look.
    await shop.gates.ended(order_id, Step.RELEASE_STOCK, 1)
    assert (await shop.view(order_id)).status == "COMPENSATING"
    await shop.heal(hang)
    await shop.until_booked(order_id)
    second_look.open()
    await shop.ended(order_id)
    assert shop.gates.calls(order_id, Step.CANCEL_SHIPMENT) == 2
    assert 59 < await seconds_at(shop, order_id, Step.CANCEL_SHIPMENT) < 61
    await shop.assert_undone(basket, order_id, "COURIER_UNAVAILABLE")


async def test_a_booking_attempt_that_arrives_after_the_undo_books_nothing(shop: Shop) -> None:
    """S63: held up on our side."""
    basket = await shop.basket()
    late = shop.gates.hold(basket.order_id, Step.BOOK_SHIPMENT, times=1)
    shop.gates.fail(basket.order_id, Step.BOOK_SHIPMENT, database_down, times=2)
    order_id = await shop.place(basket)
    await shop.ended(order_id)
    late.open()
    await shop.gates.ended(order_id, Step.BOOK_SHIPMENT, 3)
    assert await shop.shipments(order_id) == []
    await shop.assert_undone(basket, order_id, "COURIER_UNAVAILABLE")


async def test_not_now_is_no_try_and_is_waited_for_as_long_as_the_courier_asks(shop: Shop) -> None:
    limited, unavailable = await shop.basket(), await shop.basket()
    for basket, status in ((limited, 429), (unavailable, 503)):
        await shop.fault(
            "book", "error", on="courier", order_id=basket.order_id, status=status, retry_after=20, times=5
        )
        await shop.place(basket)
    await all_ended(shop, [limited, unavailable])
    for basket in (limited, unavailable):
        assert shop.gates.calls(basket.order_id, Step.BOOK_SHIPMENT) == 6
        assert 100 <= await seconds_at(shop, basket.order_id, Step.BOOK_SHIPMENT) < 120
        await shop.assert_clean(basket, basket.order_id)


async def test_not_now_for_over_two_minutes_undoes_the_order(shop: Shop) -> None:
    once, often = await shop.basket(), await shop.basket()
    await shop.fault("book", "error", on="courier", order_id=once.order_id, status=429, retry_after=121, times=1)
    await shop.fault("book", "error", on="courier", order_id=often.order_id, status=503, retry_after=50, times=9)
    for basket in (once, often):
        await shop.place(basket)
    await all_ended(shop, [once, often])
    assert [shop.gates.calls(basket.order_id, Step.BOOK_SHIPMENT) for basket in (once, often)] == [1, 3]
    for basket in (once, often):
        assert await shop.shipments(basket.order_id) == []
        await shop.assert_undone(basket, basket.order_id, "COURIER_UNAVAILABLE")


async def test_a_request_that_the_courier_will_not_have_waits_for_an_operator(shop: Shop) -> None:
    refused, buggy = await shop.basket(), await shop.basket()
    await shop.fault("book", "error", on="courier", order_id=refused.order_id, status=400, times=3)
    shop.gates.fail(buggy.order_id, Step.BOOK_SHIPMENT, a_bug, times=3)
    for basket in (refused, buggy):
        await shop.place(basket)
    for basket, error in ((refused, "ProviderRequestRefused"), (buggy, "ZeroDivisionError")):
        view = await shop.reaches(basket.order_id, "NEEDS_REVIEW")
        assert [(item.step, item.item, item.kind, item.error) for item in view.needs_review] == [
            ("book_shipment", "main", "DECISION", error)
        ]
    assert await shop.redrive(refused.order_id, "book_shipment", "compensate", item="main") == 202
    assert await shop.redrive(buggy.order_id, "book_shipment", "retry") == 202
    await all_ended(shop, [refused, buggy])
    await shop.assert_undone(refused, refused.order_id, "CANCELLED_BY_OPERATOR")
    await shop.assert_clean(buggy, buggy.order_id)
