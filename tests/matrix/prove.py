"""Whether an order's end is one that its case allows, and whether every book agrees with it."""

from collections import defaultdict

from domain.keys import UNDO_OF, Step
from domain.messages import OrderResult
from domain.order import OrderStatus
from tests.baskets import Basket
from tests.matrix.cancels import Cancels
from tests.matrix.dimensions import Case, Place, Word
from tests.matrix.expect import Expected, cancel_counts, expect, moment_turn
from tests.shop import Shop

#: Of an order over 50.00 that is paid in three ways: 5.00 in points, 10.00 of store credit.
BY_CARD = 3500


async def prove(shop: Shop, case: Case, basket: Basket, result: OrderResult, cancels: Cancels) -> None:
    """Raises AssertionError with what does not fit."""
    expected = expect(case, cancel_sent=cancels.sent)
    if case.moment is None or case.moment.place != Place(Step.READ_PAYMENT):
        # An authorization that had to be asked twice may have the money at once, and then nothing is read.
        assert cancels.sent is (case.moment is not None)
    assert (result.status, result.reason) in expected.endings
    _check_answers(case, expected, cancels)
    await _check_parks(shop, basket, expected)
    if case.word is Word.SKIP and case.undo is not None:
        await _check_waived(shop, basket, case.undo)
    elif result.status is OrderStatus.CONFIRMED:
        await shop.assert_clean(basket, basket.order_id, captured=BY_CARD, points=0, credit=0)
    else:
        assert result.reason is not None
        await shop.assert_undone(basket, basket.order_id, result.reason.value)
    await _check_stamps(shop, basket.order_id, sold=result.status is OrderStatus.CONFIRMED)


def _check_answers(case: Case, expected: Expected, cancels: Cancels) -> None:
    """Accepted means undone, too late means confirmed or undone for a reason of its own."""
    accepted = cancel_counts(case) or moment_turn(case) > max(9, 0)
    assert set(cancels.answers) <= {202 if accepted else 409}, (cancels.answers, expected)


async def _check_parks(shop: Shop, basket: Basket, expected: Expected) -> None:
    items = await shop.reviews(basket.order_id)
    assert [item for item in items if item.closed_at is None] == []
    parks = {(item.step, item.kind) for item in items}
    assert expected.must_park <= parks
    assert parks <= expected.must_park | expected.may_park


async def _check_waived(shop: Shop, basket: Basket, undo: Step) -> None:
    """An operator let one undo go: it is told by name, and nothing else is missing."""
    view = await shop.view(basket.order_id)
    assert (view.status, view.needs_review) == (OrderStatus.CANCELLED_COMPENSATED, [])
    waived = {line.step for line in await shop.timeline(basket.order_id) if line.state == "waived"}
    assert waived == {undo.value}


async def _check_stamps(shop: Shop, order_id: str, *, sold: bool) -> None:
    states: dict[str, set[str]] = defaultdict(set)
    for line in await shop.timeline(order_id):
        states[line.step].add(line.state)
    if sold:
        done = {Step.OPEN_ORDER, *UNDO_OF, Step.CAPTURE_PAYMENT, Step.CONFIRM_ORDER, Step.COMMIT_STOCK}
        assert {step for step in done if "done" not in states[step.value]} == set()
        assert {step for step in UNDO_OF if "undone" in states[step.value]} == set()
    else:
        assert "done" not in states[Step.CONFIRM_ORDER.value] | states[Step.COMMIT_STOCK.value]
        waived = {step for step, found in states.items() if "waived" in found}
        left = {
            step
            for step, undo in UNDO_OF.items()
            if states[step.value] and "undone" not in states[step.value] and undo.value not in waived
        }
        assert left == set()
