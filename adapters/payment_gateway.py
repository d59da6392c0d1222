"""The payment gateway: Stripe's PaymentIntents through the official SDK, told apart to the last error.

Raises, besides what the methods say: NotServed (certainly no effect), PaymentServiceUnavailable and
GatewayProtocolError (outcome unknown), IdempotencyConflict (our key with other parameters), a Refusal for card errors,
and ProviderRequestRefused for anything else the gateway will not do. The provider's messages are dropped.
"""

import logging
from collections.abc import AsyncIterator, Awaitable, Mapping
from datetime import datetime
from typing import Any, TypeVar, cast

import stripe

from adapters.holds import BeforeEffect, let_pass
from adapters.http import Answer, ProviderRequestRefused, client_timeout, exchange, plain_code, require_served
from adapters.stripe_answers import Dispute, Intent, Refund, parse_dispute, parse_intent, parse_refund, refusal_for
from domain.errors import (
    AuthorizationExpired,
    CardDeclined,
    GatewayProtocolError,
    IdempotencyConflict,
    NotServed,
    PaymentServiceUnavailable,
)

#: Pinned, so that neither an upgrade of the SDK nor of the account changes what an answer means. From 2026-09-30.endive
#: on, `payment_method_types` is refused (Stripe's changelog); this is a version that takes it.
API_VERSION = "2026-07-29.dahlia"
PAGE = 100

#: Stripe's codes for a hold that ran out before it was captured.
EXPIRED = frozenset({"charge_expired_for_capture", "capture_charge_authorization_expired"})

# The SDK would write a machine id to disk and send timings; its log lines carry the provider's messages.
stripe.enable_telemetry = False
logging.getLogger("stripe").setLevel(logging.WARNING)

Value = TypeVar("Value")


class UnexpectedState(Exception):
    """The intent's status does not allow the request: `intent`, as the error tells it, says why."""

    def __init__(self, intent: Intent) -> None:
        super().__init__(intent.status.value)
        self.intent = intent


class Replayed(Exception):
    """The first answer under this key, kept by the gateway and told again: a success, a refusal or a 500 of then.

    Nothing is in flight under the key, it will never be run again, and what is true now must be read.
    """


class AlreadyRefunded(Exception):
    """Nothing is left to refund on this intent: the list of its refunds says who did it."""


class _Transport(stripe.AIOHTTPClient):
    """The SDK's aiohttp client, with our own word for every way an exchange can end before the SDK reads it."""

    def __init__(self, timeout_seconds: float, before_effect: BeforeEffect) -> None:
        super().__init__(timeout=client_timeout(timeout_seconds))
        self._limits = client_timeout(timeout_seconds)
        self._before_effect = before_effect

    async def request_async(
        self, method: str, url: str, headers: Mapping[str, str], post_data: Any = None
    ) -> tuple[bytes, int, Mapping[str, str]]:
        # The gateway's questions are all GET, its effects POST.
        if method.upper() != "GET":
            await self._before_effect()
        answer = await exchange(
            self._session,
            method,
            url,
            timeout=self._limits,
            unavailable=PaymentServiceUnavailable,
            headers=headers,
            data=post_data,
        )
        if answer.status >= 500 and _is_replay(answer.headers):
            raise Replayed
        require_served(answer, PaymentServiceUnavailable)
        if answer.status == 409:
            raise NotServed("HTTP 409")
        _require_understood(answer)
        return answer.body, answer.status, answer.headers


def _is_replay(headers: Mapping[str, str] | None) -> bool:
    return (headers or {}).get("Idempotent-Replayed") == "true"


def _require_understood(answer: Answer) -> None:
    if answer.ok:
        answer.json_object()
        return
    try:
        understood = isinstance(answer.json_object().get("error"), dict)
    except GatewayProtocolError:
        understood = False
    # A page of some proxy in between, say: the gateway itself never refuses like this.
    if not understood:
        raise ProviderRequestRefused(f"HTTP {answer.status}")


