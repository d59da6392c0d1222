"""Can the request have had an effect? Every way an exchange can end, over real sockets, for all three parties."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from adapters.courier import Courier
from adapters.fraud_scorer import FraudScorer
from adapters.http import LARGEST_ANSWER_BYTES, ProviderRequestRefused, retry_after_seconds
from adapters.payment_gateway import PaymentGateway
from domain.errors import (
    CourierUnavailable,
    FraudServiceUnavailable,
    GatewayProtocolError,
    NotServed,
    OnHold,
    PaymentServiceUnavailable,
    TransientError,
)
from runtime.ports import free_port
from tests.unit.scripted import Handler, a_full_port, a_server, answering, breaking_off, hanging_up, silent

SECRET = "Ada Lovelace, 12 St James's Square"


@dataclass(frozen=True)
class Party:
    """One provider: how it is asked for something, and what its silence is called."""

    name: str
    ask: Callable[[str, float], Awaitable[object]]
    unavailable: type[TransientError]


async def _ask_gateway(base: str, timeout_seconds: float) -> object:
    gateway = PaymentGateway("sk_test", base_url=base, timeout_seconds=timeout_seconds)
    try:
        return await gateway.capture_intent("pi_1", "key")
    finally:
        await gateway.close()


async def _ask_courier(base: str, timeout_seconds: float) -> object:
    courier = Courier(base, timeout_seconds=timeout_seconds)
    try:
        return await courier.book("o1:main", "main", {"name": SECRET})
    finally:
        await courier.close()


async def _ask_scorer(base: str, timeout_seconds: float) -> object:
    scorer = FraudScorer(base, timeout_seconds=timeout_seconds)
    try:
        return await scorer.score("o1", "ada", 4500, "EUR")
    finally:
        await scorer.close()


PARTIES = [
    Party("gateway", _ask_gateway, PaymentServiceUnavailable),
    Party("courier", _ask_courier, CourierUnavailable),
    Party("scorer", _ask_scorer, FraudServiceUnavailable),
]


@pytest.fixture(params=PARTIES, ids=lambda party: str(party.name))
def party(request: pytest.FixtureRequest) -> Party:
    found: Party = request.param
    return found


@asynccontextmanager
async def asking(party: Party, handler: Handler, error: type[Exception]) -> AsyncIterator[Exception]:
    async with a_server(handler) as base:
        with pytest.raises(error) as raised:
            await party.ask(base, 5)
    assert SECRET not in str(raised.value)
    yield raised.value


async def test_a_refused_connection_certainly_had_no_effect(party: Party) -> None:
    with pytest.raises(NotServed):
        await party.ask(f"http://127.0.0.1:{free_port()}", 5)


async def test_a_name_that_does_not_resolve_certainly_had_no_effect(party: Party) -> None:
    with pytest.raises(NotServed):
        await party.ask("http://nobody.invalid", 5)


async def test_a_connection_that_was_never_made_certainly_had_no_effect(party: Party) -> None:
    async with a_full_port() as base:
        with pytest.raises(NotServed):
            await party.ask(base, 0.4)


async def test_silence_after_the_request_was_sent_is_unknown(party: Party) -> None:
    async with a_server(silent) as base:
        with pytest.raises(party.unavailable):
            await party.ask(base, 0.4)


@pytest.mark.parametrize("handler", [hanging_up, breaking_off], ids=["hanging up", "breaking off"])
async def test_a_connection_that_breaks_after_the_request_was_sent_is_unknown(party: Party, handler: Handler) -> None:
    async with asking(party, handler, party.unavailable):
        pass


@pytest.mark.parametrize("status", [500, 501, 502, 504, 599])
async def test_a_5xx_is_unknown(party: Party, status: int) -> None:
    body = f'{{"error": {{"message": "{SECRET}"}}}}'
    async with asking(party, answering(status, body), party.unavailable):
        pass


@pytest.mark.parametrize("status", [429, 503])
async def test_not_now_carries_the_partys_own_time(party: Party, status: int) -> None:
    async with asking(party, answering(status, "<html>busy</html>", Retry_After="17"), NotServed) as error:
        assert isinstance(error, NotServed)
        assert error.retry_after_seconds == 17


@pytest.mark.parametrize("status", [429, 503])
async def test_not_now_without_a_time_leaves_it_to_us(party: Party, status: int) -> None:
    async with asking(party, answering(status), NotServed) as error:
        assert isinstance(error, NotServed)
        assert error.retry_after_seconds is None


@pytest.mark.parametrize("body", ["", "OK", "<html></html>", "[]", "42", '"yes"', "{}", '{"status": "booked"}'])
async def test_a_200_that_is_not_understood_is_never_success(party: Party, body: str) -> None:
    async with asking(party, answering(200, body), GatewayProtocolError):
        pass


async def test_an_answer_without_end_is_not_read_to_its_end(party: Party) -> None:
    async with asking(party, answering(200, " " * (LARGEST_ANSWER_BYTES + 1)), GatewayProtocolError):
        pass


@pytest.mark.parametrize("status", [302, 307, 400, 401, 403, 404, 405, 418])
@pytest.mark.parametrize("body", ["<html></html>", f'{{"error": {{"message": "{SECRET}"}}}}'], ids=["page", "json"])
async def test_a_request_that_the_party_will_not_have_stops_for_a_person(party: Party, status: int, body: str) -> None:
    async with asking(party, answering(status, body, Location="/elsewhere"), ProviderRequestRefused) as error:
        assert str(error) == f"HTTP {status}"


async def on_hold() -> None:
    raise OnHold("tests")


@pytest.mark.parametrize("name", ["gateway", "courier"])
async def test_nothing_is_sent_to_a_party_that_is_held(name: str) -> None:
    # Nobody listens there: whatever is sent ends as not served.
    base = f"http://127.0.0.1:{free_port()}"
    courier = Courier(base, timeout_seconds=5, before_effect=on_hold)
    gateway = PaymentGateway("sk_test", base_url=base, timeout_seconds=5, before_effect=on_hold)
    with pytest.raises(OnHold):
        await (gateway.capture_intent("pi_1", "key") if name == "gateway" else courier.book("o1:main", "main", {}))
    with pytest.raises(NotServed):
        await (gateway.read_intent("pi_1") if name == "gateway" else courier.find("o1:main"))
    await courier.close()
    await gateway.close()


async def test_a_cancel_is_not_sent_to_a_courier_that_is_held() -> None:
    courier = Courier(f"http://127.0.0.1:{free_port()}", timeout_seconds=5, before_effect=on_hold)
    with pytest.raises(OnHold):
        await courier.cancel("o1:main")
    await courier.close()


async def test_a_page_that_is_not_found_is_not_a_parcel_that_is_not_there() -> None:
    async with a_server(answering(404, "<html>nothing here</html>")) as base:
        courier = Courier(base, timeout_seconds=5)
        for call in (courier.find, courier.cancel):
            with pytest.raises(ProviderRequestRefused):
                await call("o1:main")
        await courier.close()


async def test_a_cancel_that_leaves_the_parcel_booked_is_not_understood() -> None:
    async with a_server(answering(200, '{"id": "shp_1", "reference": "o1:main", "status": "booked"}')) as base:
        courier = Courier(base, timeout_seconds=5)
        with pytest.raises(GatewayProtocolError):
            await courier.cancel("o1:main")
        await courier.close()


def test_retry_after_is_read_both_ways_and_nonsense_is_none() -> None:
    later = format_datetime(datetime.now(UTC) + timedelta(seconds=90), usegmt=True)
    assert retry_after_seconds({"Retry-After": "2.5"}) == 2.5
    assert retry_after_seconds({"Retry-After": "-3"}) == 0
    seconds = retry_after_seconds({"Retry-After": later})
    assert seconds is not None
    assert 80 < seconds <= 90
    for nonsense in ("", "soon", "nan", "inf"):
        assert retry_after_seconds({"Retry-After": nonsense}) is None
