"""Orders from their start to every ending, and to every wait that one may be stopped at."""

from collections.abc import Callable
from typing import Any

from temporalio.common import WorkflowIDReusePolicy

from domain.errors import CaptureFailed, PaymentServiceUnavailable
from domain.keys import Step
from domain.messages import OrderInput
from tests.baskets import Basket
from tests.builders import an_order_document
from tests.gates import a_bug, database_down
from tests.replay.scene import Play, Scene
from tests.workflows.till import FOREVER, Till
from workflows.names import Queue
from workflows.options import CAPTURE_TRIES, STEP_TRIES, UNDO_TRIES
from workflows.order import OrderWorkflow

PAYS_IN_THREE_WAYS = {"points": 500, "store_credit": 1000}
#: A shopper has half an hour to pay (domain.policy).
DEADLINE = 1800
UNKNOWN = [{"sku": "nobody-sells-this", "quantity": 1}]
UNDOS = (
    Step.CANCEL_SHIPMENT,
    Step.RELEASE_PAYMENT,
    Step.REFUND_STORE_CREDIT,
    Step.RESTORE_POINTS,
    Step.RELEASE_STOCK,
)


def to(postcode: str) -> dict[str, Any]:
    """An order to an address with this postcode."""
    return {"shipping_address": an_order_document()["shipping_address"] | {"postcode": postcode}}


def unavailable() -> Exception:
    """The gateway gives no answer."""
    return PaymentServiceUnavailable("tests")


def ends(**changes: Any) -> Play:
    """The order is placed and ends by itself."""

    async def play(till: Till, basket: Basket) -> None:
        await till.shop.place(basket, **changes)
        await till.shop.ended(basket.order_id)

    return play


def ends_although(step: Step, error: Callable[[], Exception], times: int, **changes: Any) -> Play:
    """As `ends`, with a step that fails so often."""

    async def play(till: Till, basket: Basket) -> None:
        till.shop.gates.fail(basket.order_id, step, error, times=times)
        await ends(**changes)(till, basket)

    return play


def parked_at(step: Step, error: Callable[[], Exception], action: str | None = None, **changes: Any) -> Play:
    """The order parks at a step, and stays there or is moved by an operator."""

    async def play(till: Till, basket: Basket) -> None:
        gate = till.shop.gates.fail(basket.order_id, step, error)
        await till.shop.place_in_real_time(basket, **changes)
        await till.shop.until_parked(basket.order_id, step)
        if action:
            gate.open()
            await till.redriven(basket, step, action)
            await till.shop.ended(basket.order_id)

    return play


def in_review(decision: str | None) -> Play:
    """The order waits for a reviewer, and goes on by the decision."""

    async def play(till: Till, basket: Basket) -> None:
        await till.shop.place_in_real_time(basket)
        await till.shop.reaches(basket.order_id, "AWAITING_REVIEW")
        if decision == "cancel":
            await till.shop.cancel(basket.order_id)
        elif decision:
            assert await till.shop.review(basket.order_id, decision) == 202
        if decision:
            await till.shop.ended(basket.order_id)

    return play


def authenticating(outcome: str | None) -> Play:
    """The order waits for the shopper's 3-D Secure."""

    async def play(till: Till, basket: Basket) -> None:
        await till.waiting(basket, "pm_card_authenticationRequired", "REQUIRES_ACTION")
        if outcome:
            await till.authenticate(basket, outcome)
            await till.shop.ended(basket.order_id)

    return play


async def cancelled_by_customer(till: Till, basket: Basket) -> None:
    """Update `cancel_order` while the shopper should pay."""
    await authenticating(None)(till, basket)
    assert (await till.shop.cancel(basket.order_id))[0] == 202
    await till.shop.ended(basket.order_id)


async def cancelled_in_temporal(till: Till, basket: Basket) -> None:
    """The Web UI's *Request Cancellation* while a step is under way."""
    gate = till.shop.gates.hold(basket.order_id, Step.RESERVE_STOCK)
    await till.shop.place(basket, **PAYS_IN_THREE_WAYS)
    await gate.reached()
    await till.shop.saga(basket.order_id).cancel()
    gate.open()
    await till.shop.ended(basket.order_id)


