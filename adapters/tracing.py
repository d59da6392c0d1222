"""Spans of orders, while tracing is on; while it is off, nothing: not even OpenTelemetry is imported.

Every order has one trace, whose id follows from the order's id: whoever knows the order joins its trace.
"""

from contextlib import AbstractContextManager, nullcontext
from typing import Protocol


class Tracer(Protocol):
    """What makes spans. Attributes are ids, names and numbers, never anything about a person."""

    def order(self, order_id: str) -> AbstractContextManager[None]: ...
    def span(self, name: str, attributes: dict[str, str | int]) -> AbstractContextManager[None]: ...
    def note(self, attributes: dict[str, str | int]) -> None: ...
    def accepted(self, order_id: str, began_ns: int) -> None: ...


class _InUse:
    tracer: Tracer | None = None


def use(tracer: Tracer | None) -> None:
    """From now on this process traces with it, or with None not at all."""
    _InUse.tracer = tracer


def is_on() -> bool:
    """Whether this process traces."""
    return _InUse.tracer is not None


def in_trace_of(order_id: str | None) -> AbstractContextManager[None]:
    """What happens inside belongs to this order's trace."""
    return _InUse.tracer.order(order_id) if _InUse.tracer and order_id else nullcontext()


def span(name: str, **attributes: str | int) -> AbstractContextManager[None]:
    """One span around what happens inside; an exception leaves its class in it, and goes on."""
    return _InUse.tracer.span(name, attributes) if _InUse.tracer else nullcontext()


def note(**attributes: str | int) -> None:
    """Adds to the span that we are in."""
    if _InUse.tracer:
        _InUse.tracer.note(attributes)


def trace_accepted(order_id: str, began_ns: int) -> None:
    """The order's first span, the root of its trace: its acceptance, which has just ended. Once an order."""
    if _InUse.tracer:
        _InUse.tracer.accepted(order_id, began_ns)
