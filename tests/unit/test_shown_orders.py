"""What the terminal tells about one order, for whoever has to act on it."""

import io
from datetime import UTC, datetime

from rich.console import Console

from domain.order import OrderStatus, ParkKind
from domain.views import NeedsReview, OrderView, PaymentSummary
from terminal.show import show_order

AT = datetime(2026, 11, 30, tzinfo=UTC)


def shown(*parked: NeedsReview) -> str:
    view = OrderView(
        order_id="o-1",
        customer_id="c",
        status=OrderStatus.NEEDS_REVIEW,
        reason=None,
        message="",
        currency="EUR",
        total=0,
        amount_due=0,
        lines=[],
        payment=PaymentSummary(),
        shipments=[],
        needs_review=list(parked),
        created_at=AT,
        updated_at=AT,
    )
    console = Console(file=io.StringIO(), width=200)
    show_order(console, view, [], "http://ui")
    written = console.file
    assert isinstance(written, io.StringIO)
    return written.getvalue()


def test_a_parked_order_names_the_command_that_says_what_to_do() -> None:
    parked = NeedsReview(step="cancel_shipment", item="berlin", kind=ParkKind.DECISION, error="X", since=AT)
    assert shown(parked).endswith("what to do about it: .venv/bin/python ops.py show o-1\n")


def test_an_order_that_is_not_parked_names_none() -> None:
    assert "what to do" not in shown()
