"""How the word about the payment comes: by itself from the simulated gateway, or from whoever stands behind it."""

import asyncio
from dataclasses import dataclass
from typing import Any

from domain.keys import Step
from tests.baskets import Basket, fresh
from tests.gates import Gate
from tests.matrix.dimensions import Payment
from tests.matrix.policies import DEADLINE_SECONDS
from tests.polling import eventually
from tests.shop import Shop

_METHODS = {
    Payment.AT_ONCE: "pm_sim_at_once",
    Payment.WEBHOOK: "pm_card_visa",
    Payment.TWICE: "pm_card_visa",
    Payment.OUT_OF_ORDER: "pm_sim_never",
    Payment.LATE: "pm_sim_never",
    Payment.NEVER: "pm_sim_silent",
    Payment.DECLINED: "pm_sim_never",
    Payment.SECURE: "pm_card_authenticationRequired",
    Payment.SECURE_FAILED: "pm_card_authenticationRequired",
    Payment.ABANDONED: "pm_card_authenticationRequired",
}
_OUTCOMES = {
    Payment.OUT_OF_ORDER: "success",
    Payment.LATE: "success",
    Payment.DECLINED: "fail",
    Payment.SECURE: "success",
    Payment.SECURE_FAILED: "fail",
}
_OPEN = frozenset({"processing", "requires_action"})
LOOK_EVERY_SECONDS = 0.05


def method_of(payment: Payment) -> str:
    """The card that brings this payment about."""
    return _METHODS[payment]


@dataclass
class Bank:
    """The bank and the shopper behind one order's payment."""

    shop: Shop
    basket: Basket
    payment: Payment
    _deadline: Gate | None = None

    async def prepare(self) -> None:
        """Before the order is placed."""
        if self.payment is Payment.TWICE:
            await self.shop.fault("webhook", "duplicate", order_id=self.basket.order_id, times=100)
        if self.payment in _OUTCOMES and self.payment is not Payment.LATE:
            # The order's clock runs fast: its deadline waits for a word that is on its way.
            self._deadline = self.shop.gates.hold(self.basket.order_id, Step.ABANDON_PAYMENT)

    async def speak(self) -> None:
        """Gives the word once the payment waits for it; returns at once where it comes by itself, or never."""
        if self.payment not in _OUTCOMES:
            return
        intent = await self._waiting_intent()
        if self.payment is Payment.LATE:
            await self._parked()
        if self.payment is Payment.OUT_OF_ORDER:
            await self._tell(intent, "payment_intent.canceled", status="canceled")
        await self.shop.sim(f"intents/{intent['id']}/authenticate", outcome=_OUTCOMES[self.payment])
        if self.payment is Payment.OUT_OF_ORDER:
            await self._tell(intent, "payment_intent.processing", status="processing")
        if self._deadline is not None:
            self._deadline.open()

    async def _tell(self, intent: dict[str, Any], kind: str, **overrides: str) -> None:
        await self.shop.sim("events", type=kind, intent=intent["id"], event_id=fresh("evt"), overrides=overrides)

    async def _waiting_intent(self) -> dict[str, Any]:
        while True:
            for intent in await self.shop.intents(self.basket.order_id):
                if intent["status"] in _OPEN:
                    return intent
            await asyncio.sleep(LOOK_EVERY_SECONDS)

    async def _parked(self) -> None:
        """Until the order has waited so long that it is parked."""

        async def look() -> bool:
            items = await self.shop.reviews(self.basket.order_id)
            return any(item.closed_at is None and item.kind == "TECHNICAL" for item in items)

        await eventually(look, within_seconds=DEADLINE_SECONDS)
