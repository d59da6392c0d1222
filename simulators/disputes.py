"""The payment gateway's disputes: the shopper's bank wants captured money back, and decides some time."""

import json
from typing import Any

from simulators.clock import Clock
from simulators.ids import new_id
from simulators.intents import Intent
from simulators.payment_gateway import page_limit
from simulators.store import Store

CREATED, CLOSED = "charge.dispute.created", "charge.dispute.closed"


class DisputeBook:
    """Disputes by intent: one open at a time."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def happen(self, event_type: str, intent: Intent, overrides: dict[str, Any]) -> dict[str, Any]:
        """The dispute that an event tells of, made true: opened with `created`, decided with `closed` (lost).

        A further event about it tells the same dispute again.
        """
        docs = self._store.docs("SELECT doc FROM disputes WHERE intent_id = ? ORDER BY seq DESC", intent.id)
        dispute = docs[0] if docs else self._new(intent)
        if event_type == CLOSED:
            dispute["status"] = overrides.get("status", "lost")
        dispute |= {name: value for name, value in overrides.items() if name in dispute}
        self._store.write(
            """INSERT INTO disputes (id, intent_id, doc) VALUES (?, ?, ?)
            ON CONFLICT (id) DO UPDATE SET doc = excluded.doc""",
            *(dispute["id"], intent.id, json.dumps(dispute)),
        )
        return dispute

    def page(self, params: dict[str, Any]) -> dict[str, Any]:
        """GET /v1/disputes, newest first: payment_intent, limit."""
        docs = self._store.docs(
            "SELECT doc FROM disputes WHERE ?1 IS NULL OR intent_id = ?1 ORDER BY seq DESC LIMIT ?2",
            *(params.get("payment_intent"), page_limit(params)),
        )
        return {"object": "list", "url": "/v1/disputes", "has_more": False, "data": docs}

    def _new(self, intent: Intent) -> dict[str, Any]:
        return {
            "id": new_id("dp"),
            "object": "dispute",
            "amount": intent.amount_received or intent.amount,
            "charge": intent.latest_charge,
            "created": int(self._clock.now()),
            "currency": intent.currency,
            "payment_intent": intent.id,
            "reason": "fraudulent",
            "status": "needs_response",
        }
