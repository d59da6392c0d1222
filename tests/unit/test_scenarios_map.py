"""docs/scenarios.md tells of every scenario, and names exactly the tests that say they prove it."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
TABLE = ROOT / "docs" / "scenarios.md"
PROOF = re.compile(r"`(tests/[\w/]+\.py::\w+)`")
ROW = re.compile(r"\| (S\d{2,3}) \|")
#: What a docstring begins with: S21, or S21, S22.
PROVES = re.compile(r"S\d{2,3}(?:, S\d{2,3})*")

#: The numbers have gaps.
SCENARIOS = [
    *("S01", "S03", "S04", "S05", "S08", "S09", "S10", "S12", "S15", "S16", "S18", "S20", "S21", "S22", "S23", "S24"),
    *("S27", "S29", "S30", "S32", "S33", "S34", "S36", "S39", "S40", "S42", "S44", "S45", "S46", "S48", "S49", "S51"),
    *("S53", "S55", "S58", "S60", "S62", "S63", "S65", "S67", "S68", "S70", "S72", "S73", "S75", "S77", "S78", "S80"),
    *("S81", "S82", "S83", "S85", "S87", "S88", "S91", "S94", "S95", "S96", "S100"),
]


def rows() -> dict[str, str]:
    """Each scenario's row."""
    lines = TABLE.read_text(encoding="utf-8").splitlines()
    return {found.group(1): line for line in lines if (found := ROW.match(line))}


def proofs() -> dict[str, set[str]]:
    """The tests whose docstrings begin with a scenario's number."""
    found: dict[str, set[str]] = {}
    for file in sorted((ROOT / "tests").rglob("test_*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or not node.name.startswith("test_"):
                continue
            begins = PROVES.match(ast.get_docstring(node) or "")
            for number in begins.group().split(", ") if begins else []:
                found.setdefault(number, set()).add(f"{file.relative_to(ROOT)}::{node.name}")
    return found


def test_every_scenario_has_a_row_in_the_order_of_the_numbers() -> None:
    assert list(rows()) == SCENARIOS


def test_a_row_names_the_tests_that_prove_it_and_no_others() -> None:
    told = {number: set(PROOF.findall(row)) for number, row in rows().items()}
    assert {number: tests for number, tests in told.items() if tests} == proofs()


def test_a_row_without_a_test_says_why() -> None:
    unexplained = [
        number for number, row in rows().items() if not PROOF.search(row) and not re.search(r"later|not yet", row)
    ]
    assert unexplained == []
