"""Webhooks: verified over the exact bytes, kept as ids in the inbox, answered only then.

A 2xx means that the event is in the database and will take effect; what it is about is not asked here.
"""

import re
import time
from collections.abc import Mapping, Sequence
from typing import Any

import structlog
from aiohttp import web
from pydantic import BaseModel

from adapters.inbox import IncomingEvent, store_event
from adapters.tracing import in_trace_of, span
from api.bodies import parse_json, read_bytes
from api.deps import deps
from api.operations import Header, Operation, json_response
from api.problems import Problem
from api.signatures import SignatureRefused, verify
from domain.errors import DatabaseUnavailable

_NAME = re.compile(r"[A-Za-z0-9_.:-]{1,255}")

log = structlog.get_logger(__name__)


class Received(BaseModel):
    """The event is stored. `duplicate`: it was before."""

    received: bool = True
    duplicate: bool


async def post_stripe(request: web.Request) -> web.Response:
    """An event of the payment gateway, signed as Stripe signs."""
    secrets = deps(request).settings.stripe_webhook_secrets
    return await _receive(request, "stripe", "Stripe-Signature", secrets)


async def post_courier(request: web.Request) -> web.Response:
    """An event of the courier, signed the same way."""
    secrets = deps(request).settings.courier_webhook_secrets
    return await _receive(request, "courier", "Courier-Signature", secrets)


async def _receive(request: web.Request, source: str, header: str, secrets: Sequence[str]) -> web.Response:
    needs = deps(request)
    counted = needs.metrics.webhooks
    try:
        raw = await read_bytes(request)
        verify(raw, request.headers.get(header, ""), secrets, now=time.time())
        event = _READERS[source](_object(parse_json(raw)))
        with in_trace_of(event.order_id), span("receive_webhook", event_id=event.event_id, type=event.type):
            async with needs.database.begin() as connection:
                stored = await store_event(connection, event)
    except SignatureRefused as refusal:
        counted.labels(source, refusal.outcome).inc()
        log.warning("webhook_refused", source=source, why=refusal.outcome)
        raise Problem(400, "bad-signature", refusal.detail) from None
    except DatabaseUnavailable:
        counted.labels(source, "unavailable").inc()
        raise
    except Problem as problem:
        counted.labels(source, problem.kind).inc()
        raise
    counted.labels(source, "stored" if stored else "duplicate").inc()
    log.info("webhook_stored", source=source, event_id=event.event_id, order_id=event.order_id, duplicate=not stored)
    return json_response(Received(duplicate=not stored))


def _stripe_event(event: Mapping[str, Any]) -> IncomingEvent:
    kind = _required(event, "type")
    thing = _object(_object(event.get("data")).get("object"))
    if kind.startswith("payment_intent."):
        intent = _optional(thing.get("id"))
    else:
        named = thing.get("payment_intent")
        intent = _optional(_object(named).get("id") if isinstance(named, dict) else named)
    order_id = _optional(_object(thing.get("metadata")).get("order_id"))
    return IncomingEvent("stripe", _required(event, "id"), kind, intent, order_id)


def _courier_event(event: Mapping[str, Any]) -> IncomingEvent:
    """The shipment's status is the fact: it is kept as the event's type.

    The shipment stands in the event itself, or in an envelope like Stripe's.
    """
    kind = _required(event, "type")
    shipment = _object(event.get("shipment")) or _object(_object(event.get("data")).get("object"))
    status = _optional(shipment.get("status"))
    reference = _optional(shipment.get("reference")) or ""
    return IncomingEvent(
        source="courier",
        event_id=_required(event, "id"),
        type=f"shipment.{status.lower()}" if status else kind,
        object_id=_optional(shipment.get("id")),
        order_id=reference.partition(":")[0] or None,
    )


_READERS = {"stripe": _stripe_event, "courier": _courier_event}


def _object(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _optional(value: object) -> str | None:
    return value if isinstance(value, str) and _NAME.fullmatch(value) else None


def _required(event: Mapping[str, Any], name: str) -> str:
    value = _optional(event.get(name))
    if value is None:
        raise Problem(400, "malformed-event", f"the event carries no usable {name}")
    return value


def _operation(path: str, handler: Any, header: str) -> Operation:
    return Operation(
        "POST",
        path,
        handler,
        "Receive a signed event",
        {200: Received},
        (400, 413, 503),
        raw_body=True,
        headers=(Header(header, "t=<unix seconds>,v1=<HMAC-SHA256 of t.body>", 4096, True),),
    )


OPERATIONS = (
    _operation("/webhooks/stripe", post_stripe, "Stripe-Signature"),
    _operation("/webhooks/courier", post_courier, "Courier-Signature"),
)
