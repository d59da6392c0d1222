"""The shop's public doors, as a shopper and an operator use them, and the simulators' control routes."""

from typing import Any

import aiohttp

from domain.views import OrderView, TimelineLine
from runtime.entry import EntryError
from runtime.settings import Settings

TIMEOUT_SECONDS = 10


class Doors:
    """One session for all of them."""

    def __init__(self, settings: Settings, session: aiohttp.ClientSession) -> None:
        self._session = session
        self._shop = f"http://127.0.0.1:{settings.http_port}"
        self._operator = f"http://127.0.0.1:{settings.ops_port}"
        self._gateway = f"http://127.0.0.1:{settings.sim_gateway_port}"
        self._courier = f"http://127.0.0.1:{settings.sim_courier_port}"

    async def post_order(self, document: dict[str, Any], key: str) -> str:
        """The new order's id."""
        answer = await self._ask("POST", f"{self._shop}/orders", document, {"Idempotency-Key": key})
        return str(answer["order_id"])

    async def order(self, order_id: str) -> OrderView:
        """The order as the shopper sees it."""
        return OrderView.model_validate(await self._ask("GET", f"{self._shop}/orders/{order_id}"))

    async def timeline(self, order_id: str) -> list[TimelineLine]:
        """What happened to it so far."""
        found: Any = await self._ask("GET", f"{self._shop}/orders/{order_id}/timeline")
        return [TimelineLine.model_validate(line) for line in found]

    async def cancel(self, order_id: str) -> None:
        """The shopper cancels; accepted means undone."""
        await self._ask("POST", f"{self._shop}/orders/{order_id}/cancel", {"reason": "changed my mind"})

    async def put_stock(self, sku: str, stock: dict[str, int], unit_price: int, currency: str) -> None:
        """Makes so many pieces available, on top of what unfinished orders of an earlier run hold."""
        held: dict[str, int] = {}
        found = await self._ask("GET", f"{self._operator}/ops/stock/{sku}", missing_is_fine=True)
        for place in (found or {}).get("warehouses", []):
            held[place["warehouse"]] = place["reserved"]
        for warehouse in sorted({*stock, *held}):
            level = {
                "warehouse": warehouse,
                "on_hand": held.get(warehouse, 0) + stock.get(warehouse, 0),
                "unit_price": unit_price,
                "currency": currency,
            }
            await self._ask("PUT", f"{self._operator}/ops/stock/{sku}", level)

    async def available(self, sku: str) -> int:
        """Pieces that can be sold now, over all warehouses."""
        found = await self._ask("GET", f"{self._operator}/ops/stock/{sku}")
        return sum(place["available"] for place in found["warehouses"])

    async def put_customer(self, customer_id: str, points: int, store_credit: dict[str, int]) -> None:
        """Gives a customer points and store credit."""
        level = {"points": points, "store_credit": store_credit}
        await self._ask("PUT", f"{self._operator}/ops/customers/{customer_id}", level)

    async def customer(self, customer_id: str) -> tuple[int, dict[str, int]]:
        """The customer's points and store credit."""
        found = await self._ask("GET", f"{self._operator}/ops/customers/{customer_id}")
        return int(found["points"]), dict(found["store_credit"])

    async def fault(self, fault: dict[str, Any]) -> None:
        """Something that goes wrong at the gateway once."""
        await self._ask("POST", f"{self._gateway}/_sim/faults", fault)

    async def late_yes(self, intent_id: str) -> None:
        """The bank authorizes a payment that was still in its works."""
        await self._ask("POST", f"{self._gateway}/_sim/intents/{intent_id}/authenticate", {"outcome": "success"})

    async def intents(self, order_id: str) -> list[dict[str, Any]]:
        """The gateway's own book about one order."""
        ledger = await self._ask("GET", f"{self._gateway}/_sim/ledger?order_id={order_id}")
        return [intent for intent in ledger["intents"] if intent["order_id"] == order_id]

    async def parcels(self, order_id: str) -> int:
        """Live shipments in the courier's own book."""
        ledger = await self._ask("GET", f"{self._courier}/_sim/ledger")
        own = [parcel for parcel in ledger["shipments"] if parcel["reference"].startswith(f"{order_id}:")]
        return sum(parcel["status"] != "cancelled" for parcel in own)

    async def _ask(
        self,
        method: str,
        url: str,
        document: Any = None,
        headers: dict[str, str] | None = None,
        *,
        missing_is_fine: bool = False,
    ) -> Any:
        timeout = aiohttp.ClientTimeout(total=TIMEOUT_SECONDS)
        try:
            async with self._session.request(method, url, json=document, headers=headers, timeout=timeout) as answer:
                if missing_is_fine and answer.status == 404:
                    return None
                if not answer.ok:
                    raise EntryError(f"{method} {url} answered {answer.status}: {await answer.text()}")
                return await answer.json(content_type=None)
        except (aiohttp.ClientError, TimeoutError) as error:
            raise EntryError(f"{method} {url} failed: {type(error).__name__}") from None
