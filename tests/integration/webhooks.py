"""Events as the providers send them, signed."""

import hashlib
import hmac
import json
import time
from typing import Any

from tests.builders import unique
from tests.integration.conftest import SECRETS, Http


def an_intent_event(intent_id: str, order_id: str | None = None, **changes: Any) -> dict[str, Any]:
    """A `payment_intent.amount_capturable_updated` of the gateway."""
    metadata = {"order_id": order_id} if order_id else {}
    event: dict[str, Any] = {
        "id": unique("evt"),
        "type": "payment_intent.amount_capturable_updated",
        "data": {"object": {"id": intent_id, "object": "payment_intent", "metadata": metadata}},
    }
    return event | changes


def a_shipment_event(shipment_id: str, status: str, reference: str = "o:main") -> dict[str, Any]:
    """An event of the courier."""
    shipment = {"id": shipment_id, "reference": reference, "status": status}
    return {"id": unique("cevt"), "type": f"shipment.{status}", "shipment": shipment}


def signature(body: bytes, *secrets: str, offset: int = 0) -> str:
    """The header of these bytes, signed with each of the secrets, stamped `offset` seconds from now."""
    at = int(time.time()) + offset
    signed = [
        hmac.new(secret.encode(), f"{at}.".encode() + body, hashlib.sha256).hexdigest()
        for secret in secrets or SECRETS[:1]
    ]
    return ",".join([f"t={at}", *(f"v1={digest}" for digest in signed)])


async def send(
    http: Http, event: Any, *, source: str = "stripe", secret: str = SECRETS[0], **headers: str
) -> tuple[int, dict[str, Any]]:
    """Posts the event, or these very bytes, signed unless a header says otherwise."""
    body = event if isinstance(event, bytes) else json.dumps(event).encode()
    name = f"{source.capitalize()}-Signature"
    answer = await http.post(f"/webhooks/{source}", data=body, headers={name: signature(body, secret), **headers})
    return answer.status, json.loads(await answer.read())
