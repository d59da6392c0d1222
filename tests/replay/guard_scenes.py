"""What the guard and the night do: their runs, orders whose run was ended by hand, and what undone orders left."""

from typing import Any

from domain.keys import Step
from domain.order import ParkKind
from domain.reconciliation import RunKind
from tests.baskets import Basket
from tests.guarding import book, reconcile, terminated
from tests.replay.order_scenes import cancelled_by_customer, ends, to
from tests.replay.scene import Play, Scene, leftovers, run_id_of, the_run
from tests.workflows.till import FOREVER, Till


def compared(kind: RunKind) -> Play:
    """A run that looks at an order which is well."""

    async def play(till: Till, basket: Basket) -> None:
        await ends()(till, basket)
        await reconcile(till.shop, kind, run_id_of(basket))

    return play


async def compared_in_part(till: Till, basket: Basket) -> None:
    """The gateway's book cannot be read."""
    down = await till.shop.fault("read", "error", status=500, times=FOREVER)
    await reconcile(till.shop, RunKind.GUARD, run_id_of(basket))
    await till.shop.heal(down)


async def compared_twice_a_night(till: Till, basket: Basket) -> None:
    """The night's run is complete already."""
    await reconcile(till.shop, RunKind.NIGHTLY)
    await reconcile(till.shop, RunKind.NIGHTLY, run_id_of(basket))


def found_dead(step: Step, action: str | None, *, after: bool = True, **changes: Any) -> Play:
    """A run that was ended by hand at this step, the run that the guard starts after it, and an operator's word."""

    async def play(till: Till, basket: Basket) -> None:
        (await terminated(till.shop, basket, step, after=after, **changes)).open()
        await reconcile(till.shop)
        await till.shop.until_parked(basket.order_id, Step.OPEN_ORDER, kind=ParkKind.DECISION)
        if action:
            await till.redriven(basket, Step.OPEN_ORDER, action)
            await till.shop.ended(basket.order_id)

    return play


async def found_sold(till: Till, basket: Basket) -> None:
    """A run that was ended by hand when all was told: nobody is asked."""
    gate = await terminated(till.shop, basket, Step.COMMIT_STOCK)
    await reconcile(till.shop)
    gate.open()
    await till.shop.ended(basket.order_id)


def parcel_left(action: str | None = None, *, refused: bool = False) -> Play:
    """A booking lands after its order was undone, and the courier may refuse to cancel it."""

    async def play(till: Till, basket: Basket) -> None:
        await cancelled_by_customer(till, basket)
        await book(till.shop, f"{basket.order_id}:main")
        if refused:
            more = {"status": 400, "times": FOREVER}
            await till.shop.fault("cancel", "error", on="courier", order_id=basket.order_id, **more)
        await reconcile(till.shop)
        if refused:
            await till.parked(basket, Step.CANCEL_SHIPMENT, status="CANCELLED_COMPENSATED")
        if action:
            await till.redriven(basket, Step.CANCEL_SHIPMENT, action)
        if action or not refused:
            await (await leftovers(till, basket)).result()

    return play


GUARD_SCENES: dict[str, Scene] = {
    "guard": Scene(compared(RunKind.GUARD), the_run),
    "guard-in-part": Scene(compared_in_part, the_run),
    "nightly": Scene(compared(RunKind.NIGHTLY), the_run),
    "nightly-again": Scene(compared_twice_a_night, the_run),
    # Orders whose run was ended by hand.
    "dead-run-asks": Scene(found_dead(Step.CAPTURE_PAYMENT, None)),
    "dead-run-confirmed": Scene(found_dead(Step.CAPTURE_PAYMENT, "retry")),
    "dead-run-undone": Scene(found_dead(Step.CAPTURE_PAYMENT, "compensate")),
    "dead-run-undoing": Scene(found_dead(Step.RELEASE_PAYMENT, "retry", after=False, **to("00000"))),
    "dead-run-sold": Scene(found_sold),
    # What an undone order still has.
    "leftovers": Scene(parcel_left(), leftovers),
    "leftovers-parked": Scene(parcel_left(refused=True), leftovers),
    "leftovers-skipped": Scene(parcel_left("skip", refused=True), leftovers),
}
