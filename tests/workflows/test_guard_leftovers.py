"""What an order has left somewhere after its end is found and given back, though nobody told of it."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from domain.reconciliation import FindingKind, RunKind
from tests.baskets import Basket, fresh
from tests.conftest import MakeDatabase
from tests.guarding import about, book, kinds, reconcile
from tests.shop import Shop
from tests.workflows.skipping import shop_on, start_environment
from tests.workflows.till import FOREVER, SOMEBODY, Till


@pytest_asyncio.fixture(scope="module")
async def till(make_database: MakeDatabase) -> AsyncIterator[Till]:
    """A shop of its own: a guard looks at all orders of one."""
    async with await start_environment() as environment, shop_on(environment, make_database) as shop:
        yield Till(shop, environment)


@pytest.fixture
def shop(till: Till) -> Shop:
    return till.shop


async def cancelled(till: Till) -> Basket:
    """An order that was undone while its shopper paid. Its webhooks are lost from now on."""
    basket = await till.waiting(await till.shop.basket(), "pm_card_authenticationRequired", "REQUIRES_ACTION")
    assert (await till.shop.cancel(basket.order_id))[0] == 202
    await till.undone(basket, reason="CANCELLED_BY_CUSTOMER")
    await till.fault(basket, "webhook", "lose", times=FOREVER)
    return basket


@pytest.mark.parametrize("kind", list(RunKind))
async def test_a_booking_that_lands_after_the_undos_last_look_is_cancelled(till: Till, kind: RunKind) -> None:
    basket = await cancelled(till)
    # The look at the order itself is over when the booking lands.
    assert about(await reconcile(till.shop), basket.order_id) == []
    await book(till.shop, f"{basket.order_id}:main")
    report = await reconcile(till.shop, kind)
    assert kinds(report, basket.order_id) == [FindingKind.PARCEL_LEFT]
    await till.shop.client.get_workflow_handle(f"leftovers-{basket.order_id}").result()
    await till.undone(basket, reason="CANCELLED_BY_CUSTOMER")
    assert about(await reconcile(till.shop), basket.order_id) == []


async def test_an_operator_skips_an_undo_of_leftovers_that_the_courier_refuses(till: Till) -> None:
    basket = await cancelled(till)
    await book(till.shop, f"{basket.order_id}:main")
    down = await till.shop.fault("cancel", "error", on="courier", order_id=basket.order_id, status=400, times=FOREVER)
    await reconcile(till.shop)
    item = await till.parked(basket, "cancel_shipment", status="CANCELLED_COMPENSATED")
    assert item.kind == "DECISION"
    assert await till.shop.redrive(basket.order_id, "cancel_shipment", "skip", "by phone") == 202
    await till.shop.client.get_workflow_handle(f"leftovers-{basket.order_id}").result()
    await till.shop.heal(down)
    assert about(await reconcile(till.shop), basket.order_id) == []


@pytest.mark.parametrize("forced", ["requires_capture", "succeeded"])
async def test_money_that_moves_on_an_undone_order_without_a_word_is_given_back(till: Till, forced: str) -> None:
    basket = await cancelled(till)
    await till.force(basket, forced)
    found = FindingKind.OPEN_HOLD if forced == "requires_capture" else FindingKind.MONEY_KEPT
    assert kinds(await reconcile(till.shop), basket.order_id) == [found]
    await till.settled(basket)
    await till.undone(basket, reason="CANCELLED_BY_CUSTOMER")
    assert about(await reconcile(till.shop), basket.order_id) == []


@pytest.mark.parametrize("word", ["succeeded", "failed"])
async def test_the_banks_word_on_a_pending_refund_is_heard_though_its_webhook_is_lost(till: Till, word: str) -> None:
    """S15: the gateway is asked, not the calendar."""
    basket = await cancelled(till)
    await till.fault(basket, "refund", "pending")
    await till.force(basket, "succeeded")
    # Its own daily look does not come before the guard's.
    with till.shop.standing_still():
        await reconcile(till.shop)
        assert await till.payment_becomes(basket, "REFUND_PENDING")
        assert about(await reconcile(till.shop), basket.order_id) == []
        await till.decide_refund(basket, word)
        assert FindingKind.REFUND_UNSETTLED in kinds(await reconcile(till.shop), basket.order_id)
    if word == "succeeded":
        await till.settled(basket)
        await till.undone(basket, reason="CANCELLED_BY_CUSTOMER")
        return
    item = await till.parked(basket, "settle_late_money", status="CANCELLED_COMPENSATED")
    assert (item.kind, item.error) == ("DECISION", "RefundFailed")
    await till.redriven(basket, "settle_late_money", "retry")
    await till.settled(basket)
    await till.undone(basket, reason="CANCELLED_BY_CUSTOMER")


async def test_a_payment_and_a_parcel_of_no_order_are_found_and_left_alone(till: Till) -> None:
    stranger = fresh("stranger")
    terms = {"amount": "900", "currency": "eur", "capture_method": "manual", "payment_method": "pm_card_visa"}
    data = {**terms, "payment_method_types[]": "card", "metadata[order_id]": stranger, "confirm": "true"}
    url = f"{till.shop.simulators.gateway_url}/v1/payment_intents"
    async with till.shop.http.post(url, data=data, headers=SOMEBODY) as answer:
        assert answer.ok, await answer.text()
        intent_id = (await answer.json())["id"]
    await book(till.shop, f"{stranger}:main")
    [parcel] = await till.shop.shipments(stranger)
    report = await reconcile(till.shop)
    assert kinds(report, intent_id) == [FindingKind.UNKNOWN_PAYMENT]
    assert kinds(report, parcel["id"]) == [FindingKind.UNKNOWN_PARCEL]
    assert [finding.action for finding in about(report, intent_id, parcel["id"])] == [None, None]


async def test_a_provider_that_does_not_answer_is_told_and_raises_no_false_alarm(till: Till) -> None:
    basket = await till.shop.basket()
    await till.pay_at_once(basket)
    await till.confirmed(basket)
    down = await till.shop.fault("read", "error", status=500, times=FOREVER)
    report = await reconcile(till.shop)
    await till.shop.heal(down)
    assert not report.complete
    assert kinds(report, "gateway") == [FindingKind.NOT_COMPARED]
    assert about(report, basket.order_id) == []
    assert (await reconcile(till.shop)).complete
