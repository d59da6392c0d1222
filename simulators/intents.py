"""The payment intent's state machine, as Stripe's PaymentIntents go through it. Pure: no clock, no storage.

requires_payment_method → requires_confirmation → processing | requires_action → requires_capture → succeeded; canceled
What happens at confirmation is decided by the payment method alone, so that every case can be repeated on demand.
"""

from dataclasses import dataclass, field
from typing import Any

from simulators.ids import new_id
from simulators.refusals import Refusal, missing, unexpected_state

#: Holds on cards last about 7 days (Stripe, "Place a hold on a payment method").
HOLD_SECONDS = 7 * 24 * 3600

AUTHORIZED = "pm_card_visa"
DECLINED = "pm_card_chargeDeclined"
BLOCKED = "pm_card_radarBlock"
AUTHENTICATION = "pm_card_authenticationRequired"
SILENT = "pm_sim_silent"
NEVER = "pm_sim_never"
AT_ONCE = "pm_sim_at_once"
PAYMENT_METHODS = frozenset({AUTHORIZED, DECLINED, BLOCKED, AUTHENTICATION, SILENT, NEVER, AT_ONCE})

_CONFIRMABLE = frozenset({"requires_payment_method", "requires_confirmation", "requires_action"})
_CANCELABLE = _CONFIRMABLE | {"requires_capture"}


def known_payment_method(token: str) -> str:
    """The token itself. Raises Refusal when it is none of ours."""
    if token not in PAYMENT_METHODS:
        raise missing("PaymentMethod", token, param="payment_method", status=400)
    return token