async def cancelled_too_late(till: Till, basket: Basket) -> None:
    """Temporal's cancel after the pivot changes nothing."""
    gate = till.shop.gates.hold(basket.order_id, Step.CONFIRM_ORDER)
    await till.shop.place(basket)
    await gate.reached()
    await till.shop.saga(basket.order_id).cancel()
    gate.open()
    await till.shop.ended(basket.order_id)


async def refused_and_cancelled(till: Till, basket: Basket) -> None:
    """The shopper cancels what the shop is about to refuse."""
    gate = till.shop.gates.hold(basket.order_id, Step.OPEN_ORDER)
    await till.shop.place(basket, lines=UNKNOWN)
    await gate.reached()
    assert (await till.shop.cancel(basket.order_id))[0] == 202
    gate.open()
    await till.shop.ended(basket.order_id)


async def expired(till: Till, basket: Basket) -> None:
    """Somebody ends the hold while the order still waits."""
    await authenticating(None)(till, basket)
    await till.cancel_at_gateway(basket)
    await till.shop.ended(basket.order_id)


async def two_warehouses(till: Till, basket: Basket) -> None:
    """A parcel from each."""
    await till.shop.put_stock(basket.a, 3000, 5, "north")
    await till.shop.put_stock(basket.b, 2000, 5, "south")
    await ends()(till, basket)


async def unscored(till: Till, basket: Basket) -> None:
    """The scorer is down, and so a person is asked."""
    await till.shop.fault("score", "error", on="fraud", order_id=basket.order_id, status=500, times=FOREVER)
    await till.shop.place_in_real_time(basket)
    await till.shop.reaches(basket.order_id, "AWAITING_REVIEW")


async def processing(till: Till, basket: Basket) -> None:
    """The bank works on it."""
    await till.waiting(basket, "pm_sim_never")


async def unreadable(till: Till, basket: Basket) -> None:
    """At the deadline the gateway cannot be asked."""
    await till.fault(basket, "read", "error", status=502, times=FOREVER)
    await till.waiting(basket, "pm_sim_silent")
    await till.forward(basket, DEADLINE)
    await till.parked(basket, "await_payment")


async def courier_asked_later(till: Till, basket: Basket) -> None:
    """The courier says "not now", and the order waits for it."""
    not_now = {"status": 503, "retry_after": 100, "times": 9}
    await till.shop.fault("book", "error", on="courier", order_id=basket.order_id, **not_now)
    await till.shop.place_in_real_time(basket)
    await till.shop.gates.ended(basket.order_id, Step.BOOK_SHIPMENT, 1)


async def courier_never_answered(till: Till, basket: Basket) -> None:
    """Bookings without an answer: their undo looks again."""
    await till.shop.fault("book", "drop", on="courier", order_id=basket.order_id, times=STEP_TRIES)
    await ends()(till, basket)


async def all_undos_parked(till: Till, basket: Basket) -> None:
    """Five parks side by side."""
    for undo in UNDOS:
        till.shop.gates.fail(basket.order_id, undo, database_down)
    await till.shop.place_in_real_time(basket, **PAYS_IN_THREE_WAYS, **to("00000"))
    for undo in UNDOS:
        await till.shop.until_parked(basket.order_id, undo)


async def started_again(till: Till, basket: Basket) -> None:
    """A closed order that is started once more."""
    await ends()(till, basket)
    handle = till.shop.saga(basket.order_id)
    await till.shop.client.execute_workflow(
        OrderWorkflow.run,
        OrderInput(order_id=basket.order_id),
        id=handle.id,
        task_queue=Queue.ORDERS,
        id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
    )


UNDONE = PAYS_IN_THREE_WAYS | to("00000")
SUSPECT = "-score-95"

