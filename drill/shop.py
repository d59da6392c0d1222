"""The shop's public doors, knocked at until they open: a process behind them may be down."""

import asyncio
import time
from typing import Any

import aiohttp

from runtime.entry import EntryError
from runtime.settings import Settings

#: A shopper's app, or a person, does not give up sooner. Restarts take seconds.
PATIENCE_SECONDS = 120.0
ANSWER_SECONDS = 10
KNOCK_SECONDS = 0.5

#: The shop says: not now, or not known yet; ask the same again.
_LATER = frozenset({429, 500, 502, 503, 504})


class Shop:
    """One session for all doors."""

    def __init__(self, settings: Settings, http: aiohttp.ClientSession) -> None:
        self._http = http
        self.shopper = f"http://127.0.0.1:{settings.http_port}"
        self.operator = f"http://127.0.0.1:{settings.ops_port}"
        self.gateway = f"http://127.0.0.1:{settings.sim_gateway_port}"
        self.courier = f"http://127.0.0.1:{settings.sim_courier_port}"

    async def ask(self, method: str, url: str, document: Any = None, *, key: str | None = None) -> tuple[int, Any]:
        """Status and body of the first answer that means something. Raises EntryError when patience ends."""
        deadline, trouble = time.monotonic() + PATIENCE_SECONDS, ""
        headers = {"Idempotency-Key": key} if key else {}
        timeout = aiohttp.ClientTimeout(total=ANSWER_SECONDS)
        while time.monotonic() < deadline:
            try:
                async with self._http.request(method, url, json=document, headers=headers, timeout=timeout) as answer:
                    body = await answer.json(content_type=None)
                    if answer.status not in _LATER:
                        return answer.status, body
                    trouble = f"answered {answer.status}"
            except (aiohttp.ClientError, TimeoutError, ValueError) as error:
                trouble = type(error).__name__
            await asyncio.sleep(KNOCK_SECONDS)
        raise EntryError(f"{method} {url} failed for {PATIENCE_SECONDS:g} s: {trouble}")

    async def expect(self, method: str, url: str, document: Any = None, *, key: str | None = None) -> Any:
        """The body of a 2xx. Raises EntryError for anything else."""
        status, body = await self.ask(method, url, document, key=key)
        if not 200 <= status < 300:
            raise EntryError(f"{method} {url} answered {status}: {body}")
        return body

    async def order(self, order_id: str) -> dict[str, Any]:
        """The order as its shopper sees it."""
        found: dict[str, Any] = await self.expect("GET", f"{self.shopper}/orders/{order_id}")
        return found
