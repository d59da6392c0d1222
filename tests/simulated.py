"""Simulators with free ports, the official Stripe client, and a shop's webhook endpoint that remembers what came."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import stripe
from aiohttp import web

from simulators import Config, Endpoint, Pace, Simulators
from tests.polling import eventually

SECRET = "whsec_of_the_shop"
DEADLINE_SECONDS = 10.0


class WebhookReceiver:
    """Answers what it is told to and keeps each event whose signature is right."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self.attempts = 0
        self.answers: list[int] = []
        self._arrived = asyncio.Condition()

    async def receive(self, request: web.Request) -> web.Response:
        """The route."""
        body = await request.read()
        signed = request.headers.get("Stripe-Signature") or request.headers.get("Courier-Signature")
        async with self._arrived:
            self.attempts += 1
            try:
                stripe.WebhookSignature.verify_header(body.decode(), signed or "", SECRET, tolerance=300)
                status = self.answers.pop(0) if self.answers else 200
            except stripe.SignatureVerificationError:
                status = 400
            if status == 200:
                self.events.append(json.loads(body))
            self._arrived.notify_all()
        return web.Response(status=status)

    def types(self) -> list[str]:
        """Event types in the order of arrival."""
        return [event["type"] for event in self.events]

    async def wait_for(self, *types: str) -> None:
        """Until events of these types have come, each as often as it is named."""
        async with self._arrived, asyncio.timeout(DEADLINE_SECONDS):
            await self._arrived.wait_for(lambda: all(self.types().count(one) >= types.count(one) for one in types))

    async def wait_for_attempts(self, number: int) -> None:
        """Until the endpoint has been called that often, whatever it answered."""
        async with self._arrived, asyncio.timeout(DEADLINE_SECONDS):
            await self._arrived.wait_for(lambda: self.attempts >= number)


class Desk:
    """What a test works with: the simulators, clients for them, and the receiver of their webhooks."""

    def __init__(self, simulators: Simulators, http: aiohttp.ClientSession, receiver: WebhookReceiver) -> None:
        self.simulators = simulators
        self.http = http
        self.receiver = receiver
        self._stripe_http = stripe.AIOHTTPClient()
        self.stripe = stripe.StripeClient(
            "sk_test_simulated",
            base_addresses={"api": simulators.gateway_url},
            http_client=self._stripe_http,
            max_network_retries=0,
        )
        self.intents = self.stripe.v1.payment_intents
        self.refunds = self.stripe.v1.refunds

    async def close(self) -> None:
        """Ends the Stripe client's connections."""
        await self._stripe_http.close_async()  # type: ignore[no-untyped-call]  # so in the SDK

    async def control(self, method: str, path: str, base: str | None = None, /, **document: Any) -> dict[str, Any]:
        """A control route of the gateway, or of the simulator at `base`; the JSON answer, which must be a 2xx."""
        url = f"{base or self.simulators.gateway_url}/_sim/{path}"
        async with self.http.request(method, url, json=document or None) as answer:
            assert answer.ok, await answer.text()
            found: dict[str, Any] = await answer.json()
            return found

    async def fault(self, base: str | None = None, /, **fault: Any) -> str:
        """Posts a fault and returns its id."""
        return str((await self.control("POST", "faults", base, **fault))["id"])

    async def ledger(self, base: str | None = None) -> dict[str, Any]:
        """The ledger of the gateway, or of the simulator at `base`."""
        return await self.control("GET", "ledger", base)

    async def an_intent(self, method: str = "pm_card_visa", *, order: str = "o1", key: str | None = None) -> str:
        """Creates an intent of 45.00 EUR with manual capture, not confirmed yet, and returns its id."""
        intent = await self.intents.create_async(
            {
                "amount": 4500,
                "currency": "eur",
                "capture_method": "manual",
                "payment_method": method,
                "metadata": {"order_id": order},
            },
            {"idempotency_key": key or f"{order}:create"},
        )
        return intent.id

    async def an_authorized_intent(self, *, order: str = "o1") -> str:
        """An intent whose 45.00 EUR are held and whose webhook has come."""
        intent_id = await self.an_intent(order=order)
        await self.intents.confirm_async(intent_id)
        await self.until(intent_id, "requires_capture")
        return intent_id

    async def until(self, intent_id: str, status: str) -> stripe.PaymentIntent:
        """Reads the intent until it has this status."""

        async def there() -> stripe.PaymentIntent | None:
            intent = await self.intents.retrieve_async(intent_id)
            return intent if intent.status == status else None

        intent = await eventually(there)
        assert intent is not None
        return intent


@asynccontextmanager
async def a_desk(data: Path | None = None, receiver: WebhookReceiver | None = None) -> AsyncIterator[Desk]:
    """A desk with simulators of its own; their issuer answers at once."""
    receiver = receiver or WebhookReceiver()
    app = web.Application()
    app.router.add_post("/webhooks", receiver.receive)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    url = f"http://127.0.0.1:{runner.addresses[0][1]}/webhooks"
    config = Config(
        data=data,
        gateway_webhook=Endpoint("Stripe-Signature", url, SECRET),
        courier_webhook=Endpoint("Courier-Signature", url, SECRET),
        settle_seconds=0,
        pace=Pace(first_seconds=0.01, longest_seconds=0.05),
    )
    try:
        async with Simulators(config) as simulators, aiohttp.ClientSession() as http:
            desk = Desk(simulators, http, receiver)
            try:
                yield desk
            finally:
                await desk.close()
    finally:
        await runner.cleanup()