ORDER_SCENES: dict[str, Scene] = {
    # How an order ends well.
    "confirmed": Scene(ends()),
    "confirmed-paid-in-three-ways": Scene(ends(**PAYS_IN_THREE_WAYS)),
    "confirmed-nothing-to-pay": Scene(ends(points=5000), points=5000),
    "confirmed-two-parcels": Scene(two_warehouses, on_hand=0),
    "confirmed-after-review": Scene(in_review("approve"), suffix=SUSPECT),
    "confirmed-after-authentication": Scene(authenticating("success")),
    "confirmed-without-webhooks": Scene(ends(payment_method="pm_sim_silent")),
    "confirmed-captured-at-the-second-key": Scene(ends_although(Step.CAPTURE_PAYMENT, unavailable, CAPTURE_TRIES)),
    "confirmed-opened-after-an-outage": Scene(ends_although(Step.OPEN_ORDER, database_down, 12)),
    "confirmed-sold-after-an-outage": Scene(ends_although(Step.COMMIT_STOCK, database_down, 25)),
    "confirmed-after-a-retry": Scene(parked_at(Step.RESERVE_STOCK, a_bug, "retry")),
    "confirmed-cancelled-too-late": Scene(cancelled_too_late),
    "confirmed-started-again": Scene(started_again),
    # How an order is undone, by its reason.
    "out-of-stock": Scene(ends(**PAYS_IN_THREE_WAYS), on_hand=0),
    "insufficient-points": Scene(ends(**PAYS_IN_THREE_WAYS), points=0),
    "insufficient-credit": Scene(ends(**PAYS_IN_THREE_WAYS), credit=0),
    "card-declined": Scene(ends(payment_method="pm_card_chargeDeclined")),
    "fraud-blocked": Scene(ends(payment_method="pm_card_radarBlock")),
    "authentication-failed": Scene(authenticating("fail")),
    "payment-timed-out": Scene(ends(payment_method="pm_card_authenticationRequired")),
    "authorization-expired": Scene(expired),
    "capture-failed": Scene(ends_although(Step.CAPTURE_PAYMENT, lambda: CaptureFailed("tests"), 1)),
    "no-service-to-address": Scene(ends(**UNDONE)),
    "courier-unavailable": Scene(ends(**to("50000"))),
    "courier-unavailable-looked-again": Scene(courier_never_answered),
    "review-rejected": Scene(in_review("reject"), suffix=SUSPECT),
    "review-timed-out": Scene(ends(), suffix=SUSPECT),
    "cancelled-by-customer": Scene(cancelled_by_customer),
    "cancelled-by-customer-in-review": Scene(in_review("cancel"), suffix=SUSPECT),
    "cancelled-by-operator": Scene(parked_at(Step.BOOK_SHIPMENT, a_bug, "compensate")),
    "cancelled-by-operator-while-opening": Scene(parked_at(Step.OPEN_ORDER, a_bug, "compensate")),
    "cancelled-by-operator-in-temporal": Scene(cancelled_in_temporal),
    "unknown-sku": Scene(ends(lines=UNKNOWN)),
    "unknown-sku-cancelled-meanwhile": Scene(refused_and_cancelled),
    "service-unavailable": Scene(ends_although(Step.RESERVE_STOCK, database_down, STEP_TRIES)),
    "undo-after-an-outage": Scene(ends_although(Step.RESTORE_POINTS, database_down, UNDO_TRIES, **UNDONE)),
    "undo-skipped": Scene(parked_at(Step.RESTORE_POINTS, a_bug, "skip", **UNDONE)),
    # Where an order may stand when a worker with new code meets it.
    "waits-for-reviewer": Scene(in_review(None), suffix=SUSPECT),
    "waits-for-score": Scene(unscored),
    "waits-for-shopper": Scene(authenticating(None)),
    "waits-for-bank": Scene(processing),
    "waits-for-courier": Scene(courier_asked_later),
    "parked-opening": Scene(parked_at(Step.OPEN_ORDER, a_bug)),
    "parked-reserving": Scene(parked_at(Step.RESERVE_STOCK, a_bug)),
    "parked-authorizing": Scene(parked_at(Step.AUTHORIZE_PAYMENT, unavailable)),
    "parked-awaiting-payment": Scene(unreadable),
    "parked-booking": Scene(parked_at(Step.BOOK_SHIPMENT, a_bug)),
    "parked-capturing": Scene(parked_at(Step.CAPTURE_PAYMENT, unavailable)),
    "parked-confirming": Scene(parked_at(Step.CONFIRM_ORDER, a_bug)),
    "parked-committing": Scene(parked_at(Step.COMMIT_STOCK, a_bug)),
    **{f"parked-{undo.value.replace('_', '-')}": Scene(parked_at(undo, database_down, **UNDONE)) for undo in UNDOS},
    "parked-all-undos": Scene(all_undos_parked),
}
