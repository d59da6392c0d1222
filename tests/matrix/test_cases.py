"""The matrix is as large as it says, each of its cases is told by the failure table, and the sample is part of it."""

import re
from itertools import combinations, product
from pathlib import Path

from domain.keys import PARKING, UNDO_OF
from tests.matrix.cases import SAMPLE, all_cases, sample
from tests.matrix.dimensions import FORWARD, Caller, Fault, Payment, possible
from tests.matrix.expect import expect
from tests.matrix.pairs import cover_pairs
from tests.matrix.table import rows_of

ROOT = Path(__file__).parents[2]
TABLE = ROOT / "docs" / "failure-table.md"
PARKS = ROOT / "docs" / "parks.md"
FEWEST = 1500


def test_the_failure_table_tells_what_the_cases_prove_and_nothing_else() -> None:
    lines = [line for line in TABLE.read_text(encoding="utf-8").splitlines() if line.endswith(", matrix |")]
    told = {tuple(cell.strip() for cell in line.split("|")[1:3]) for line in lines}
    assert {row for case in all_cases() for row in rows_of(case)} == told


def test_the_list_of_parks_is_whole_and_names_a_case_that_reaches_each() -> None:
    """The parks that the saga can have: others are proved beside the matrix and stand in the same list."""
    told: dict[tuple[str, str], list[str]] = {}
    for line in PARKS.read_text(encoding="utf-8").splitlines():
        if line.startswith("| `"):
            step, kind, _, proof = (cell.strip().strip("`") for cell in line.split("|")[1:5])
            told.setdefault((step, kind), []).extend(re.findall(r"`([^`]+)`", f"`{proof}`"))
    reached: dict[tuple[str, str], set[str]] = {}
    for case in all_cases():
        for park in expect(case, cancel_sent=case.caller is not None).must_park:
            reached.setdefault(park, set()).add(str(case))
    assert {park for park, names in reached.items() if names.isdisjoint(told.get(park, []))} == set()
    parking = {step.value for step in PARKING}
    assert parking - {step for step, _ in told} == set()
    cases = {str(case) for case in all_cases()}
    assert [name for names in told.values() for name in names if "/" not in name and name not in cases] == []
    tests = [name for names in told.values() for name in names if name.startswith("tests/")]
    assert [name for name in tests if f"def {name.split('::')[1]}(" not in _source(name)] == []


def _source(test: str) -> str:
    return (ROOT / test.split("::", maxsplit=1)[0]).read_text(encoding="utf-8")


def test_there_are_enough_cases_beside_those_of_the_sample_and_each_has_a_name_of_its_own() -> None:
    assert len(all_cases()) - SAMPLE >= FEWEST
    assert len({str(case) for case in all_cases()}) == len(all_cases())
    assert len(sample()) == SAMPLE


def test_every_fault_of_every_step_and_undo_is_there_alone() -> None:
    alone = {
        (case.place.step if case.place else case.undo, case.fault or case.undo_fault)
        for case in all_cases()
        if (case.place is None) != (case.undo is None) and case.caller is None
    }
    steps = {place.step for place in FORWARD} | set(UNDO_OF.values())
    assert {(step, fault) for step in steps for fault in Fault if possible(step, fault)} - alone == set()


def test_every_payment_meets_every_caller() -> None:
    met = {(case.payment, case.caller) for case in all_cases()}
    assert {(payment, caller) for payment in Payment for caller in Caller} - met == set()


def test_all_pairs_meet_in_far_fewer_rows_than_there_are() -> None:
    every = [row for row in product(range(5), repeat=4) if row[0] != row[1]]
    rows = cover_pairs(every, seed=1)
    for one, other in combinations(range(4), 2):
        assert {(row[one], row[other]) for row in rows} == {(row[one], row[other]) for row in every}
    assert len(rows) < len(every) / 8
