"""Tracing with OpenTelemetry. Imported only while it is on (`runtime.tracing`)."""

import hashlib
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.trace import NonRecordingSpan, SpanContext, SpanKind, Status, StatusCode, TraceFlags

#: Spans of traces that are not kept wait here in case they are: about 2 KB each.
MOST_WAITING_SPANS = 20_000
#: An order that is undone later than this after a step of it lost that step's spans.
WAITING_SECONDS = 3600.0
#: Orders whose traces are known to be kept.
MOST_KEPT = 20_000

_root_of: ContextVar[str | None] = ContextVar("root_of", default=None)


def trace_id_of(order_id: str) -> int:
    """The id of an order's trace."""
    return int.from_bytes(_digest(order_id)[:16])


def root_span_id_of(order_id: str) -> int:
    """The id of the first span of an order's trace."""
    return int.from_bytes(_digest(order_id)[16:24])


def _digest(order_id: str) -> bytes:
    return hashlib.sha256(f"trace\0{order_id}".encode()).digest()


class OrderIds(RandomIdGenerator):
    """Random ids, but those of an order's root span."""

    def generate_trace_id(self) -> int:
        """The order's own while its root span is made."""
        order_id = _root_of.get()
        return trace_id_of(order_id) if order_id else super().generate_trace_id()

    def generate_span_id(self) -> int:
        """The order's own while its root span is made."""
        order_id = _root_of.get()
        return root_span_id_of(order_id) if order_id else super().generate_span_id()


class OrderTracer:
    """Makes the spans (`adapters.tracing.Tracer`)."""

    def __init__(self) -> None:
        self._tracer = trace.get_tracer("orders")

    @contextmanager
    def order(self, order_id: str) -> Iterator[None]:
        """What is inside belongs to the order's trace, below its root."""
        root = SpanContext(trace_id_of(order_id), root_span_id_of(order_id), True, TraceFlags(TraceFlags.SAMPLED))
        if trace.get_current_span().get_span_context().trace_id == root.trace_id:
            yield
            return
        token = otel_context.attach(trace.set_span_in_context(NonRecordingSpan(root)))
        try:
            yield
        finally:
            otel_context.detach(token)

    @contextmanager
    def span(self, name: str, attributes: dict[str, str | int]) -> Iterator[None]:
        """One span. Of an exception only its class is told: its text may be anything."""
        with self._tracer.start_as_current_span(
            name, attributes=attributes, record_exception=False, set_status_on_exception=False
        ) as one:
            try:
                yield
            except BaseException as error:
                one.set_status(Status(StatusCode.ERROR, type(error).__name__))
                raise

    def note(self, attributes: dict[str, str | int]) -> None:
        """Adds to the current span."""
        trace.get_current_span().set_attributes(attributes)

    def accepted(self, order_id: str, began_ns: int) -> None:
        """The root span."""
        token = _root_of.set(order_id)
        try:
            self._tracer.start_span(
                "accept_order",
                context=otel_context.Context(),
                kind=SpanKind.SERVER,
                attributes={"order_id": order_id},
                start_time=began_ns,
            ).end()
        finally:
            _root_of.reset(token)


class KeptTraces(SpanProcessor):
    """Passes on the spans of a share of all traces, and of all that are marked, also after the fact.

    The share is decided by the trace's id, so that every process decides alike.
    """

    def __init__(self, next_one: SpanProcessor, share: float) -> None:
        self._next = next_one
        self._limit = round(share * 2**64)
        self._waiting: OrderedDict[int, tuple[float, list[ReadableSpan]]] = OrderedDict()
        self._count = 0
        self._kept: OrderedDict[int, None] = OrderedDict()
        self._lock = threading.Lock()

    def keep(self, order_id: str) -> None:
        """Passes on what waits of this order's trace, and what will come."""
        trace_id = trace_id_of(order_id)
        with self._lock:
            self._kept[trace_id] = None
            while len(self._kept) > MOST_KEPT:
                self._kept.popitem(last=False)
            _, spans = self._waiting.pop(trace_id, (0.0, []))
            self._count -= len(spans)
        for one in spans:
            self._next.on_end(one)

    def on_start(self, span: Span, parent_context: otel_context.Context | None = None) -> None:
        """Told on."""
        self._next.on_start(span, parent_context)

    def on_end(self, span: ReadableSpan) -> None:
        """Passes the span on, or lets it wait for the mark."""
        told = span.get_span_context()
        if told is None:
            return
        with self._lock:
            passed = told.trace_id in self._kept or told.trace_id & (2**64 - 1) < self._limit
            if not passed:
                self._wait(told.trace_id, span)
        if passed:
            self._next.on_end(span)

    def _wait(self, trace_id: int, span: ReadableSpan) -> None:
        now = time.monotonic()
        self._waiting.setdefault(trace_id, (now, []))[1].append(span)
        self._count += 1
        while self._waiting:
            began, spans = next(iter(self._waiting.values()))
            if self._count <= MOST_WAITING_SPANS and now - began < WAITING_SECONDS:
                break
            self._waiting.popitem(last=False)
            self._count -= len(spans)

    def shutdown(self) -> None:
        """Ends the next one, which passes on what it has."""
        self._next.shutdown()

    def force_flush(self, timeout_millis: int = 30000) -> bool:
        """Has the next one pass on what it has."""
        return self._next.force_flush(timeout_millis)
