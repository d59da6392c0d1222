"""The shop's doors as patient people use them, and what its providers' own staff can do."""

from typing import Any

import aiohttp

from demo.doors import TIMEOUT_SECONDS, Doors
from domain.keys import Step, shipment_reference
from domain.order import RedriveAction
from runtime.entry import EntryError
from runtime.settings import Settings
from tests.baskets import fresh
from tests.polling import eventually

#: Nothing is promised about it: what a killed worker was doing is tried again after 10 or 20 s, later on busy machines.
PATIENCE_SECONDS = 180.0
#: As often as a person's browser would.
ASK_AGAIN_SECONDS = 0.25


class PatientDoors(Doors):
    """As a shopper's app does it: where a part is down, the same request again."""

    def __init__(self, settings: Settings, session: aiohttp.ClientSession) -> None:
        super().__init__(settings, session)
        self._key_at_gateway = settings.stripe_api_key

    async def ask_to_cancel(self, order_id: str, *, key: str | None = None) -> int:
        """The shopper asks for a cancel: 202 or 409. The same key is the same request."""
        url, headers = f"{self._shop}/orders/{order_id}/cancel", {"Idempotency-Key": key or fresh("cancel")}
        timeout = aiohttp.ClientTimeout(total=TIMEOUT_SECONDS)

        async def ask() -> int | None:
            try:
                async with self._session.post(url, json={}, headers=headers, timeout=timeout) as answer:
                    return answer.status if answer.status in {202, 409} else None
            except (aiohttp.ClientError, TimeoutError):
                return None

        found = await eventually(ask, within_seconds=PATIENCE_SECONDS / 3, pause_seconds=ASK_AGAIN_SECONDS)
        assert found is not None
        return found

    async def review(self, order_id: str, decision: str) -> None:
        """A reviewer decides."""
        await self._say(f"{self._operator}/ops/orders/{order_id}/review", {"decision": decision, "reason": "a test"})

    async def redrive(self, order_id: str, step: Step, action: RedriveAction) -> None:
        """An operator's word on a parked step."""
        word = {"step": step, "action": action, "reason": "a test"}
        await self._say(f"{self._operator}/ops/orders/{order_id}/redrive", word)

    async def authenticate(self, intent_id: str, outcome: str) -> None:
        """The shopper's answer to 3-D Secure."""
        await self._ask("POST", f"{self._gateway}/_sim/intents/{intent_id}/authenticate", {"outcome": outcome})

    async def fault_at_courier(self, fault: dict[str, Any]) -> None:
        """Something that goes wrong at the courier, where gateway and courier share a word for it."""
        await self._ask("POST", f"{self._courier}/_sim/faults", fault)

    async def heal(self, order_id: str) -> None:
        """Ends what goes wrong with one order."""
        for fault in (await self._ask("GET", f"{self._gateway}/_sim/faults"))["faults"]:
            if fault["order_id"] == order_id:
                await self._ask("DELETE", f"{self._gateway}/_sim/faults/{fault['id']}")

    async def advance_providers(self, seconds: float) -> None:
        """So much time goes by at the gateway and the courier."""
        await self._ask("POST", f"{self._gateway}/_sim/clock", {"advance_seconds": seconds})

    async def cancel_at_gateway(self, intent_id: str) -> None:
        """Somebody ends a payment in the gateway's own dashboard."""
        headers = {"Authorization": f"Bearer {self._key_at_gateway}"}
        await self._ask("POST", f"{self._gateway}/v1/payment_intents/{intent_id}/cancel", headers=headers)

    async def cancel_at_courier(self, order_id: str, warehouse: str) -> None:
        """Somebody cancels a parcel by phone."""
        await self._ask("POST", f"{self._courier}/shipments/{shipment_reference(order_id, warehouse)}/cancel")

    async def _say(self, url: str, word: dict[str, Any]) -> None:
        await self._ask("POST", url, word, {"Idempotency-Key": fresh("word")})

    async def _ask(self, *words: Any, **more: Any) -> Any:
        troubles: list[EntryError] = []

        async def ask() -> list[Any]:
            try:
                return [await super(PatientDoors, self)._ask(*words, **more)]
            except EntryError as error:
                troubles.append(error)
                return []

        try:
            return (await eventually(ask, within_seconds=PATIENCE_SECONDS / 3, pause_seconds=ASK_AGAIN_SECONDS))[0]
        except AssertionError:
            raise troubles[-1] from None
