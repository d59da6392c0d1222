"""The payment gateway over HTTP: Stripe's routes, form-encoded bodies, idempotency keys and error documents."""

import hashlib
import json
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qsl

from aiohttp import web

from simulators.calls import Answer, Call, Party, Route
from simulators.clock import Clock
from simulators.disputes import DisputeBook
from simulators.forms import parse_form
from simulators.idempotency import KeptAnswer, KeyBook
from simulators.ids import new_id
from simulators.payment_gateway import IntentBook
from simulators.refunds import RefundBook
from simulators.refusals import Refusal, key_in_flight
from simulators.store import Store

#: A made-up error with one of these statuses comes from in front of the endpoint, so no key remembers it.
_NOT_KEPT = frozenset({401, 403, 408, 409, 425, 429, 502, 503, 504})


class StripeApi(Party):
    """Keys are claimed, kept and released here; what an operation does stands in the books."""

    name = "gateway"

    def __init__(
        self, store: Store, clock: Clock, intents: IntentBook, refunds: RefundBook, disputes: DisputeBook
    ) -> None:
        super().__init__(store, clock)
        self.intents = intents
        self.refunds = refunds
        self.disputes = disputes
        self._keys = KeyBook(store, clock)

    @property
    def routes(self) -> list[Route]:
        """The part of Stripe's API that a shop with manual capture needs."""
        intents, refunds, disputes = self.intents, self.refunds, self.disputes
        one = "/v1/payment_intents/{id}"
        return [
            Route("POST", "/v1/payment_intents", "create", _new(intents.create)),
            Route("GET", "/v1/payment_intents", "read", _made(lambda call: intents.page(call.params))),
            Route("GET", one, "read", _of(intents.retrieve)),
            Route("POST", f"{one}/confirm", "confirm", _of(intents.confirm)),
            Route("POST", f"{one}/capture", "capture", _of(intents.capture)),
            Route("POST", f"{one}/cancel", "cancel", _of(intents.cancel)),
            Route("POST", "/v1/refunds", "refund", _made(self._refund)),
            Route("GET", "/v1/refunds", "read", _made(lambda call: refunds.page(call.params))),
            Route("GET", "/v1/refunds/{id}", "read", _made(lambda call: refunds.retrieve(call.subject or ""))),
            Route("GET", "/v1/disputes", "read", _made(lambda call: disputes.page(call.params))),
        ]

    async def read(self, request: web.Request, route: Route) -> Call:
        """The order is the one in the metadata, or in that of the intent that the call is about."""
        body = await request.read()
        pairs = (
            request.query.items()
            if request.method == "GET"
            else parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True)
        )
        params = parse_form(pairs)
        subject = request.match_info.get("id")
        intent_id = subject or params.get("payment_intent")
        found = self.store.rows("SELECT order_id FROM intents WHERE id = ?", intent_id) if intent_id else []
        metadata = params.get("metadata")
        own = metadata.get("order_id") if isinstance(metadata, dict) else None
        return Call(
            op=route.op,
            operation=route.operation if request.headers.get("Authorization") else _unauthorized,
            params=params,
            subject=intent_id if found else subject,
            key=request.headers.get("Idempotency-Key") if request.method == "POST" else None,
            order_id=found[0][0] if found else own,
            fingerprint=hashlib.sha256(f"{request.path}\n{json.dumps(params, sort_keys=True)}".encode()).hexdigest(),
        )

    def execute(self, call: Call) -> Answer:
        """The operation's answer; the kept one where the key has been used."""
        with self.store.transaction():
            if call.key is None:
                return self._run(call)
            try:
                kept = self._keys.claim(call.key, call.fingerprint)
            except Refusal as refusal:
                return Answer(refusal.status, refusal.body, _headers())
            if kept is not None:
                call.subject = call.subject or kept.body.get("id")
                return Answer(kept.status, kept.body, {**_headers(), "Idempotent-Replayed": "true"})
            call.claimed = True
            answer = self._run(call)
            if call.key_kept:
                self._keys.keep(call.key, call.fingerprint, KeptAnswer(answer.status, answer.body))
            return answer

    def struck(self, call: Call, answer: Answer) -> None:
        """A 500 or a decline comes from the endpoint itself and stays under the key; what stands in front does not."""
        if call.key and answer.status >= 400 and answer.status not in _NOT_KEPT and isinstance(answer.body, dict):
            self._keys.keep(call.key, call.fingerprint, KeptAnswer(answer.status, answer.body))

    def over(self, call: Call) -> None:
        """The key is free for a replay."""
        if call.key and call.claimed:
            self._keys.release(call.key)

    def problem(self, status: int, code: str) -> dict[str, Any]:
        """Stripe's error document for a made-up error."""
        if code == "in_flight":
            return key_in_flight(None).body
        if status == 429:
            message = "Request rate limit exceeded."
            return Refusal(429, "invalid_request_error", message, code="rate_limit").body
        kind = "card_error" if status == 402 else "invalid_request_error" if status < 500 else "api_error"
        return Refusal(status, kind, "An error occurred. This one was asked for.").body

    def ledger(self, order_id: str | None) -> dict[str, Any]:
        """What the gateway holds and has taken, by intent, and every call that reached it."""
        with self.store.transaction():
            self.intents.expire_holds()
        calls = self.calls(order_id)
        by_subject: dict[str, list[dict[str, Any]]] = {}
        early: dict[str, list[dict[str, Any]]] = {}
        for call in calls:
            if call["subject"]:
                by_subject.setdefault(call["subject"], []).append(call)
            elif call["order_id"]:
                early.setdefault(call["order_id"], []).append(call)
        docs = self.store.docs("SELECT doc FROM intents WHERE (?1 IS NULL OR order_id = ?1) ORDER BY seq", order_id)
        intents = []
        for doc in docs:
            # A create that failed made no intent: it stands with the intents of its order.
            order = doc["metadata"].get("order_id")
            own = early.get(order, []) + by_subject.get(doc["id"], [])
            intents.append({**_money(doc, order), "calls": [_line(call) for call in sorted(own, key=_at)]})
        return {"intents": intents, "calls": [{**_line(call), **_whose(call)} for call in calls]}

    def _run(self, call: Call) -> Answer:
        try:
            answer = call.operation(call)
        except Refusal as refusal:
            call.key_kept = refusal.kept
            answer = Answer(refusal.status, refusal.body)
        answer.headers.update(_headers())
        return answer

    def _refund(self, call: Call) -> dict[str, Any]:
        return self.refunds.create(call.params, pending=call.pending)


