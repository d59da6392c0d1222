"""Plays one case to its end, as the shopper, the bank and the operator of this one order would."""

import asyncio
from collections.abc import Coroutine, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from temporalio.service import RPCError
from temporalio.testing import WorkflowEnvironment

from domain.books import Books
from domain.keys import Step
from domain.messages import OrderResult
from runtime.proof import prove as prove_books
from tests.baskets import Basket
from tests.builders import an_order_document
from tests.matrix.cancels import Cancels
from tests.matrix.dimensions import UNDO_STEPS, Case, Fault, Place, Trigger, Word
from tests.matrix.faults import Damage, lay, refused_order
from tests.matrix.payments import LOOK_EVERY_SECONDS, Bank, method_of
from tests.matrix.policies import DEADLINE_SECONDS, Policies, policy_for
from tests.matrix.prove import prove
from tests.polling import eventually
from tests.shop import Shop

#: Faults that a step may stand at until a person has spoken.
NEED_A_WORD = frozenset({Fault.BUG, Fault.REFUSAL, Fault.OUTAGE})

_PAYS_IN_THREE_WAYS = {"points": 500, "store_credit": 1000}


@dataclass
class Player:
    """One shop, and the clock of its orders."""

    shop: Shop
    environment: WorkflowEnvironment
    policies: Policies

    async def play(self, case: Case) -> None:
        """One order, from its basket to its books. Raises AssertionError where it does not end as it must."""
        basket = await self._basket(case)
        try:
            async with asyncio.timeout(DEADLINE_SECONDS):
                await _Order(self, case, basket).play()
        except TimeoutError:
            view = await self.shop.view(basket.order_id)
            parked = [(item.step, item.kind, item.error) for item in view.needs_review]
            raise AssertionError(f"not at its end: {view.status} {view.reason} {parked}") from None

    async def prove_all(self) -> None:
        """Proves the books of the whole shop. Raises AssertionError with the lines that do not hold."""
        found: Books | None = None

        async def look() -> bool:
            nonlocal found
            found = await prove_books(self.shop.settings)
            return found.hold

        with suppress(AssertionError):
            # What the gateway tells of closed orders is still being looked at.
            await eventually(look, within_seconds=20)
        assert found is not None
        assert [line for line in found.lines if not line.holds] == []

    async def _basket(self, case: Case) -> Basket:
        return await self.shop.basket(**{"points": 500, "credit": 1000, **refused_order(case)})


