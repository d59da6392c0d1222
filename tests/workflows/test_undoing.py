"""The way back: every undo is tried, one that cannot go on stops none of the others, and nothing is forgotten."""

import asyncio
from typing import Any

import pytest

from domain.errors import CourierUnavailable, NotServed, PaymentServiceUnavailable
from domain.keys import Step
from tests.baskets import Basket
from tests.builders import an_order_document
from tests.gates import a_bug, database_down
from tests.shop import Shop

UNDOS = (
    Step.CANCEL_SHIPMENT,
    Step.RELEASE_PAYMENT,
    Step.REFUND_STORE_CREDIT,
    Step.RESTORE_POINTS,
    Step.RELEASE_STOCK,
)
#: What takes something of everything, and is then refused by the courier.
REFUSED_AT_LAST: dict[str, Any] = {
    "points": 500,
    "store_credit": 1000,
    "shipping_address": an_order_document()["shipping_address"] | {"postcode": "00000"},
}


async def baskets_for(shop: Shop, number: int) -> list[Basket]:
    """Baskets whose customers have points and credit."""
    return [await shop.basket(credit=1000) for _ in range(number)]


async def assert_undone(shop: Shop, basket: Basket) -> None:
    await shop.ended(basket.order_id)
    await shop.assert_undone(basket, basket.order_id, "NO_SERVICE_TO_ADDRESS")


async def test_undos_run_in_reverse(shop: Shop) -> None:
    (basket,) = await baskets_for(shop, 1)
    order_id = await shop.place(basket, **REFUSED_AT_LAST)
    await assert_undone(shop, basket)
    timeline = [line["step"] for line in await shop.saga(order_id).query("timeline") if line["state"] == "begun"]
    names = {*UNDOS, "cancel_shipment:main"}
    # The gateway's own event about its cancel may make the release look once more.
    assert list(dict.fromkeys(step for step in timeline if step in names)) == [
        "cancel_shipment:main",
        "release_payment",
        "refund_store_credit",
        "restore_points",
        "release_stock",
    ]


@pytest.mark.parametrize("after", [False, True], ids=["before the effect", "after the effect"])
async def test_an_undo_that_fails_parks_and_is_repeated_by_itself_after_a_quarter_of_an_hour(
    shop: Shop, after: bool
) -> None:
    baskets = await baskets_for(shop, len(UNDOS))
    for basket, undo in zip(baskets, UNDOS, strict=True):
        shop.gates.fail(basket.order_id, undo, database_down, after=after, times=5)
        await shop.place(basket, **REFUSED_AT_LAST)
    for basket, undo in zip(baskets, UNDOS, strict=True):
        await assert_undone(shop, basket)
        (item,) = await shop.reviews(basket.order_id)
        assert (item.step, item.kind, item.closed_by) == (undo, "TECHNICAL", "system")
        assert shop.gates.calls(basket.order_id, undo) >= 6


async def test_the_other_undos_are_done_while_one_is_parked_and_a_redrive_ends_it_at_once(shop: Shop) -> None:
    baskets = await baskets_for(shop, len(UNDOS))
    outages = [
        shop.gates.fail(basket.order_id, undo, database_down) for basket, undo in zip(baskets, UNDOS, strict=True)
    ]
    for basket in baskets:
        await shop.place_in_real_time(basket, **REFUSED_AT_LAST)
    for basket, undo, outage in zip(baskets, UNDOS, outages, strict=True):
        view = await shop.reaches(basket.order_id, "NEEDS_REVIEW")
        assert [(item.step, item.kind) for item in view.needs_review] == [(undo, "TECHNICAL")]
        for other in set(UNDOS) - {undo}:
            await shop.gates.ended(basket.order_id, other, 1)
        assert await shop.redrive(basket.order_id, undo, "compensate") == 409
        outage.open()
        await shop.retry(basket.order_id, undo)
        await assert_undone(shop, basket)
        assert [item.action for item in await shop.reviews(basket.order_id)] == ["retry"]


async def test_several_undos_park_side_by_side(shop: Shop) -> None:
    (basket,) = await baskets_for(shop, 1)
    outages = [shop.gates.fail(basket.order_id, undo, database_down) for undo in UNDOS]
    order_id = await shop.place_in_real_time(basket, **REFUSED_AT_LAST)
    for undo in UNDOS:
        await shop.until_parked(order_id, undo)
    state = await shop.saga(order_id).query("status")
    assert sorted(item["step"] for item in state["needs_review"]) == sorted(
        ["cancel_shipment:main", *(undo.value for undo in UNDOS[1:])]
    )
    for undo, outage in zip(UNDOS, outages, strict=True):
        outage.open()
        await shop.retry(order_id, undo)
    await assert_undone(shop, basket)