def _made(operation: Callable[[Call], dict[str, Any]]) -> Callable[[Call], Answer]:
    return lambda call: Answer(200, operation(call))


def _of(operation: Callable[[str, dict[str, Any]], dict[str, Any]]) -> Callable[[Call], Answer]:
    return lambda call: Answer(200, operation(call.subject or "", call.params))


def _new(operation: Callable[[dict[str, Any]], dict[str, Any]]) -> Callable[[Call], Answer]:
    def create(call: Call) -> Answer:
        view = operation(call.params)
        call.subject = view["id"]
        return Answer(200, view)

    return create


def _unauthorized(call: Call) -> Answer:
    raise Refusal(401, "invalid_request_error", "You did not provide an API key.", kept=False)


def _headers() -> dict[str, str]:
    return {"Request-Id": new_id("req")}


def _money(doc: dict[str, Any], order_id: str | None) -> dict[str, Any]:
    return {
        "id": doc["id"],
        "order_id": order_id,
        "amount": doc["amount"],
        "currency": doc["currency"],
        "status": doc["status"],
        # Held or taken now: what is authorized and not captured is the open hold.
        "authorized": doc["amount_capturable"] + doc["amount_received"],
        "captured": doc["amount_received"],
        "refunded": doc["amount_refunded"],
        "refund_pending": doc["refunds_pending"],
    }


def _line(call: dict[str, Any]) -> dict[str, Any]:
    return {name: call[name] for name in ("op", "key", "at", "status")}


def _whose(call: dict[str, Any]) -> dict[str, Any]:
    return {"order_id": call["order_id"], "intent": call["subject"]}


def _at(call: dict[str, Any]) -> float:
    return float(call["at"])
