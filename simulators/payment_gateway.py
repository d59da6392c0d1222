"""The payment gateway's books: intents and what may be done with them, in Stripe's words and shapes.

Each operation is one transaction with the answer kept under its key and the events that it causes.
"""

import json
import re
import secrets
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from simulators.clock import Clock
from simulators.ids import new_id
from simulators.intents import AT_ONCE, Intent
from simulators.refusals import invalid, missing
from simulators.store import Store

#: Smallest charges as Stripe publishes them ("Supported currencies"); 50 where none is listed here.
_SMALLEST_CHARGE = {"gbp": 30, "sek": 300, "nok": 300, "dkk": 250, "pln": 200, "kwd": 150}
_LARGEST_CHARGE = 99_999_999
_THREE_DECIMALS = frozenset({"bhd", "jod", "kwd", "omr", "tnd"})
_CANCELLATION_REASONS = frozenset({"duplicate", "fraudulent", "requested_by_customer", "abandoned"})
_CREATED_TESTS = {"gt": ">", "gte": ">=", "lt": "<", "lte": "<="}

#: (event type, the object it is about, the order) → queued for the webhook endpoint.
Publish = Callable[[str, dict[str, Any], str | None], None]


def whole_number(params: dict[str, Any], name: str) -> int | None:
    """A form parameter as an integer, None where it is absent. Raises Refusal."""
    value = params.get(name)
    if value is None:
        return None
    if not isinstance(value, str) or not re.fullmatch(r"-?\d{1,18}", value):
        raise invalid(f"Invalid integer: {value}", param=name, code="parameter_invalid_integer")
    return int(value)


class IntentBook:
    """Intents by id. `settle_later` is called with the id of each intent that the issuer will answer in a moment."""

    def __init__(self, store: Store, clock: Clock, publish: Publish, settle_later: Callable[[str], None]) -> None:
        self._store = store
        self._clock = clock
        self._publish = publish
        self._settle_later = settle_later

    def load(self, intent_id: str, *, param: str = "intent", status: int = 404) -> Intent:
        """The intent as it is now. Raises Refusal when there is none."""
        self.expire_holds()
        doc = self._store.doc("SELECT doc FROM intents WHERE id = ?", intent_id)
        if doc is None:
            raise missing("payment_intent", intent_id, param=param, status=status)
        return Intent(**doc)

    def save(self, intent: Intent) -> None:
        """Keeps the intent and publishes what has happened to it."""
        for event_type in intent.facts:
            self._publish(event_type, intent.view(), intent.order_id)
        intent.facts.clear()
        self._store.write(
            """INSERT INTO intents (id, order_id, created, settling, hold_expires, doc) VALUES (?, ?, ?, ?, ?, ?)
            ON CONFLICT (id) DO UPDATE SET settling = excluded.settling, hold_expires = excluded.hold_expires,
            doc = excluded.doc""",
            *(
                intent.id,
                intent.order_id,
                intent.created,
                intent.settling,
                intent.hold_expires,
                json.dumps(asdict(intent)),
            ),
        )

    def create(self, params: dict[str, Any]) -> dict[str, Any]:
        """POST /v1/payment_intents."""
        amount, currency = _charge(params)
        metadata = params.get("metadata", {})
        if not isinstance(metadata, dict):
            raise invalid("Invalid metadata", param="metadata")
        intent_id = new_id("pi")
        intent = Intent(
            id=intent_id,
            amount=amount,
            currency=currency,
            created=int(self._clock.now()),
            capture_method=params.get("capture_method", "automatic_async"),
            metadata=metadata,
            client_secret=f"{intent_id}_secret_{secrets.token_hex(12)}",
            description=params.get("description"),
            payment_method_types=params.get("payment_method_types", ["card"]),
        )
        intent.choose(params.get("payment_method"))
        if params.get("confirm") == "true":
            return self._confirm(intent, params)
        self.save(intent)
        return self.told(intent, params)

    def retrieve(self, intent_id: str, params: dict[str, Any]) -> dict[str, Any]:
        """GET /v1/payment_intents/{id}."""
        return self.told(self.load(intent_id), params)

    def confirm(self, intent_id: str, params: dict[str, Any]) -> dict[str, Any]:
        """POST …/confirm. A decline is a 402 and a fact of the intent."""
        return self._confirm(self.load(intent_id), params)

    def capture(self, intent_id: str, params: dict[str, Any]) -> dict[str, Any]:
        """POST …/capture."""
        intent = self.load(intent_id)
        intent.capture(whole_number(params, "amount_to_capture"))
        self.save(intent)
        return self.told(intent, params)

    def cancel(self, intent_id: str, params: dict[str, Any]) -> dict[str, Any]:
        """POST …/cancel."""
        reason = params.get("cancellation_reason")
        if reason is not None and reason not in _CANCELLATION_REASONS:
            raise invalid(f"Invalid cancellation_reason: {reason}", param="cancellation_reason")
        intent = self.load(intent_id)
        intent.cancel(reason, self._clock.now())
        self.save(intent)
        return self.told(intent, params)

    def page(self, params: dict[str, Any]) -> dict[str, Any]:
        """GET /v1/payment_intents, newest first: limit, starting_after, created."""
        self.expire_holds()
        conditions, values = created_filter(params.get("created"))
        if (after := params.get("starting_after")) is not None:
            self.load(after, param="starting_after", status=400)
            conditions.append("seq < (SELECT seq FROM intents WHERE id = ?)")
            values.append(after)
        where = f"WHERE {' AND '.join(conditions)}" if conditions else ""
        limit = page_limit(params)
        query = f"SELECT doc FROM intents {where} ORDER BY seq DESC LIMIT ?"  # noqa: S608 - conditions are our own text
        docs = self._store.docs(query, *values, limit + 1)
        return {
            "object": "list",
            "url": "/v1/payment_intents",
            "has_more": len(docs) > limit,
            "data": [self.told(Intent(**doc), params) for doc in docs[:limit]],
        }

    def settle(self, intent_id: str) -> None:
        """The issuer's answer to a payment that processes."""
        with self._store.transaction():
            intent = self.load(intent_id)
            intent.settle(self._clock.now())
            self.save(intent)

    def unsettled(self) -> list[str]:
        """Intents that the issuer still owes an answer; for a start after a stop."""
        return [row[0] for row in self._store.rows("SELECT id FROM intents WHERE settling = 1")]

    def expire_holds(self) -> None:
        """Drops each hold whose time is over."""
        now = self._clock.now()
        for doc in self._store.docs("SELECT doc FROM intents WHERE hold_expires <= ?", now):
            intent = Intent(**doc)
            intent.expire(now)
            self.save(intent)

    def told(self, intent: Intent, params: dict[str, Any]) -> dict[str, Any]:
        """The intent's JSON; `expand[]=latest_charge` puts the charge in the place of its id."""
        view = intent.view()
        expand = params.get("expand", [])
        if "latest_charge" in expand or "data.latest_charge" in expand:
            view["latest_charge"] = intent.charge()
        return view

    def _confirm(self, intent: Intent, params: dict[str, Any]) -> dict[str, Any]:
        declined = intent.confirm(params.get("payment_method"))
        if intent.payment_method == AT_ONCE:
            intent.settle(self._clock.now())
        self.save(intent)
        if declined is not None:
            raise declined
        if intent.settling:
            self._settle_later(intent.id)
        return self.told(intent, params)


