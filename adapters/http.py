"""Talking to other parties over HTTP, with one question answered exactly: can the request have had an effect?

Nothing sent (refused, unresolvable, no connection in time) and "not now" (429, 503) are `NotServed`. Sent and then
broken off, timed out or answered 5xx is the party's own `TransientError`: the outcome is unknown. A 2xx that is not
understood is `GatewayProtocolError`: unknown too. Any other refusal is `ProviderRequestRefused`, outside the tree of
errors, so that it parks: it is our bug or our settings, never the shopper's.
"""

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from urllib.parse import urlsplit

import aiohttp
from multidict import CIMultiDict

from adapters.tracing import note, span
from domain.errors import GatewayProtocolError, NotServed, TransientError

#: No answer that we ask for comes near it (a page of 100 intents is about 300 KB).
LARGEST_ANSWER_BYTES = 4 * 1024 * 1024


class ProviderRequestRefused(Exception):
    """The party will not have our request (wrong key, unknown parameter …). Carries the status and its code only."""


@dataclass(frozen=True)
class Answer:
    """What came back, whole."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=CIMultiDict)

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300

    def json_object(self) -> dict[str, object]:
        """The body as a JSON object. Raises GatewayProtocolError when it is none."""
        try:
            value = json.loads(self.body)
        except ValueError:
            raise GatewayProtocolError("not JSON") from None
        if not isinstance(value, dict):
            raise GatewayProtocolError("not a JSON object")
        return value

    def code(self) -> str | None:
        """The stable code of an error body, `{error: {code}}`, or None. Never its message, which may say anything."""
        try:
            error = self.json_object().get("error")
        except GatewayProtocolError:
            return None
        return plain_code(error.get("code")) if isinstance(error, dict) else None


def plain_code(value: object) -> str | None:
    """`value` when it looks like a code (`no_service`), else None: only codes may reach our errors."""
    return value if isinstance(value, str) and re.fullmatch(r"[a-z0-9_]{1,64}", value) else None


def client_timeout(timeout_seconds: float) -> aiohttp.ClientTimeout:
    """The whole exchange in `timeout_seconds`, the connection in half of it, so that the two are told apart."""
    return aiohttp.ClientTimeout(total=timeout_seconds, connect=timeout_seconds / 2)


async def exchange(
    session: aiohttp.ClientSession,
    method: str,
    url: str,
    *,
    timeout: aiohttp.ClientTimeout,
    unavailable: type[TransientError],
    headers: Mapping[str, str] | None = None,
    data: str | None = None,
    json_body: object = None,
    params: Mapping[str, str] | None = None,
) -> Answer:
    """One request and its whole answer, whatever its status. Redirects are not followed.

    Raises NotServed when nothing was sent, `unavailable` when the exchange broke after that, GatewayProtocolError
    when the answer is larger than any that we ask for.
    """
    with span(f"provider {method.upper()}", path=urlsplit(url).path):
        try:
            async with session.request(
                method,
                url,
                timeout=timeout,
                headers=headers,
                data=data,
                json=json_body,
                params=params,
                allow_redirects=False,
            ) as response:
                note(status=response.status)
                return Answer(response.status, await _read(response), response.headers)
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            raise NotServed(type(error).__name__) from None
        except (aiohttp.ClientError, TimeoutError, ConnectionError) as error:
            raise unavailable(type(error).__name__) from None


async def _read(response: aiohttp.ClientResponse) -> bytes:
    body = bytearray()
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) > LARGEST_ANSWER_BYTES:
            raise GatewayProtocolError("answer too large")
    return bytes(body)


def require_served(answer: Answer, unavailable: type[TransientError]) -> None:
    """Raises NotServed for 429 and 503 (with the party's own Retry-After) and `unavailable` for any other 5xx."""
    if answer.status in {429, 503}:
        raise NotServed(f"HTTP {answer.status}", retry_after_seconds(answer.headers))
    if answer.status >= 500:
        raise unavailable(f"HTTP {answer.status}")


def retry_after_seconds(headers: Mapping[str, str]) -> float | None:
    """`Retry-After` as seconds from now, written either way RFC 9110 allows; None when absent or nonsense."""
    value = headers.get("Retry-After", "").strip()
    try:
        seconds = float(value)
    except ValueError:
        try:
            at = parsedate_to_datetime(value)
        except ValueError:
            return None
        seconds = (at.replace(tzinfo=at.tzinfo or UTC) - datetime.now(UTC)).total_seconds()
    return max(0.0, seconds) if math.isfinite(seconds) else None


class HttpParty:
    """One party behind a base address, with a session of its own that is opened at the first request."""

    def __init__(self, base_url: str, *, timeout_seconds: float, unavailable: type[TransientError]) -> None:
        self._base_url = base_url.rstrip("/")
        self._timeout = client_timeout(timeout_seconds)
        self._unavailable = unavailable
        self._session: aiohttp.ClientSession | None = None

    async def request(
        self, method: str, path: str, *, json_body: object = None, params: Mapping[str, str] | None = None
    ) -> Answer:
        """One exchange. 2xx, 3xx and 4xx (but 429) are the caller's to read; raises as the module says otherwise."""
        if self._session is None:
            self._session = aiohttp.ClientSession()
        answer = await exchange(
            self._session,
            method,
            self._base_url + path,
            timeout=self._timeout,
            unavailable=self._unavailable,
            json_body=json_body,
            params=params,
        )
        require_served(answer, self._unavailable)
        return answer

    async def close(self) -> None:
        """Closes the session."""
        if self._session is not None:
            await self._session.close()
            self._session = None


def refused(answer: Answer) -> ProviderRequestRefused:
    """The error for an answer that no caller can use."""
    return ProviderRequestRefused(" ".join(part for part in (f"HTTP {answer.status}", answer.code()) if part))
