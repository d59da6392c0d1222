"""How each fault is laid on a step: at a gate around its activity, or at the provider behind it."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from domain.errors import (
    ContradictionError,
    CourierUnavailable,
    FraudServiceUnavailable,
    NotServed,
    PaymentMismatch,
    PaymentServiceUnavailable,
)
from domain.keys import Step
from tests.baskets import Basket
from tests.gates import Gate, a_bug, database_down, database_restarting
from tests.matrix.dimensions import PROVIDERS, RESERVING, Case, Fault, Place
from tests.matrix.policies import PATIENT
from tests.shop import Shop
from workflows.options import options_for

#: What a step asks its provider for. Look-ups share their question with other steps: they are broken at their gates.
OPS = {
    Step.SCREEN_ORDER: "score",
    Step.AUTHORIZE_PAYMENT: "confirm",
    Step.BOOK_SHIPMENT: "book",
    Step.CAPTURE_PAYMENT: "capture",
    Step.RELEASE_PAYMENT: "cancel",
    Step.CANCEL_SHIPMENT: "cancel",
}

#: Refusals that an order's own input brings about, or the provider's answer.
BY_INPUT = frozenset({Step.OPEN_ORDER, Step.SCREEN_ORDER, *RESERVING, Step.AUTHORIZE_PAYMENT, Step.BOOK_SHIPMENT})

_UNAVAILABLE = {"fraud": FraudServiceUnavailable, "gateway": PaymentServiceUnavailable, "courier": CourierUnavailable}


@dataclass
class Damage:
    """What was laid on one order's step, and how it is taken away again."""

    shop: Shop
    order_id: str
    step: Step
    _gates: list[Gate] = field(default_factory=list)
    _posted: list[str] = field(default_factory=list)

    def parks_at(self, step: Step) -> bool:
        """Whether this step is what parks: a look-up parks the payment's wait."""
        looks = {Step.READ_PAYMENT, Step.ABANDON_PAYMENT}
        return (Step.AWAIT_PAYMENT if self.step in looks else self.step) is step

    async def mend(self) -> None:
        """Ends the outage."""
        for gate in self._gates:
            gate.open()
        await asyncio.gather(*map(self.shop.heal, self._posted))

    async def land(self) -> None:
        """Lets go on whatever still stands or hangs, and waits until it is over."""
        await self.mend()
        await self.shop.gates.ended(self.order_id, self.step, self.shop.gates.calls(self.order_id, self.step))

    def fail(self, place: Place, error: Callable[[], Exception], *, after: bool = False, times: int | None = 1) -> None:
        """A gate that raises."""
        gates = self.shop.gates
        self._gates.append(gates.fail(self.order_id, place.step, error, item=place.item, after=after, times=times))

    def hold(self, place: Place, *, after: bool = False, times: int | None = 1) -> None:
        """A gate that holds."""
        self._gates.append(self.shop.gates.hold(self.order_id, place.step, item=place.item, after=after, times=times))

    async def post(self, op: str, mode: str, *, times: int = 1, **more: Any) -> None:
        """A fault at the step's provider."""
        fault = self.shop.fault(op, mode, on=PROVIDERS[self.step], order_id=self.order_id, times=times, **more)
        self._posted.append(await fault)


async def lay(shop: Shop, basket: Basket, place: Place, fault: Fault) -> Damage:
    """Breaks the place for this basket's order."""
    damage = Damage(shop, basket.order_id, place.step)
    await _LAYING[fault](damage, place)
    return damage


def tries_of(step: Step) -> int:
    """How often the step is tried before it has run out."""
    return options_for(step, PATIENT).tries


def unavailable(step: Step) -> Exception:
    """What the step raises when whoever it asks gives no answer."""
    return _UNAVAILABLE[PROVIDERS[step]]("tests") if step in PROVIDERS else database_down()


