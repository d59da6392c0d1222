"""The one table of allowed changes: forward only, and parking covers a stage without losing it."""

from hypothesis import given
from hypothesis import strategies as st

from domain.order import (
    ALLOWED,
    CLOSED_STATUSES,
    FORWARD,
    PARKABLE,
    SOLD_STATUSES,
    UNDONE_STATUSES,
    OrderStatus,
)

stages = st.sampled_from([status for status in OrderStatus if status is not OrderStatus.NEEDS_REVIEW])


@given(stages, st.lists(stages, max_size=12))
def test_no_sequence_of_moves_ever_returns_to_a_stage(start: OrderStatus, wishes: list[OrderStatus]) -> None:
    path = [start]
    for wish in wishes:
        if wish in FORWARD.get(path[-1], frozenset()):
            path.append(wish)
    assert len(path) == len(set(path))


@given(stages, st.lists(stages, max_size=12))
def test_an_order_that_was_undone_is_never_sold_and_the_other_way_round(
    start: OrderStatus, wishes: list[OrderStatus]
) -> None:
    path = {start}
    stage = start
    for wish in wishes:
        stage = wish if wish in FORWARD.get(stage, frozenset()) else stage
        path.add(stage)
    assert not (path & SOLD_STATUSES and path & UNDONE_STATUSES)


def test_every_open_stage_can_reach_an_end() -> None:
    reaches = set(CLOSED_STATUSES)
    while more := {stage for stage, nexts in FORWARD.items() if nexts & reaches} - reaches:
        reaches |= more
    assert reaches == set(OrderStatus) - {OrderStatus.NEEDS_REVIEW}


@given(st.sampled_from(sorted(PARKABLE)))
def test_a_parked_stage_returns_to_itself_or_moves_on(stage: OrderStatus) -> None:
    assert (stage, OrderStatus.NEEDS_REVIEW) in ALLOWED
    assert {(OrderStatus.NEEDS_REVIEW, later) for later in {stage, *FORWARD[stage]}} <= ALLOWED


@given(st.sampled_from(sorted(CLOSED_STATUSES)))
def test_a_closed_order_is_never_covered_by_a_review(status: OrderStatus) -> None:
    assert (status, OrderStatus.NEEDS_REVIEW) not in ALLOWED
