"""What the database says, as metrics: every API process tells the same."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, product

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from adapters.backlog import Backlog
from adapters.tallies import BOUNDS, Counts, Totals
from domain.keys import Step

# What is told from the start, as 0: the first one that is counted is then seen as a change.
_NO_EVENTS: dict[tuple[str, ...], float] = dict.fromkeys(product(("stripe", "courier"), ("waiting", "set_aside")), 0)
#: Steps that ask a provider for an effect.
_ASKED = (
    *(step.value for step in (Step.AUTHORIZE_PAYMENT, Step.ABANDON_PAYMENT, Step.CAPTURE_PAYMENT)),
    *(step.value for step in (Step.BOOK_SHIPMENT, Step.RELEASE_PAYMENT, Step.CANCEL_SHIPMENT)),
)
_MOVEMENTS = ("authorized", "captured", "voided", "refunded", "refund_failed", "waived")


class Gauges(Collector):
    """Whether the servers answered, and the last backlog that was read; without a database there is none."""

    def __init__(self) -> None:
        self.backlog: Backlog | None = None
        self.temporal_up = False

    def collect(self) -> Iterable[Metric]:
        """All of them, for the scrape that goes on."""
        yield GaugeMetricFamily(
            "orders_database_up", "1 when the database answered this scrape.", self.backlog is not None
        )
        yield GaugeMetricFamily("orders_temporal_up", "1 when Temporal answered this scrape.", self.temporal_up)
        if self.backlog is not None:
            yield from _waiting(self.backlog)
            yield from _happened(self.backlog.totals)


def _waiting(backlog: Backlog) -> Iterable[Metric]:
    yield _gauge("orders_by_status", "Orders that are not closed.", ["status"], backlog.orders)
    parked = ["step", "kind"]
    yield _gauge("orders_review_items_open", "What is parked.", parked, backlog.parked)
    yield _gauge("orders_review_items_oldest_seconds", "Age of the oldest park.", parked, backlog.parked_ages)
    inbox = list({**_NO_EVENTS, **{tuple(labels): count for labels, count in backlog.inbox}}.items())
    yield _gauge("orders_webhook_inbox", "Webhook events that are not settled.", ["source", "state"], inbox)
    yield _gauge("orders_refunds_open", "Refunds without the provider's last word.", ["status"], backlog.refunds)
    yield _gauge("orders_refunds_oldest_seconds", "Age of the oldest of them.", ["status"], backlog.refund_ages)
    yield _gauge("orders_holds", "1 while an operator holds the party.", ["party"], backlog.holds)
    findings = "What the last run of the reconciliation found."
    yield _gauge("orders_reconciliation_findings", findings, ["run", "finding", "decides"], backlog.findings)
    yield _gauge("orders_reconciliation_age_seconds", "Since the last finished run.", ["run"], backlog.runs)
    yield GaugeMetricFamily(
        "orders_outbox_oldest_submitted_seconds",
        "Age of the oldest accepted order whose workflow is not started.",
        backlog.oldest_submitted_seconds,
    )
    yield GaugeMetricFamily(
        "orders_webhook_inbox_oldest_waiting_seconds",
        "Age of the oldest webhook event that waits for delivery.",
        backlog.oldest_waiting_seconds,
    )


def _happened(totals: Totals) -> Iterable[Metric]:
    yield CounterMetricFamily("orders_accepted", "Orders accepted.", totals.accepted)
    yield _counter("orders_ended", "Orders by how they ended.", ["status", "reason"], totals.ended)
    unknown = {**dict.fromkeys(_ASKED, 0), **totals.unknown}
    yield _counter("orders_unknown_outcomes", "Effects whose outcome became unknown.", ["step"], _rows(unknown))
    resolved = "Unknown outcomes that are known now, and what they were."
    yield _counter("orders_unknown_outcomes_resolved", resolved, ["step", "outcome"], totals.resolved)
    still = {step: count - _sum_of(totals.resolved, step) for step, count in unknown.items()}
    yield _gauge("orders_unknown_outcomes_open", "Unknown outcomes that still are.", ["step"], _rows(still))
    late = {**dict.fromkeys(_MOVEMENTS, 0), **totals.late_money}
    yield _counter("orders_late_money", "Movements of money on orders that had not happened.", ["kind"], _rows(late))
    reached = accumulate(totals.confirmed_within)
    bounds = [*(str(float(bound)) for bound in BOUNDS), "+Inf"]
    yield HistogramMetricFamily(
        "orders_confirmed_seconds",
        "From acceptance to confirmation.",
        buckets=list(zip(bounds, reached, strict=True)),
        sum_value=totals.confirmed_seconds,
    )


def _rows(counts: Mapping[str, float]) -> Counts:
    return [((label,), count) for label, count in counts.items()]


def _sum_of(rows: Counts, label: str) -> float:
    return sum(count for labels, count in rows if labels[0] == label)


def _gauge(name: str, text: str, labels: Sequence[str], rows: Counts) -> Metric:
    family = GaugeMetricFamily(name, text, labels=labels)
    for values, count in rows:
        family.add_metric(values, count)
    return family


def _counter(name: str, text: str, labels: Sequence[str], rows: Counts) -> Metric:
    family = CounterMetricFamily(name, text, labels=labels)
    for values, count in rows:
        family.add_metric(values, count)
    return family
