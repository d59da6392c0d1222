"""The counters of this process, and gauges read from the database when somebody scrapes."""

from collections.abc import Iterable, Sequence
from typing import Any

from aiohttp import web
from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.registry import Collector

from adapters.backlog import Backlog

#: Seconds. Intake should answer in tens of milliseconds, a cancel may take its 5 s.
_LATENCY_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)


class _BacklogGauges(Collector):
    """Whether the servers answered, and the last backlog that was read; without a database there is none."""

    def __init__(self) -> None:
        self.backlog: Backlog | None = None
        self.temporal_up = False

    def collect(self) -> Iterable[GaugeMetricFamily]:
        yield GaugeMetricFamily(
            "orders_database_up", "1 when the database answered this scrape.", self.backlog is not None
        )
        yield GaugeMetricFamily("orders_temporal_up", "1 when Temporal answered this scrape.", self.temporal_up)
        if self.backlog is None:
            return
        yield _by("orders_by_status", "Orders that are not closed, by status.", ["status"], self.backlog.orders)
        yield _by("orders_review_items_open", "Open review items by step.", ["step"], self.backlog.review_items)
        yield _by("orders_webhook_inbox", "Webhook events by state.", ["source", "state"], self.backlog.inbox)
        yield GaugeMetricFamily(
            "orders_outbox_oldest_submitted_seconds",
            "Age of the oldest accepted order whose workflow is not started.",
            self.backlog.oldest_submitted_seconds,
        )
        yield GaugeMetricFamily(
            "orders_webhook_inbox_oldest_waiting_seconds",
            "Age of the oldest webhook event that waits for delivery.",
            self.backlog.oldest_waiting_seconds,
        )


def _by(name: str, text: str, labels: list[str], rows: Iterable[tuple[Sequence[str], int]]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, text, labels=labels)
    for values, count in rows:
        family.add_metric(values, count)
    return family


class Metrics:
    """One registry a process. No label ever holds an id."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._gauges = _BacklogGauges()
        self._registry.register(self._gauges)
        self.requests = Histogram(
            "orders_http_request_seconds",
            "Requests by route and status, with their latency.",
            ["method", "route", "status"],
            buckets=_LATENCY_BUCKETS,
            registry=self._registry,
        )
        self.intake = self._counter("orders_intake", "Orders accepted, replayed, refused or held.", "outcome")
        self.webhooks = self._counter("orders_webhooks", "Webhook events by what became of them.", "source", "outcome")
        self.direct_starts = self._counter("orders_direct_starts", "Starts tried right after an answer.", "outcome")

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(name, text, labels, registry=self._registry)

    def exposition(self, backlog: Backlog | None, *, temporal_up: bool) -> web.Response:
        """All of it in Prometheus' text format. `backlog` is None when the database does not answer."""
        self._gauges.backlog, self._gauges.temporal_up = backlog, temporal_up
        headers: dict[str, Any] = {"Content-Type": CONTENT_TYPE_PLAIN_0_0_4}
        return web.Response(body=generate_latest(self._registry), headers=headers)