class _Order:
    def __init__(self, player: Player, case: Case, basket: Basket) -> None:
        self.player, self.shop, self.case, self.basket = player, player.shop, case, basket
        self.order_id = basket.order_id
        self.bank = Bank(self.shop, basket, case.payment)
        self.cancels = Cancels(self.shop, self.order_id, case)
        self.damages: list[Damage] = []

    async def play(self) -> None:
        self.player.policies.give(self.order_id, policy_for(self.case))
        self.cancels.prepare()
        await self._break()
        await self.bank.prepare()
        await self._place()
        result = await _together(
            self._result(), [self.bank.speak(), self.cancels.send(), self._operate(), self._let_the_parcel_land()]
        )
        for damage in self.damages:
            await damage.land()
        await prove(self.shop, self.case, self.basket, result, self.cancels)

    async def _break(self) -> None:
        """The case's own faults, then what sends the order back: a call that meets both meets them in this order."""
        if self.case.place is not None and self.case.fault is not None:
            self.damages.append(await lay(self.shop, self.basket, self.case.place, self.case.fault))
        if self.case.undo is not None and self.case.undo_fault is not None:
            self.damages.append(await lay(self.shop, self.basket, Place(self.case.undo), self.case.undo_fault))
        if self.case.trigger is Trigger.CAPTURE:
            await self.shop.fault("capture", "error", order_id=self.order_id, status=402)

    async def _place(self) -> None:
        changes: dict[str, Any] = {**_PAYS_IN_THREE_WAYS, "payment_method": method_of(self.case.payment)}
        if self.case.breaks(Step.AUTHORIZE_PAYMENT, Fault.REFUSAL):
            changes["payment_method"] = "pm_card_chargeDeclined"
        if self.case.breaks(Step.OPEN_ORDER, Fault.REFUSAL):
            changes |= {"lines": [{"sku": "nobody-sells-this", "quantity": 1}], "points": 0, "store_credit": 0}
        if self.case.breaks(Step.BOOK_SHIPMENT, Fault.REFUSAL) or self.case.trigger is Trigger.COURIER:
            changes["shipping_address"] = an_order_document()["shipping_address"] | {"postcode": "00000"}
        if stands_still(self.case):
            await self.shop.place_in_real_time(self.basket, **changes)
        else:
            await self.shop.place(self.basket, **changes)

    async def _result(self) -> OrderResult:
        """The saga's own result, once it has ended."""
        handle = self.shop.saga(self.order_id)
        while True:
            with suppress(RPCError):
                return await handle.result()
            await asyncio.sleep(LOOK_EVERY_SECONDS)

    async def _let_the_parcel_land(self) -> None:
        """A booking that hung lands when the undo has found nothing, and before it looks again."""
        if not self.case.breaks(Step.BOOK_SHIPMENT, Fault.HANGS):
            return
        first_look = self.shop.gates.hold(self.order_id, Step.CANCEL_SHIPMENT, after=True, times=1)
        await first_look.reached(within_seconds=DEADLINE_SECONDS)
        await self.damages[0].mend()
        if self.case.trigger is not Trigger.COURIER:
            await self.shop.until_booked(self.order_id)
        first_look.open()

    # --- the operator ---------------------------------------------------------------------------------------------

    async def _operate(self) -> None:
        """Looks for what waits for a word, and says it; never returns while anything may."""
        if not {self.case.fault, self.case.undo_fault} & NEED_A_WORD:
            return
        if self.case.breaks(Step.SCREEN_ORDER, Fault.REFUSAL):
            await self._review()
        while True:
            for item in await self.shop.reviews(self.order_id):
                if item.closed_at is None:
                    await self._decide(Step(item.step), item.kind)
            await asyncio.sleep(2 * LOOK_EVERY_SECONDS)

    async def _review(self) -> None:
        if self.case.word is not Word.SKIP:
            await self.shop.reaches(self.order_id, "AWAITING_REVIEW")
            if self.case.word is Word.CANCEL:
                await self.shop.cancel(self.order_id)
            else:
                decision = "approve" if self.case.word is Word.RETRY else "reject"
                assert await self.shop.review(self.order_id, decision) == 202
            await self._go_on()

    async def _decide(self, step: Step, kind: str) -> None:
        outages = [damage for damage in self.damages if damage.parks_at(step) and self._is_down(damage)]
        if kind != "DECISION" and not outages:
            return  # it goes on by itself
        for damage in outages:
            await damage.mend()
        word = self._word(step)
        if word is Word.CANCEL:
            await self.shop.cancel(self.order_id)
        else:
            await self.shop.redrive(self.order_id, step, word.value)
        if stands_still(self.case):
            await self._go_on()

    def _is_down(self, damage: Damage) -> bool:
        faults = {self.case.undo: self.case.undo_fault}
        if self.case.place is not None:
            faults[self.case.place.step] = self.case.fault
        return faults[damage.step] is Fault.OUTAGE

    def _word(self, step: Step) -> Word:
        """What the case wants said, where that may be said; else *retry*."""
        undoing = step in UNDO_STEPS
        if undoing:
            return self.case.word if self.case.word is Word.SKIP else Word.RETRY
        mine = any(damage.parks_at(step) for damage in self.damages)
        return self.case.word if mine and self.case.word is not Word.SKIP else Word.RETRY

    async def _go_on(self) -> None:
        """The order's clock runs fast from here on."""
        task = asyncio.create_task(self.player.environment.fast_forward(self.shop.saga(self.order_id)))
        self._clock = task


def stands_still(case: Case) -> bool:
    """Whether the order must stand still until a person has spoken: its own time would run away otherwise."""
    if case.breaks(Step.SCREEN_ORDER, Fault.REFUSAL):
        return case.word is not Word.SKIP
    return case.fault is Fault.OUTAGE and case.word in {Word.COMPENSATE, Word.CANCEL}


async def _together(main: Coroutine[Any, Any, OrderResult], others: Iterable[Coroutine[Any, Any, None]]) -> OrderResult:
    """The result of `main`; the others help it along meanwhile, and whatever fails first is raised."""
    first = asyncio.create_task(main)
    tasks: set[asyncio.Task[Any]] = {first, *(asyncio.create_task(other) for other in others)}
    try:
        while not first.done():
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done - {first}:
                task.result()
            tasks -= done
        return first.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