def page_limit(params: dict[str, Any]) -> int:
    """A list's `limit`: 1 to 100, 10 where none is given."""
    limit = whole_number(params, "limit")
    if limit is not None and not 1 <= limit <= 100:
        raise invalid("limit must be between 1 and 100", param="limit")
    return limit or 10


def _charge(params: dict[str, Any]) -> tuple[int, str]:
    amount, currency = whole_number(params, "amount"), params.get("currency")
    if amount is None or not currency:
        name = "currency" if amount is not None else "amount"
        raise invalid(f"Missing required param: {name}.", param=name, code="parameter_missing")
    if not isinstance(currency, str) or not re.fullmatch(r"[A-Za-z]{3}", currency):
        raise invalid(f"Invalid currency: {currency}", param="currency")
    currency = currency.lower()
    if amount < 1:
        raise invalid(
            "This value must be greater than or equal to 1.", param="amount", code="parameter_invalid_integer"
        )
    if amount < _SMALLEST_CHARGE.get(currency, 50):
        raise invalid("Amount must be at least the smallest charge.", param="amount", code="amount_too_small")
    if amount > _LARGEST_CHARGE:
        raise invalid("Amount must be no more than 999,999.99.", param="amount", code="amount_too_large")
    if currency in _THREE_DECIMALS and amount % 10:
        raise invalid("The amount of a three-decimal currency must end in 0.", param="amount")
    return amount, currency


def created_filter(created: Any, column: str = "created") -> tuple[list[str], list[Any]]:
    """A list's `created` as conditions on a column, and their values. Raises Refusal."""
    if created is None:
        return [], []
    tests = created if isinstance(created, dict) else {"gte": created, "lte": created}
    unknown = set(tests) - set(_CREATED_TESTS)
    if unknown:
        raise invalid(f"Invalid created filter: {sorted(unknown)[0]}", param="created")
    return [f"{column} {_CREATED_TESTS[name]} ?" for name in tests], [whole_number(tests, name) for name in tests]
