"""The payment gateway's own control routes: what shoppers, banks and forgers do, and the webhook endpoint's state."""

from collections.abc import Callable
from typing import Any

from aiohttp import web

from simulators.control import bad_request, read_object
from simulators.ids import new_id
from simulators.intents import Intent
from simulators.refusals import Refusal
from simulators.stripe_api import StripeApi
from simulators.webhooks import Webhooks


class GatewayControl:
    """Routes under `/_sim` that only the gateway has."""

    def __init__(self, gateway: StripeApi, webhooks: Webhooks) -> None:
        self._gateway = gateway
        self._webhooks = webhooks

    def add_to(self, app: web.Application) -> None:
        """Puts the routes on an application."""
        app.router.add_post("/_sim/intents/{id}/authenticate", self.authenticate)
        app.router.add_post("/_sim/intents/{id}/force", self.force)
        app.router.add_post("/_sim/refunds/{id}", self.decide_refund)
        app.router.add_post("/_sim/events", self.send_event)

    async def authenticate(self, request: web.Request) -> web.Response:
        """`{outcome: success|fail|abandon}`: the shopper answers 3-D Secure, or not."""
        outcome = _one_of(await read_object(request), "outcome", ("success", "fail", "abandon"))
        now = self._gateway.clock.now()
        return self._change(request.match_info["id"], lambda intent: intent.authenticate(outcome, now))

    async def force(self, request: web.Request) -> web.Response:
        """`{status: requires_capture|succeeded|requires_payment_method}`: money moves against all rules.

        On a cancelled intent it is held or taken after all; `requires_payment_method` takes a capture back as failed.
        """
        allowed = ("requires_capture", "succeeded", "requires_payment_method")
        status = _one_of(await read_object(request), "status", allowed)
        now = self._gateway.clock.now()
        return self._change(request.match_info["id"], lambda intent: intent.force(status, now))

    async def decide_refund(self, request: web.Request) -> web.Response:
        """`{status: succeeded|failed}`: the bank's word on a pending refund."""
        status = _one_of(await read_object(request), "status", ("succeeded", "failed"))
        try:
            with self._gateway.store.transaction():
                refund = self._gateway.refunds.decide(request.match_info["id"], status)
        except Refusal as refusal:
            return web.json_response(refusal.body, status=refusal.status)
        return web.json_response(refund)

    async def send_event(self, request: web.Request) -> web.Response:
        """`{type, intent, overrides?, secret?, offset_seconds?, event_id?}`: a signed event, true or not.

        A dispute that it tells of is made true: `charge.dispute.created` opens it, `charge.dispute.closed` decides it,
        `overrides: {status: won}` in the shop's favour.

        The answer is `{id, status}` with the endpoint's first answer. With a secret or an offset of its own the event
        is a forgery: sent once, and the endpoint is not blamed for refusing it.
        """
        document = await read_object(request)
        event_type, intent_id = document.get("type"), document.get("intent")
        if not isinstance(event_type, str) or not isinstance(intent_id, str):
            raise bad_request("type and intent are strings")
        overrides, secret = document.get("overrides", {}), document.get("secret")
        offset, event_id = document.get("offset_seconds", 0), document.get("event_id")
        if not isinstance(overrides, dict) or isinstance(offset, bool) or not isinstance(offset, int):
            raise bad_request("overrides is an object, offset_seconds a whole number")
        if any(value is not None and not isinstance(value, str) for value in (secret, event_id)):
            raise bad_request("secret and event_id are strings")
        about, order_id = self._object_of(event_type, intent_id, overrides)
        _override(about, overrides)
        if secret is not None or offset:
            event = self._webhooks.event(event_type, about, event_id)
            status = await self._webhooks.send(event, secret or self._webhooks.endpoint.secret, offset)
            return web.json_response({"id": event["id"], "status": status})
        delivery = self._webhooks.publish(event_type, about, order_id, event_id)
        await delivery.answered.wait()
        return web.json_response({"id": delivery.event["id"], "status": delivery.last_status})

    def _change(self, intent_id: str, change: Callable[[Intent], None]) -> web.Response:
        books = self._gateway.intents
        try:
            with self._gateway.store.transaction():
                intent = books.load(intent_id)
                change(intent)
                books.save(intent)
        except Refusal as refusal:
            return web.json_response(refusal.body, status=refusal.status)
        return web.json_response(intent.view())

    def _object_of(
        self, event_type: str, intent_id: str, overrides: dict[str, Any]
    ) -> tuple[dict[str, Any], str | None]:
        try:
            intent = self._gateway.intents.load(intent_id)
        except Refusal:
            # An event may tell of an intent that the gateway has never had.
            return {"id": intent_id, "object": "payment_intent", "metadata": {}, "status": "succeeded"}, None
        kind = event_type.rsplit(".", 1)[0]
        common: dict[str, Any] = {"payment_intent": intent.id, "charge": intent.latest_charge, "amount": intent.amount}
        common |= {"currency": intent.currency}
        if kind == "charge.dispute":
            with self._gateway.store.transaction():
                return self._gateway.disputes.happen(event_type, intent, overrides), intent.order_id
        if kind == "charge":
            return intent.charge() or {"id": new_id("ch"), "object": "charge", **common}, intent.order_id
        if kind == "refund":
            refunds = self._gateway.refunds.page({"payment_intent": intent.id})["data"]
            untrue = {"id": new_id("re"), "object": "refund", "status": "pending", "metadata": {}, **common}
            return refunds[0] if refunds else untrue, intent.order_id
        return intent.view(), intent.order_id


def add_webhook_control(app: web.Application, webhooks: Webhooks) -> None:
    """`GET /_sim/status`, `GET /_sim/events`, and `POST /_sim/endpoint {enabled?, url?, secret?}`."""

    async def status(request: web.Request) -> web.Response:
        return web.json_response({"endpoint": webhooks.view()})

    async def events(request: web.Request) -> web.Response:
        return web.json_response({"events": webhooks.events()})

    async def change(request: web.Request) -> web.Response:
        document = await read_object(request)
        for name, kind in (("enabled", bool), ("url", str), ("secret", str)):
            if name in document and not isinstance(document[name], kind):
                raise bad_request(f"{name} is a {kind.__name__}")
        webhooks.endpoint.url = document.get("url", webhooks.endpoint.url)
        webhooks.endpoint.secret = document.get("secret", webhooks.endpoint.secret)
        if "enabled" in document:
            webhooks.enable(document["enabled"])
        return web.json_response({"endpoint": webhooks.view()})

    app.router.add_get("/_sim/status", status)
    app.router.add_get("/_sim/events", events)
    app.router.add_post("/_sim/endpoint", change)


def _one_of(document: dict[str, Any], name: str, allowed: tuple[str, ...]) -> str:
    value = document.get(name)
    if value not in allowed:
        raise bad_request(f"{name} is one of {', '.join(allowed)}")
    return str(value)


def _override(about: dict[str, Any], overrides: dict[str, Any]) -> None:
    for name, value in overrides.items():
        inner = about.get(name)
        if isinstance(value, dict) and isinstance(inner, dict):
            _override(inner, value)
        else:
            about[name] = value
