"""What an order's end means to whoever waited for it."""

import pytest

from domain.order import OrderStatus
from terminal.follow import exit_code, is_over
from terminal.many import Batch

S = OrderStatus


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (S.CONFIRMED, 0),
        (S.CANCELLED_COMPENSATED, 3),
        (S.REJECTED, 3),
        (S.REFUNDED, 3),
        (S.NEEDS_REVIEW, 4),
        (S.PENDING, 5),
        (S.AWAITING_REVIEW, 5),
        (S.AWAITING_PAYMENT, 5),
        (S.COMPENSATING, 5),
    ],
)
def test_every_status_has_its_exit_code(status: OrderStatus, code: int) -> None:
    assert exit_code(status) == code
    assert is_over(status) == (code != 5)


def test_of_many_orders_the_highest_code_counts() -> None:
    batch = Batch(3, status={"a": S.CONFIRMED, "b": S.NEEDS_REVIEW, "c": S.REJECTED})
    assert batch.exit_code() == 4
    assert Batch(0).exit_code() == 0