async def test_a_bug_in_an_undo_waits_for_an_operator(shop: Shop) -> None:
    baskets = await baskets_for(shop, len(UNDOS))
    for basket, undo in zip(baskets, UNDOS, strict=True):
        shop.gates.fail(basket.order_id, undo, a_bug, times=3)
        await shop.place(basket, **REFUSED_AT_LAST)
    for basket, undo in zip(baskets, UNDOS, strict=True):
        await shop.until_parked(basket.order_id, undo, kind="DECISION")
        assert await shop.redrive(basket.order_id, undo, "retry") == 202
        await assert_undone(shop, basket)


async def test_a_skipped_undo_is_waived_by_name_and_reason(shop: Shop) -> None:
    """The operator gave the points back by hand, in another system: ours are kept as spent."""
    (basket,) = await baskets_for(shop, 1)
    shop.gates.fail(basket.order_id, Step.RESTORE_POINTS, a_bug)
    order_id = await shop.place(basket, **REFUSED_AT_LAST)
    await shop.until_parked(order_id, Step.RESTORE_POINTS)
    assert await shop.redrive(order_id, "restore_points", "skip", "ticket 7") == 202
    await shop.ended(order_id)
    waived = [line for line in await shop.timeline(order_id) if line.state == "waived"]
    assert [(line.step, line.actor, line.reason) for line in waived] == [("restore_points", "operator", "ticket 7")]
    await shop.assert_undone(basket, order_id, "NO_SERVICE_TO_ADDRESS", points=0)


async def test_a_provider_that_says_not_now_is_waited_for_while_undoing(shop: Shop) -> None:
    baskets = await baskets_for(shop, 2)
    steps = (Step.CANCEL_SHIPMENT, Step.RELEASE_PAYMENT)
    for basket, step in zip(baskets, steps, strict=True):
        shop.gates.fail(basket.order_id, step, lambda: NotServed("tests", 300), times=8)
        await shop.place(basket, **REFUSED_AT_LAST)
    for basket, step in zip(baskets, steps, strict=True):
        await assert_undone(shop, basket)
        assert shop.gates.calls(basket.order_id, step) >= 9
        assert await shop.reviews(basket.order_id) == []


async def test_an_undo_with_a_lost_answer_gives_back_once(shop: Shop) -> None:
    baskets = await baskets_for(shop, 2)
    lost = {
        Step.CANCEL_SHIPMENT: lambda: CourierUnavailable("tests"),
        Step.RELEASE_PAYMENT: lambda: PaymentServiceUnavailable("tests"),
    }
    for basket, (step, error) in zip(baskets, lost.items(), strict=True):
        shop.gates.fail(basket.order_id, step, error, after=True, times=4)
        await shop.place(basket, **REFUSED_AT_LAST)
    await asyncio.gather(*(assert_undone(shop, basket) for basket in baskets))
    assert [await shop.reviews(basket.order_id) for basket in baskets] == [[], []]


async def test_a_status_that_cannot_be_written_waits_for_the_database(shop: Shop) -> None:
    statuses = ("AWAITING_PAYMENT", "COMPENSATING", "CANCELLED_COMPENSATED")
    baskets = await baskets_for(shop, len(statuses))
    for basket, status in zip(baskets, statuses, strict=True):
        shop.gates.fail(basket.order_id, Step.RECORD_STATUS, database_down, item=status, times=25)
        await shop.place(basket, **REFUSED_AT_LAST)
    await asyncio.gather(*(assert_undone(shop, basket) for basket in baskets))


async def test_a_provider_that_does_not_serve_an_undo_holds_up_none_of_the_others(shop: Shop) -> None:
    (basket,) = await baskets_for(shop, 1)
    outage = await shop.fault("cancel", "error", on="courier", order_id=basket.order_id, status=503, times=100_000)
    await shop.place_in_real_time(basket, **REFUSED_AT_LAST)
    for undo in UNDOS[1:]:
        await shop.gates.ended(basket.order_id, undo, 1)
    assert await shop.reviews(basket.order_id) == []
    assert (await shop.view(basket.order_id)).status == "COMPENSATING"
    await shop.heal(outage)
    await assert_undone(shop, basket)
