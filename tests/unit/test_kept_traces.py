"""Which traces leave a process, and how many spans wait for the word that theirs is to be kept."""

from dataclasses import dataclass, field

import pytest
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor
from opentelemetry.trace import SpanContext, TraceFlags

from runtime import spans
from runtime.spans import KeptTraces, root_span_id_of, trace_id_of


@dataclass
class Sent(SpanProcessor):
    """What is passed on."""

    names: list[str] = field(default_factory=list)

    def on_end(self, span: ReadableSpan) -> None:
        self.names.append(span.name)


def a_span(order_id: str, name: str = "step") -> ReadableSpan:
    context = SpanContext(trace_id_of(order_id), 1, False, TraceFlags(TraceFlags.SAMPLED))
    return ReadableSpan(f"{order_id} {name}", context)


def test_each_order_has_a_trace_of_its_own_that_every_process_knows() -> None:
    assert trace_id_of("o-1") == trace_id_of("o-1") != trace_id_of("o-2")
    assert 0 < trace_id_of("o-1") < 2**128
    assert 0 < root_span_id_of("o-1") < 2**64


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_about_that_share_of_all_orders_is_passed_on_at_once(share: float) -> None:
    sent = Sent()
    traces = KeptTraces(sent, share)
    for number in range(1000):
        traces.on_end(a_span(f"o-{number}"))
    assert len(sent.names) == pytest.approx(share * 1000, abs=60)
    assert {0.0: 0, 1.0: 1000}.get(share, len(sent.names)) == len(sent.names)


def test_a_marked_order_is_passed_on_with_what_it_did_before_and_does_after() -> None:
    sent = Sent()
    traces = KeptTraces(sent, 0)
    for name in ("before", "also before"):
        traces.on_end(a_span("o-1", name))
    traces.on_end(a_span("o-2"))
    assert sent.names == []
    traces.keep("o-1")
    traces.on_end(a_span("o-1", "after"))
    traces.keep("o-1")
    assert sent.names == ["o-1 before", "o-1 also before", "o-1 after"]


def test_when_too_many_spans_wait_the_oldest_traces_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spans, "MOST_WAITING_SPANS", 10)
    sent = Sent()
    traces = KeptTraces(sent, 0)
    for number in range(8):
        for name in ("one", "two"):
            traces.on_end(a_span(f"o-{number}", name))
    for number in range(8):
        traces.keep(f"o-{number}")
    assert sent.names == [f"o-{number} {name}" for number in range(3, 8) for name in ("one", "two")]


def test_what_has_waited_too_long_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spans, "WAITING_SECONDS", 0)
    sent = Sent()
    traces = KeptTraces(sent, 0)
    traces.on_end(a_span("o-1"))
    traces.keep("o-1")
    assert sent.names == []


def test_marks_are_forgotten_too_the_oldest_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spans, "MOST_KEPT", 2)
    sent = Sent()
    traces = KeptTraces(sent, 0)
    for number in range(3):
        traces.keep(f"o-{number}")
    for number in range(3):
        traces.on_end(a_span(f"o-{number}"))
    assert sent.names == ["o-1 step", "o-2 step"]
