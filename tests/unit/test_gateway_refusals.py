"""The gateway's refusals, one by one, as the official SDK hands them on."""

import json
import logging
from contextlib import suppress
from typing import Any

import pytest
from aiohttp import web

from adapters.http import ProviderRequestRefused
from adapters.payment_gateway import API_VERSION, AlreadyRefunded, PaymentGateway, Replayed, UnexpectedState
from adapters.stripe_answers import IntentStatus
from domain.errors import (
    AuthorizationExpired,
    CardDeclined,
    GatewayProtocolError,
    IdempotencyConflict,
    NotServed,
    PaymentFraudBlocked,
)
from tests.unit.scripted import Handler, a_server, answering

SECRET = "Ada's card 4242"
INTENT: dict[str, Any] = {
    "object": "payment_intent",
    "id": "pi_1",
    "status": "succeeded",
    "amount": 4500,
    "amount_received": 4500,
    "currency": "eur",
    "metadata": {"order_id": "o1"},
}


async def ended(status: int, error: dict[str, Any], **headers: str) -> Exception:
    """How a capture ends that the gateway refuses like this."""
    body = json.dumps({"error": {"message": SECRET, **error}})
    async with a_server(answering(status, body, **headers)) as base:
        gateway = PaymentGateway("sk_test", base_url=base, timeout_seconds=5)
        with pytest.raises(Exception) as raised:  # noqa: PT011 - the caller looks at what it is
            await gateway.capture_intent("pi_1", "key")
        await gateway.close()
    assert SECRET not in str(raised.value)
    return raised.value


async def test_a_key_in_flight_is_waited_for() -> None:
    error = await ended(409, {"type": "invalid_request_error", "code": "idempotency_key_in_use"}, Retry_After="2")
    assert isinstance(error, NotServed)


async def test_our_key_with_other_parameters_is_a_contradiction() -> None:
    assert isinstance(await ended(400, {"type": "idempotency_error"}), IdempotencyConflict)


@pytest.mark.parametrize(
    ("decline_code", "refusal"), [("insufficient_funds", CardDeclined), ("fraudulent", PaymentFraudBlocked)]
)
async def test_a_card_error_is_a_refusal(decline_code: str, refusal: type[Exception]) -> None:
    error = await ended(402, {"type": "card_error", "code": "card_declined", "decline_code": decline_code})
    assert type(error) is refusal


async def test_an_unexpected_state_is_told_with_the_intent_inside_the_error() -> None:
    error = await ended(400, {"code": "payment_intent_unexpected_state", "payment_intent": INTENT})
    assert isinstance(error, UnexpectedState)
    assert (error.intent.id, error.intent.status) == ("pi_1", IntentStatus.SUCCEEDED)


async def test_an_unexpected_state_without_an_intent_is_not_understood() -> None:
    assert isinstance(await ended(400, {"code": "payment_intent_unexpected_state"}), GatewayProtocolError)


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (500, {"type": "api_error"}),
        (402, {"type": "card_error", "code": "card_declined"}),
        (400, {"code": "payment_intent_unexpected_state", "payment_intent": INTENT}),
    ],
)
async def test_an_old_refusal_told_again_says_nothing_about_now(status: int, error: dict[str, Any]) -> None:
    assert isinstance(await ended(status, error, Idempotent_Replayed="true"), Replayed)


async def test_an_old_success_told_again_says_nothing_about_now() -> None:
    async with a_server(answering(200, json.dumps(INTENT), Idempotent_Replayed="true")) as base:
        gateway = PaymentGateway("sk_test", base_url=base, timeout_seconds=5)
        with pytest.raises(Replayed):
            await gateway.cancel_intent("pi_1", "key")
        await gateway.close()


async def test_an_intent_whose_creation_is_told_again_is_read_as_it_is_now() -> None:
    told_again = answering(200, json.dumps(INTENT | {"status": "requires_confirmation"}), Idempotent_Replayed="true")
    now = answering(200, json.dumps(INTENT | {"status": "canceled"}))

    async def answer(request: web.Request) -> web.StreamResponse:
        return await (told_again if request.method == "POST" else now)(request)

    async with a_server(answer) as base:
        gateway = PaymentGateway("sk_test", base_url=base, timeout_seconds=5)
        intent = await gateway.create_intent("o1", 4500, "EUR", "pm_1", "key")
        await gateway.close()
    assert (intent.id, intent.status) == ("pi_1", IntentStatus.CANCELED)


async def test_nothing_left_to_refund_is_told_as_such() -> None:
    assert isinstance(await ended(400, {"code": "charge_already_refunded"}), AlreadyRefunded)


@pytest.mark.parametrize("code", ["charge_expired_for_capture", "capture_charge_authorization_expired"])
async def test_a_hold_that_ran_out_is_told_as_expired(code: str) -> None:
    assert isinstance(await ended(400, {"type": "invalid_request_error", "code": code}), AuthorizationExpired)


async def test_a_payment_method_that_does_not_exist_is_a_declined_card() -> None:
    error = await ended(400, {"code": "resource_missing", "param": "payment_method"})
    assert isinstance(error, CardDeclined)


@pytest.mark.parametrize("status", [400, 401, 403, 404])
async def test_what_is_our_own_fault_stops_for_a_person_and_names_only_a_code(status: int) -> None:
    error = await ended(status, {"type": "invalid_request_error", "code": "parameter_unknown"})
    assert isinstance(error, ProviderRequestRefused)
    assert str(error) == f"HTTP {status} parameter_unknown"


async def requests_of_a_capture(handler: Handler) -> list[web.Request]:
    """What reaches a gateway that answers like this."""
    seen: list[web.Request] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        seen.append(request)
        return await handler(request)

    async with a_server(answer) as base:
        gateway = PaymentGateway("sk_test", base_url=base, timeout_seconds=5)
        with suppress(ProviderRequestRefused):
            await gateway.capture_intent("pi_1", "key")
        await gateway.close()
    return seen


async def test_a_request_is_sent_once_even_where_the_gateway_asks_for_another() -> None:
    """Another one is for the step to send, which looks first."""
    body = json.dumps({"error": {"type": "invalid_request_error", "code": "lock_timeout"}})
    assert len(await requests_of_a_capture(answering(400, body, Stripe_Should_Retry="true"))) == 1


async def test_every_request_names_the_version_that_we_understand() -> None:
    (request,) = await requests_of_a_capture(answering(200, json.dumps(INTENT)))
    assert request.headers["Stripe-Version"] == API_VERSION


async def test_the_providers_message_is_never_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, logger="root"):
        await ended(402, {"type": "card_error", "code": "card_declined"})
    assert SECRET not in caplog.text
