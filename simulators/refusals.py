"""The payment gateway's refusals, in the shape of Stripe's error objects."""

from typing import Any


class Refusal(Exception):
    """An answer that is not a 2xx. `kept`: the answer belongs to the idempotency key and is replayed under it.

    Stripe keeps an answer once an endpoint has begun to execute: not for wrong parameters, a key in flight, or a limit.
    """

    def __init__(self, status: int, kind: str, message: str, *, kept: bool = True, **fields: Any) -> None:
        super().__init__(message)
        self.status = status
        self.kept = kept
        self.error: dict[str, Any] = {"type": kind, "message": message, **fields}

    @property
    def body(self) -> dict[str, Any]:
        """The JSON document of the answer."""
        return {"error": self.error}


def invalid(message: str, *, param: str | None = None, code: str | None = None) -> Refusal:
    """400 for parameters that do not make sense."""
    fields = {name: value for name, value in (("param", param), ("code", code)) if value}
    return Refusal(400, "invalid_request_error", message, kept=False, **fields)


def missing(what: str, identifier: str, *, param: str, status: int = 404) -> Refusal:
    """404 (or 400 for a parameter's value): no such object."""
    return Refusal(
        status,
        "invalid_request_error",
        f"No such {what}: '{identifier}'",
        kept=False,
        code="resource_missing",
        param=param,
    )


def unexpected_state(action: str, intent: dict[str, Any]) -> Refusal:
    """400 when the intent's status does not allow the action; carries the intent, which tells the truth."""
    return Refusal(
        400,
        "invalid_request_error",
        f"You cannot {action} this PaymentIntent because it has a status of {intent['status']}.",
        code="payment_intent_unexpected_state",
        payment_intent=intent,
    )


def key_in_flight(key: str | None) -> Refusal:
    """409 while the first call under a key has not answered yet."""
    message = (
        f"There is currently another in-progress request using this idempotent key ({key}). Please try again later."
    )
    return Refusal(409, "invalid_request_error", message, kept=False, code="idempotency_key_in_use")


def other_parameters(key: str) -> Refusal:
    """400 when a key comes back with another endpoint or other parameters."""
    message = (
        "Keys for idempotent requests can only be used for the same endpoint and parameters they were first used for. "
        f"Try using a key other than '{key}' if you meant to execute a different request."
    )
    return Refusal(400, "idempotency_error", message, kept=False)
