"""The payment gateway's refunds: never more than was captured, whoever asks and however often."""

import json
from typing import Any

from simulators.clock import Clock
from simulators.ids import new_id
from simulators.intents import Intent
from simulators.payment_gateway import IntentBook, Publish, created_filter, page_limit, whole_number
from simulators.refusals import Refusal, invalid, missing
from simulators.store import Store


class RefundBook:
    """Refunds by id. They succeed at once unless told to be pending; a failed one can be asked for again."""

    def __init__(self, store: Store, clock: Clock, publish: Publish, intents: IntentBook) -> None:
        self._store = store
        self._clock = clock
        self._publish = publish
        self._intents = intents

    def create(self, params: dict[str, Any], *, pending: bool) -> dict[str, Any]:
        """POST /v1/refunds for a payment_intent; without an amount all that is left."""
        intent_id = params.get("payment_intent")
        if not isinstance(intent_id, str):
            raise invalid("Missing required param: payment_intent.", param="payment_intent", code="parameter_missing")
        asked = whole_number(params, "amount")
        intent = self._intents.load(intent_id, param="payment_intent")
        amount = _allowed(intent, asked)
        refund = {
            "id": new_id("re"),
            "object": "refund",
            "amount": amount,
            "charge": intent.latest_charge,
            "created": int(self._clock.now()),
            "currency": intent.currency,
            "metadata": params.get("metadata", {}),
            "payment_intent": intent.id,
            "reason": params.get("reason"),
            "status": "pending" if pending else "succeeded",
            "failure_reason": None,
        }
        intent.refunds_pending += amount if pending else 0
        intent.amount_refunded += 0 if pending else amount
        self._keep(refund, intent, "refund.created" if pending else "refund.updated")
        return refund

    def retrieve(self, refund_id: str) -> dict[str, Any]:
        """GET /v1/refunds/{id}."""
        refund = self._store.doc("SELECT doc FROM refunds WHERE id = ?", refund_id)
        if refund is None:
            raise missing("refund", refund_id, param="id")
        return refund

    def page(self, params: dict[str, Any]) -> dict[str, Any]:
        """GET /v1/refunds, newest first: payment_intent, created, limit, starting_after."""
        limit = page_limit(params)
        tests, values = created_filter(params.get("created"), "json_extract(doc, '$.created')")
        intent_id, after = params.get("payment_intent"), params.get("starting_after")
        if after is not None:
            self.retrieve(after)
        docs = self._store.docs(
            f"""SELECT doc FROM refunds WHERE {" AND ".join(["(? IS NULL OR intent_id = ?)", *tests])}
            AND (? IS NULL OR seq < (SELECT seq FROM refunds WHERE id = ?)) ORDER BY seq DESC LIMIT ?""",  # noqa: S608
            *(intent_id, intent_id, *values, after, after, limit + 1),
        )
        return {"object": "list", "url": "/v1/refunds", "has_more": len(docs) > limit, "data": docs[:limit]}

    def decide(self, refund_id: str, status: str) -> dict[str, Any]:
        """The bank's word on a pending refund: succeeded or failed. Raises Refusal for one that is decided."""
        refund = self.retrieve(refund_id)
        if refund["status"] != "pending":
            raise invalid(f"The refund is {refund['status']} already.", param="status")
        intent = self._intents.load(refund["payment_intent"])
        intent.refunds_pending -= refund["amount"]
        refund["status"] = status
        if status == "succeeded":
            intent.amount_refunded += refund["amount"]
        else:
            refund["failure_reason"] = "expired_or_canceled_card"
        self._keep(refund, intent, "refund.updated" if status == "succeeded" else "refund.failed")
        return refund

    def _keep(self, refund: dict[str, Any], intent: Intent, event_type: str) -> None:
        self._intents.save(intent)
        self._store.write(
            """INSERT INTO refunds (id, intent_id, doc) VALUES (?, ?, ?)
            ON CONFLICT (id) DO UPDATE SET doc = excluded.doc""",
            *(refund["id"], intent.id, json.dumps(refund)),
        )
        if refund["status"] == "succeeded":
            self._publish("charge.refunded", intent.charge() or {}, intent.order_id)
        self._publish(event_type, refund, intent.order_id)


def _allowed(intent: Intent, asked: int | None) -> int:
    if intent.amount_received == 0:
        raise Refusal(
            400,
            "invalid_request_error",
            f"This PaymentIntent ({intent.id}) does not have a successful charge to refund.",
            code="payment_intent_unexpected_state",
            payment_intent=intent.view(),
        )
    if intent.refundable == 0:
        message = f"Charge {intent.latest_charge} has already been refunded."
        raise Refusal(400, "invalid_request_error", message, code="charge_already_refunded")
    amount = intent.refundable if asked is None else asked
    if amount < 1:
        raise invalid(
            "This value must be greater than or equal to 1.", param="amount", code="parameter_invalid_integer"
        )
    if amount > intent.refundable:
        message = "Refund amount is greater than unrefunded amount on charge."
        raise Refusal(400, "invalid_request_error", message, code="amount_too_large", param="amount")
    return amount
