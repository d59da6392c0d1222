"""docs/failure-table.md tells only what a test proves."""

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
TABLE = ROOT / "docs" / "failure-table.md"
PROOF = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
CELLS = 6


def rows() -> list[str]:
    """The table's lines without its heads."""
    lines = [line for line in TABLE.read_text(encoding="utf-8").splitlines() if line.startswith("|")]
    return [line for line in lines if not line.startswith(("| step |", "|---"))]


@cache
def names_in(file: str) -> frozenset[str]:
    """Names of the test functions of a file."""
    module = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return frozenset(
        node.name for node in ast.walk(module) if isinstance(node, kinds) and node.name.startswith("test_")
    )


def test_every_row_names_tests_that_exist() -> None:
    missing = []
    for row in rows():
        proofs = PROOF.findall(row)
        assert proofs, f"no proof: {row}"
        missing += [
            f"{file}::{name}" for file, name in proofs if not (ROOT / file).exists() or name not in names_in(file)
        ]
    assert missing == []


def test_every_row_fills_every_column() -> None:
    for row in rows():
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        assert len(cells) == CELLS, row
        assert all(cells), row


def test_every_part_of_the_saga_has_rows() -> None:
    parts = TABLE.read_text(encoding="utf-8").split("\n## ")[1:]
    assert [part.split("\n")[0] for part in parts if part.count("\n|") <= 2] == []
