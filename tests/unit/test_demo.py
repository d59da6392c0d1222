"""The demo says what is not as it should be, and only that."""

import io
from datetime import UTC, datetime
from pathlib import Path

import pytest
from rich.console import Console

from demo.__main__ import _say_where_to_look
from demo.cases import CASES, POINTS, STORE_CREDIT, Case
from demo.run import Running
from domain.order import CancelReason, OrderStatus
from domain.views import OrderView, PaymentSummary
from runtime.settings import load_settings


def ended(case: Case, status: OrderStatus, reason: CancelReason | None) -> Running:
    """An order of the demo that ended so, with books that fit the case."""
    at = datetime(2026, 11, 30, tzinfo=UTC)
    running = Running(case, "c", "k", stock_before=5, kept=case.kept, intents=case.intents, parcels=case.parcels)
    running.stock_after = 5 - (case.quantity if case.sold else 0)
    running.points_after = POINTS - (case.points if case.sold else 0)
    running.credit_after = STORE_CREDIT - (case.store_credit if case.sold else 0)
    running.view = OrderView(
        order_id=running.order_id,
        customer_id="c",
        status=status,
        reason=reason,
        message="",
        currency="EUR",
        total=0,
        amount_due=0,
        lines=[],
        payment=PaymentSummary(),
        shipments=[],
        needs_review=[],
        created_at=at,
        updated_at=at,
    )
    return running


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_an_order_that_ended_as_it_should_has_no_differences(case: Case) -> None:
    assert ended(case, case.status, case.reason).differences() == []


def test_another_end_is_told() -> None:
    running = ended(CASES[0], OrderStatus.REJECTED, CancelReason.UNKNOWN_SKU)
    assert running.differences() == ["status is REJECTED, not CONFIRMED", "reason is UNKNOWN_SKU, not None"]


def test_money_stock_and_points_that_do_not_fit_are_told() -> None:
    case = next(case for case in CASES if case.name == "declined")
    running = ended(case, case.status, case.reason)
    running.kept, running.held, running.stock_after, running.points_after = 2000, 2000, 4, 300
    assert [difference.split(" is ")[0] for difference in running.differences()] == [
        "kept at the gateway",
        "held at the gateway",
        "stock",
        "points",
    ]


def test_an_order_that_never_answered_is_a_difference() -> None:
    assert Running(CASES[0], "c", "k").differences()[0] == "status is None, not CONFIRMED"


def test_every_kind_of_order_is_there_once() -> None:
    assert len({case.name for case in CASES}) == len(CASES) == 8
    assert {case.reason for case in CASES if not case.sold} == {
        CancelReason.CARD_DECLINED,
        CancelReason.OUT_OF_STOCK,
        CancelReason.NO_SERVICE_TO_ADDRESS,
        CancelReason.CANCELLED_BY_CUSTOMER,
    }


def test_who_looks_at_the_demo_afterwards_is_told_which_home_it_takes(tmp_path: Path) -> None:
    written = io.StringIO()
    _say_where_to_look(Console(file=written), tmp_path, [], load_settings(from_stack=False))
    assert f"ORDERS_HOME={tmp_path} make up" in written.getvalue()
    assert "with the same ORDERS_HOME for starter.py and make down" in written.getvalue()