class PaymentGateway:
    """Client of the gateway. Every effect takes an idempotency key: under the same key it happens once.

    Raises Replayed where an answer is an old one; a created intent is then read afresh. `before_effect` is asked before
    each effect is sent, and not before questions: what it raises is raised, and nothing is sent.
    """

    def __init__(
        self,
        api_key: str,
        *,
        base_url: str | None = None,
        timeout_seconds: float,
        before_effect: BeforeEffect = let_pass,
    ) -> None:
        self._transport = _Transport(timeout_seconds, before_effect)
        self._client = stripe.StripeClient(
            api_key,
            stripe_version=API_VERSION,
            base_addresses={"api": base_url.rstrip("/")} if base_url else None,
            max_network_retries=0,
            http_client=self._transport,
        )
        self._intents = self._client.v1.payment_intents
        self._refunds = self._client.v1.refunds

    async def create_intent(self, order_id: str, amount: int, currency: str, payment_method: str, key: str) -> Intent:
        """The intent under this key: made now and unconfirmed (it moves no money), or made before and read again.

        Raises CardDeclined when there is no such payment method.
        """
        params = {
            "amount": amount,
            "currency": currency.lower(),
            "capture_method": "manual",
            "payment_method_types": ["card"],
            "payment_method": payment_method,
            "metadata": {"order_id": order_id},
        }
        # The SDK's types follow its newest API version, these parameters the pinned one.
        created = await _called(self._intents.create_async(cast(Any, params), {"idempotency_key": key}))
        intent = parse_intent(created.to_dict())
        # The kept answer tells the intent of then; it may have been confirmed or cancelled since.
        return await self.read_intent(intent.id) if _is_old(created) else intent

    async def confirm_intent(self, intent_id: str, key: str) -> Intent:
        """Asks for the money. Raises UnexpectedState, or the Refusal of a declined card."""
        return parse_intent(await _fresh(self._intents.confirm_async(intent_id, None, {"idempotency_key": key})))

    async def read_intent(self, intent_id: str) -> Intent:
        """The intent as it is now."""
        return parse_intent(await _fresh(self._intents.retrieve_async(intent_id)))

    async def capture_intent(self, intent_id: str, key: str) -> Intent:
        """Takes all that is held. Raises UnexpectedState, or a Refusal when the capture failed."""
        return parse_intent(await _fresh(self._intents.capture_async(intent_id, None, {"idempotency_key": key})))

    async def cancel_intent(self, intent_id: str, key: str) -> Intent:
        """Ends the intent and releases what it holds. Raises UnexpectedState."""
        return parse_intent(await _fresh(self._intents.cancel_async(intent_id, None, {"idempotency_key": key})))

    async def refund_intent(self, intent_id: str, amount: int, refund_key: str, key: str) -> Refund:
        """Gives captured money back; `refund_key` finds the refund again. Raises AlreadyRefunded."""
        call = self._refunds.create_async(
            {"payment_intent": intent_id, "amount": amount, "metadata": {"refund_key": refund_key}},
            {"idempotency_key": key},
        )
        return parse_refund(await _fresh(call))

    async def list_refunds(self, intent_id: str) -> list[Refund]:
        """All refunds on the intent, whoever made them. The list is immediate, unlike Search."""
        return [parse_refund(item) async for item in self._items("refunds", payment_intent=intent_id)]

    async def list_disputes(self, intent_id: str) -> list[Dispute]:
        """All disputes about the intent's charges, open and closed."""
        return [parse_dispute(item) async for item in self._items("disputes", payment_intent=intent_id)]

    async def list_intents(self, *, since: datetime | None = None, after: str | None = None) -> AsyncIterator[Intent]:
        """Every intent of the account, or made `since` then, newest first, page by page (for the books).

        `after`: the list goes on behind this one.
        """
        async for item in self._items("payment_intents", since=since, after=after):
            yield parse_intent(item)

    async def list_all_refunds(
        self, *, since: datetime | None = None, after: str | None = None
    ) -> AsyncIterator[Refund]:
        """Every refund of the account, as `list_intents`."""
        async for item in self._items("refunds", since=since, after=after):
            yield parse_refund(item)

    async def _items(
        self, name: str, *, since: datetime | None = None, after: str | None = None, **filters: str
    ) -> AsyncIterator[object]:
        """The items of a list, page after page, as JSON has them: the SDK's objects take four times as long to make."""
        params: dict[str, Any] = {"limit": PAGE, **filters}
        if since is not None:
            params["created"] = {"gte": int(since.timestamp())}
        while True:
            if after is not None:
                params["starting_after"] = after
            body = (await _called(self._client.raw_request_async("get", f"/v1/{name}", **params))).data
            items = body.get("data") if isinstance(body, dict) else None
            if not isinstance(body, dict) or body.get("object") != "list" or not isinstance(items, list):
                raise GatewayProtocolError("not a list")
            for item in items:
                yield item
            if not body.get("has_more"):
                return
            after = items[-1].get("id") if items and isinstance(items[-1], dict) else None
            if not isinstance(after, str):
                raise GatewayProtocolError("not a page")

    async def close(self) -> None:
        """Closes the HTTP session."""
        await self._transport.close_async()  # type: ignore[no-untyped-call]  # the SDK gives it no types


async def _fresh(call: Awaitable[stripe.StripeObject]) -> dict[str, Any]:
    """The body of an answer that tells of now."""
    told = await _called(call)
    if _is_old(told):
        raise Replayed
    return told.to_dict()


def _is_old(told: stripe.StripeObject) -> bool:
    return told.last_response is not None and _is_replay(told.last_response.headers)


async def _called(call: Awaitable[Value]) -> Value:
    """The SDK's answer, or our error for the SDK's."""
    try:
        return await call
    except stripe.StripeError as error:
        raise Replayed if _is_replay(error.headers) else _translated(error) from None


def _translated(error: stripe.StripeError) -> Exception:
    if isinstance(error, stripe.IdempotencyError):
        return IdempotencyConflict(f"HTTP {error.http_status}")
    body = error.json_body if isinstance(error.json_body, dict) else {}
    details = body.get("error")
    details = details if isinstance(details, dict) else {}
    code = plain_code(details.get("code"))
    told = _told_by_code(code, details)
    if told is not None:
        return told
    if isinstance(error, stripe.CardError):
        return refusal_for(details)(code or "card_error")
    return ProviderRequestRefused(" ".join(part for part in (f"HTTP {error.http_status}", code) if part))


def _told_by_code(code: str | None, details: Mapping[str, object]) -> Exception | None:
    if code == "payment_intent_unexpected_state":
        return _unexpected(details)
    if code == "charge_already_refunded":
        return AlreadyRefunded()
    if code in EXPIRED:
        return AuthorizationExpired(code)
    if code == "resource_missing" and details.get("param") == "payment_method":
        # The token is the shopper's: one that the gateway does not know is a card that cannot be charged.
        return CardDeclined(code)
    return None


def _unexpected(details: Mapping[str, object]) -> Exception:
    try:
        return UnexpectedState(parse_intent(details.get("payment_intent")))
    except GatewayProtocolError as error:
        return error
