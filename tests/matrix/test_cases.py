"""The matrix is as large as it says, each of its cases is told by the failure table, and the sample is part of it."""

from itertools import combinations
from pathlib import Path

from domain.keys import UNDO_OF
from tests.matrix.cases import SAMPLE, all_cases, sample
from tests.matrix.dimensions import FORWARD, Caller, Fault, Payment, possible
from tests.matrix.pairs import all_pairs
from tests.matrix.table import rows_of

TABLE = Path(__file__).parents[2] / "docs" / "failure-table.md"
FEWEST = 1500


def test_the_failure_table_tells_what_the_cases_prove_and_nothing_else() -> None:
    lines = [line for line in TABLE.read_text(encoding="utf-8").splitlines() if line.endswith(", matrix |")]
    told = {tuple(cell.strip() for cell in line.split("|")[1:3]) for line in lines}
    assert {row for case in all_cases() for row in rows_of(case)} == told


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
    dimensions = [range(5)] * 4
    rows = all_pairs(dimensions, lambda row: row[0] != row[1], seed=1)
    for one, other in combinations(range(4), 2):
        met = {(row[one], row[other]) for row in rows}
        wanted = {(a, b) for a in range(5) for b in range(5) if (one, other) != (0, 1) or a != b}
        assert met == wanted
    assert len(rows) < 5**4 / 10