def not_served(step: Step, retry_after_seconds: float | None = None) -> Exception:
    """What it raises when it was certainly not heard."""
    return NotServed("tests", retry_after_seconds) if step in PROVIDERS else database_restarting()


async def _refuse(damage: Damage, place: Place) -> None:
    if place.step is Step.CAPTURE_PAYMENT:
        await damage.post("capture", "error", status=402)
    elif place.step not in BY_INPUT:
        looks = place.step in {Step.READ_PAYMENT, Step.ABANDON_PAYMENT}
        damage.fail(place, lambda: PaymentMismatch("tests") if looks else ContradictionError("tests"))


async def _fail_before(damage: Damage, place: Place) -> None:
    if place.step in OPS:
        await damage.post(OPS[place.step], "error", status=502)
    else:
        damage.fail(place, lambda: unavailable(place.step))


async def _lose_answer(damage: Damage, place: Place) -> None:
    if place.step in OPS:
        await damage.post(OPS[place.step], "drop")
    else:
        damage.fail(place, lambda: unavailable(place.step), after=True)


async def _heal_at_last(damage: Damage, place: Place) -> None:
    damage.fail(place, lambda: unavailable(place.step), times=tries_of(place.step) - 1)


async def _limit_rate(damage: Damage, place: Place) -> None:
    if place.step in OPS:
        await damage.post(OPS[place.step], "error", status=429, retry_after=7, times=2)
    else:
        damage.fail(place, lambda: not_served(place.step, 7), times=2)


async def _not_reached(damage: Damage, place: Place) -> None:
    damage.fail(place, lambda: not_served(place.step), times=2)


async def _run_out(damage: Damage, place: Place) -> None:
    damage.fail(place, lambda: unavailable(place.step), times=tries_of(place.step))


async def _stay_down(damage: Damage, place: Place) -> None:
    damage.fail(place, lambda: unavailable(place.step), times=None)


async def _break(damage: Damage, place: Place) -> None:
    damage.fail(place, a_bug, times=3)


async def _die_before(damage: Damage, place: Place) -> None:
    damage.hold(place)


async def _land_late(damage: Damage, place: Place) -> None:
    ends = place.step in {*RESERVING, Step.BOOK_SHIPMENT}
    damage.hold(place, times=None if ends else tries_of(place.step))


async def _hang(damage: Damage, place: Place) -> None:
    all_tries = place.step in {Step.AUTHORIZE_PAYMENT, Step.BOOK_SHIPMENT}
    await damage.post(OPS[place.step], "hang", times=tries_of(place.step) if all_tries else 1)


async def _kill_after(damage: Damage, place: Place) -> None:
    damage.hold(place, after=True)


_LAYING: dict[Fault, Callable[[Damage, Place], Awaitable[None]]] = {
    Fault.REFUSAL: _refuse,
    Fault.FAILS_BEFORE: _fail_before,
    Fault.ANSWER_LOST: _lose_answer,
    Fault.TRANSIENT: _heal_at_last,
    Fault.RATE_LIMITED: _limit_rate,
    Fault.NOT_REACHED: _not_reached,
    Fault.RUNS_OUT: _run_out,
    Fault.OUTAGE: _stay_down,
    Fault.BUG: _break,
    Fault.DIES: _die_before,
    Fault.LANDS_LATE: _land_late,
    Fault.HANGS: _hang,
    Fault.KILLED: _kill_after,
}


def refused_order(case: Case) -> dict[str, Any]:
    """How the basket must be made for the refusal that the case wants (`Shop.basket`)."""
    if case.fault is not Fault.REFUSAL or case.place is None:
        return {}
    baskets: dict[Step, dict[str, Any]] = {
        Step.SCREEN_ORDER: {"suffix": "-score-95"},
        Step.RESERVE_STOCK: {"on_hand": 0},
        Step.BURN_POINTS: {"points": 0},
        Step.APPLY_STORE_CREDIT: {"credit": 0},
    }
    return baskets.get(case.place.step, {})
