"""The counters of this process, and what the database says when somebody scrapes."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web
from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from adapters.backlog import Backlog
from api.gauges import Gauges

#: Seconds. Intake should answer in tens of milliseconds, a cancel may take its 5 s.
_LATENCY_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
#: Seconds that a reading of the database serves: any number of scrapers cost one reading in that time.
READING_SECONDS = 2.0


class Metrics:
    """One registry a process. No label ever holds an id. `reading_seconds`: how old a reading may be."""

    def __init__(self, *, reading_seconds: float = READING_SECONDS) -> None:
        self._registry = CollectorRegistry()
        self._gauges = Gauges()
        self._registry.register(self._gauges)
        self._reading_seconds = reading_seconds
        self._read_at = float("-inf")
        self._reading = asyncio.Lock()
        self.requests = Histogram(
            "orders_http_request_seconds",
            "Requests by route and status, with their latency.",
            ["method", "route", "status"],
            buckets=_LATENCY_BUCKETS,
            registry=self._registry,
        )
        self.intake = self._counter("orders_intake", "Orders accepted, replayed, refused or held.", "outcome")
        self.webhooks = self._counter("orders_webhooks", "Webhook events by what became of them.", "source", "outcome")
        for source in ("stripe", "courier"):
            for outcome in ("bad_signature", "skewed"):
                self.webhooks.labels(source, outcome)
        self.direct_starts = self._counter("orders_direct_starts", "Starts tried right after an answer.", "outcome")

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(name, text, labels, registry=self._registry)

    async def read(self, backlog: Callable[[], Awaitable[Backlog | None]]) -> None:
        """Reads the database for the next exposition, unless that was just done. None: it does not answer."""
        async with self._reading:
            if time.monotonic() - self._read_at >= self._reading_seconds:
                self._gauges.backlog = await backlog()
                self._read_at = time.monotonic()

    def exposition(self, *, temporal_up: bool) -> web.Response:
        """All of it in Prometheus' text format."""
        self._gauges.temporal_up = temporal_up
        headers: dict[str, Any] = {"Content-Type": CONTENT_TYPE_PLAIN_0_0_4}
        return web.Response(body=generate_latest(self._registry), headers=headers)
