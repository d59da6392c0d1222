"""From which warehouses an order is served."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from domain.allocation import Allocation, allocate

SKUS = st.sampled_from("ABCD")
WAREHOUSES = st.sampled_from(["berlin", "lyon", "porto"])
BASKETS = st.dictionaries(SKUS, st.integers(1, 9), min_size=1)
SHELVES = st.dictionaries(SKUS, st.dictionaries(WAREHOUSES, st.integers(0, 9)))


def test_a_warehouse_that_has_everything_serves_alone() -> None:
    shelves = {"A": {"berlin": 1, "porto": 2}, "B": {"berlin": 9, "lyon": 9, "porto": 2}}
    assert allocate({"A": 2, "B": 2}, shelves) == (Allocation("A", "porto", 2), Allocation("B", "porto", 2))


def test_among_equals_the_first_by_name_serves() -> None:
    assert allocate({"A": 1}, {"A": {"porto": 9, "berlin": 1}}) == (Allocation("A", "berlin", 1),)


def test_a_sku_comes_from_a_warehouse_that_sends_a_parcel_anyway() -> None:
    shelves = {"A": {"porto": 1}, "B": {"berlin": 1, "porto": 1}, "C": {"lyon": 1}}
    assert allocate({"A": 1, "B": 1, "C": 1}, shelves) == (
        Allocation("A", "porto", 1),
        Allocation("B", "porto", 1),
        Allocation("C", "lyon", 1),
    )


def test_a_sku_that_no_warehouse_has_whole_is_split_from_the_fullest_on() -> None:
    assert allocate({"A": 6}, {"A": {"berlin": 1, "lyon": 3, "porto": 4}}) == (
        Allocation("A", "porto", 4),
        Allocation("A", "lyon", 2),
    )


def test_one_piece_too_few_of_one_sku_serves_nothing() -> None:
    assert allocate({"A": 1, "B": 3}, {"A": {"berlin": 9}, "B": {"berlin": 1, "lyon": 1}}) is None
    assert allocate({"A": 1}, {}) is None


@given(BASKETS, SHELVES)
def test_every_piece_is_served_from_a_shelf_that_has_it_or_none_is(
    basket: dict[str, int], shelves: dict[str, dict[str, int]]
) -> None:
    plan = allocate(basket, shelves)
    enough = all(sum(shelves.get(sku, {}).values()) >= pieces for sku, pieces in basket.items())
    assert (plan is not None) == enough
    served: Counter[str] = Counter()
    for part in plan or ():
        assert 0 < part.quantity <= shelves[part.sku][part.warehouse]
        served[part.sku] += part.quantity
    assert served == (basket if enough else {})
    assert len({(part.sku, part.warehouse) for part in plan or ()}) == len(plan or ())


@given(BASKETS, SHELVES)
def test_the_same_stock_gives_the_same_answer_in_any_order(
    basket: dict[str, int], shelves: dict[str, dict[str, int]]
) -> None:
    turned = {sku: dict(reversed(there.items())) for sku, there in reversed(shelves.items())}
    assert allocate(dict(reversed(basket.items())), turned) == allocate(basket, shelves)
