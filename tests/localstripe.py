"""localstripe: a Stripe-like server that others wrote, as a process of its own, and its own book to read.

It knows nothing of our reading of Stripe's documentation, so it contradicts us where our simulator would share a
mistake. It is under the GPL: it is never imported here and no part of the shop needs it.
"""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp

from runtime.ports import free_port
from tests.polling import eventually

#: Its own command listens on every address, and writes its book to one file for all of a machine.
SERVER = """
import sys
from aiohttp import web
from localstripe.resources import Store
from localstripe.server import app
Store.dump_to_disk = lambda self: None
web.run_app(app, host="127.0.0.1", port=int(sys.argv[1]), print=None)
"""
STARTS_WITHIN_SECONDS = 60
SOMEBODY = {"Authorization": "Bearer sk_test_somebody"}

#: Cards that it knows, of those in Stripe's documentation on testing.
DECLINED_WHEN_CHARGED = "4000000000000341"
NEEDS_AUTHENTICATION = "4000002760003184"


class Localstripe:
    """Whoever else works with the gateway: its dashboard, the shopper's browser, and who reads its book."""

    def __init__(self, url: str, http: aiohttp.ClientSession) -> None:
        self.url = url
        self._http = http

    async def intents(self, order_id: str) -> list[dict[str, Any]]:
        """All intents of one order."""
        found = await self.ask("GET", "/v1/payment_intents?limit=1000")
        return [one for one in found["data"] if one["metadata"].get("order_id") == order_id]

    async def intent(self, order_id: str) -> dict[str, Any]:
        """The order's only intent."""
        (intent,) = await self.intents(order_id)
        return intent

    async def money(self, order_id: str) -> tuple[str, int, int]:
        """The state of the order's only intent, what was taken and what was given back, by its charge."""
        intent = await self.intent(order_id)
        charge = intent["latest_charge"]
        if charge is None:
            return intent["status"], 0, 0
        return intent["status"], charge["amount"] if charge["captured"] else 0, charge["amount_refunded"]

    async def card(self, number: str) -> str:
        """A payment method with this card."""
        card = {"number": number, "exp_month": 12, "exp_year": 2040, "cvc": "123"}
        return str((await self.ask("POST", "/v1/payment_methods", {"type": "card", "card": card}))["id"])

    async def capture(self, order_id: str) -> None:
        """Somebody takes the held money by hand."""
        await self.ask("POST", f"/v1/payment_intents/{(await self.intent(order_id))['id']}/capture")

    async def authenticate(self, order_id: str, *, success: bool) -> None:
        """The shopper answers the bank's question."""
        intent = await self.intent(order_id)
        answer = {"client_secret": intent["client_secret"], "success": success}
        await self.ask("POST", f"/v1/payment_intents/{intent['id']}/_authenticate", answer)

    async def send_webhooks(self, url: str, secret: str) -> None:
        """Sends its events there from now on, signed."""
        async with self._http.post(f"{self.url}/_config/webhooks/shop", json={"url": url, "secret": secret}) as answer:
            answer.raise_for_status()

    async def ask(self, method: str, path: str, document: dict[str, Any] | None = None) -> dict[str, Any]:
        """One request past all code of ours."""
        async with self._http.request(method, self.url + path, json=document, headers=SOMEBODY) as answer:
            answer.raise_for_status()
            found: dict[str, Any] = await answer.json()
            return found


@asynccontextmanager
async def running_localstripe() -> AsyncIterator[Localstripe]:
    """It runs until the block ends, with an empty book."""
    port = free_port()
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", SERVER, str(port))
    try:
        async with aiohttp.ClientSession() as http:
            localstripe = Localstripe(f"http://127.0.0.1:{port}", http)

            async def answers() -> bool:
                assert process.returncode is None, "localstripe has ended"
                try:
                    await localstripe.ask("GET", "/v1/refunds")
                except aiohttp.ClientConnectionError:
                    return False
                return True

            await eventually(answers, within_seconds=STARTS_WITHIN_SECONDS)
            yield localstripe
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()