@dataclass
class Intent:
    """One payment. Amounts in the currency's smallest unit, times in seconds since the epoch.

    `facts` are the event types that the last action gave rise to; whoever stores the intent publishes and clears them.
    """

    id: str
    amount: int
    currency: str
    created: int
    capture_method: str
    metadata: dict[str, str]
    client_secret: str
    status: str = "requires_payment_method"
    payment_method: str | None = None
    payment_method_types: list[str] = field(default_factory=lambda: ["card"])
    description: str | None = None
    amount_capturable: int = 0
    amount_received: int = 0
    amount_refunded: int = 0
    refunds_pending: int = 0
    latest_charge: str | None = None
    next_action: dict[str, Any] | None = None
    last_payment_error: dict[str, Any] | None = None
    cancellation_reason: str | None = None
    canceled_at: int | None = None
    hold_expires: float | None = None
    settling: bool = False
    facts: list[str] = field(default_factory=list)

    @property
    def order_id(self) -> str | None:
        """The caller's own order id, where its metadata names one."""
        return self.metadata.get("order_id")

    @property
    def refundable(self) -> int:
        """What is captured and neither refunded nor about to be."""
        return self.amount_received - self.amount_refunded - self.refunds_pending

    def choose(self, payment_method: str | None) -> None:
        """Attaches the card to pay with, if one is given."""
        if payment_method is not None:
            self.payment_method = known_payment_method(payment_method)
            self.status = "requires_confirmation"

    def confirm(self, payment_method: str | None) -> Refusal | None:
        """Tries to pay. Returns the decline, if it is one; raises Refusal when the intent cannot be confirmed now."""
        if self.status not in _CONFIRMABLE:
            raise unexpected_state("confirm", self.view())
        self.choose(payment_method)
        if self.payment_method is None:
            raise unexpected_state("confirm without a payment method", self.view())
        self.last_payment_error = None
        self.next_action = None
        self.latest_charge = new_id("ch")
        if self.payment_method in {DECLINED, BLOCKED}:
            decline_code = "fraudulent" if self.payment_method == BLOCKED else "generic_decline"
            self._fail("card_declined", "Your card was declined.", decline_code=decline_code)
            return Refusal(402, "card_error", "Your card was declined.", **self._payment_error())
        if self.payment_method == AUTHENTICATION:
            self.latest_charge = None
            self.status = "requires_action"
            self.next_action = {"type": "use_stripe_sdk", "use_stripe_sdk": {"type": "three_d_secure_redirect"}}
            self.facts.append("payment_intent.requires_action")
            return None
        self.status = "processing"
        self.settling = self.payment_method != NEVER
        return None

    def settle(self, now: float) -> None:
        """The moment later: the card's issuer has said yes. Nothing happens when the intent does not wait for that."""
        if self.status == "processing" and self.settling:
            self._authorize(now, silent=self.payment_method == SILENT)

    def authenticate(self, outcome: str, now: float) -> None:
        """The shopper's 3-D Secure, or the late word on a payment that processes: success, fail or abandon."""
        if self.status not in {"requires_action", "processing"}:
            raise unexpected_state("authenticate", self.view())
        if outcome == "success":
            self._authorize(now)
        elif outcome == "fail":
            self._fail(
                "payment_intent_authentication_failure",
                "The provided PaymentMethod has failed authentication. You can provide payment_method_data or a new "
                "PaymentMethod to attempt to fulfill this PaymentIntent again.",
            )

    def capture(self, amount: int | None) -> None:
        """Takes the held money, or a part of it; the rest of the hold is released."""
        if self.status != "requires_capture":
            raise unexpected_state("capture", self.view())
        wanted = self.amount_capturable if amount is None else amount
        if not 0 < wanted <= self.amount_capturable:
            message = "The amount to capture must be positive and at most the amount that is held."
            raise Refusal(400, "invalid_request_error", message, code="amount_too_large", param="amount_to_capture")
        self._take(wanted)

    def cancel(self, reason: str | None, now: float) -> None:
        """Ends the intent and releases what is held."""
        if self.status not in _CANCELABLE:
            raise unexpected_state("cancel", self.view())
        self._end(reason, now)

    def expire(self, now: float) -> None:
        """The issuer drops a hold that nobody captured."""
        if self.status == "requires_capture":
            self._end("automatic", now)

    def force(self, status: str, now: float) -> None:
        """Money that moves against all rules, whatever the intent's state: held, captured, or a capture taken back."""
        self.cancellation_reason = self.canceled_at = None
        self.latest_charge = self.latest_charge or new_id("ch")
        if status == "requires_capture":
            self._authorize(now)
        elif status == "requires_payment_method":
            self.amount_received = self.amount_capturable = 0
            self._fail("processing_error", "The capture did not go through after all.")
        else:
            self._take(self.amount)

    def view(self) -> dict[str, Any]:
        """The intent as Stripe's JSON tells it."""
        own = dict(vars(self))
        for inner in ("amount_refunded", "refunds_pending", "hold_expires", "settling", "facts"):
            del own[inner]
        return {
            "object": "payment_intent",
            "livemode": False,
            "confirmation_method": "automatic",
            "customer": None,
            **own,
        }

    def charge(self) -> dict[str, Any] | None:
        """The intent's latest charge as Stripe's JSON tells it; None before the first attempt to pay."""
        if self.latest_charge is None:
            return None
        error = self.last_payment_error or {}
        return {
            "id": self.latest_charge,
            "object": "charge",
            "livemode": False,
            "payment_intent": self.id,
            "amount": self.amount,
            "amount_captured": self.amount_received,
            "amount_refunded": self.amount_refunded,
            "captured": self.amount_received > 0,
            "created": self.created,
            "currency": self.currency,
            "failure_code": error.get("code"),
            "failure_message": error.get("message"),
            "metadata": self.metadata,
            "outcome": self._outcome(error),
            "paid": not error,
            "payment_method": self.payment_method,
            "refunded": 0 < self.amount_received == self.amount_refunded,
            "status": "failed" if error else "succeeded",
        }

    def _authorize(self, now: float, *, silent: bool = False) -> None:
        self.settling = False
        self.next_action = None
        self.latest_charge = self.latest_charge or new_id("ch")
        if self.capture_method != "manual":
            self._take(self.amount, silent=silent)
            return
        self.status = "requires_capture"
        self.amount_capturable = self.amount
        self.hold_expires = now + HOLD_SECONDS
        if not silent:
            self.facts.append("payment_intent.amount_capturable_updated")

    def _take(self, amount: int, *, silent: bool = False) -> None:
        self.status = "succeeded"
        self.amount_received = amount
        self.amount_capturable = 0
        self.hold_expires = None
        self.settling = False
        if not silent:
            self.facts.append("payment_intent.succeeded")

    def _fail(self, code: str, message: str, *, decline_code: str | None = None) -> None:
        self.status = "requires_payment_method"
        self.settling = False
        self.next_action = None
        self.last_payment_error = {
            "type": "card_error" if decline_code else "invalid_request_error",
            "code": code,
            "message": message,
            "charge": self.latest_charge,
            "payment_method": {"id": self.payment_method, "object": "payment_method", "type": "card"},
            **({"decline_code": decline_code} if decline_code else {}),
        }
        self.payment_method = None
        self.facts.append("payment_intent.payment_failed")

    def _end(self, reason: str | None, now: float) -> None:
        self.status = "canceled"
        self.cancellation_reason = reason
        self.canceled_at = int(now)
        self.amount_capturable = 0
        self.next_action = None
        self.hold_expires = None
        self.facts.append("payment_intent.canceled")

    def _payment_error(self) -> dict[str, Any]:
        error = {
            name: value for name, value in (self.last_payment_error or {}).items() if name not in {"type", "message"}
        }
        return {**error, "payment_intent": self.view()}

    @staticmethod
    def _outcome(error: dict[str, Any]) -> dict[str, Any]:
        if error.get("decline_code") == "fraudulent":
            return {
                "type": "blocked",
                "network_status": "not_sent_to_network",
                "reason": "highest_risk_level",
                "risk_level": "highest",
                "seller_message": "Stripe blocked this payment as too risky.",
            }
        if error:
            return {
                "type": "issuer_declined",
                "network_status": "declined_by_network",
                "reason": error.get("decline_code"),
                "risk_level": "normal",
                "seller_message": "The bank did not return any further details with this decline.",
            }
        return {
            "type": "authorized",
            "network_status": "approved_by_network",
            "reason": None,
            "risk_level": "normal",
            "seller_message": "Payment complete.",
        }
