"""What the terminal tells about one order, for whoever has to act on it."""

import io
import json
import re
import shlex
from datetime import UTC, datetime

from rich.console import Console

from api.ops import RedriveRequest
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
    show_order(console, view, [], "http://ui", 8081)
    written = console.file
    assert isinstance(written, io.StringIO)
    return written.getvalue()


def test_a_parked_order_shows_the_request_that_the_operators_port_takes() -> None:
    parked = NeedsReview(step="cancel_shipment", item="berlin", kind=ParkKind.DECISION, error="X", since=AT)
    text = shown(parked)
    words = shlex.split(text[text.index("curl ") :])
    assert "http://127.0.0.1:8081/ops/orders/o-1/redrive" in words
    body = RedriveRequest.model_validate(json.loads(words[words.index("-d") + 1]))
    assert (body.step, body.item, body.action) == ("cancel_shipment", "berlin", "retry")


def test_an_order_that_is_not_parked_shows_none() -> None:
    assert not re.search("curl|redrive", shown())
