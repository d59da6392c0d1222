"""The tables of guards stay true: each guard is where its table says, and the test that misses it exists."""

import importlib
import re
from pathlib import Path

from tests.commands import ROOT
from tests.guards.removal import Removal
from tests.unit.test_failure_table import names_in

TABLES = sorted((Path(__file__).parents[1] / "guards").glob("test_*.py"))
PROOF = re.compile(r"(tests/[\w/]+\.py)::(\w+)(\[.+\])?")


def all_removals() -> list[Removal]:
    """Those of all tables."""
    tables = [importlib.import_module(f"tests.guards.{path.stem}") for path in TABLES]
    return [removal for table in tables for removal in table.REMOVALS]


def test_every_guard_is_in_one_place_and_can_be_taken_out() -> None:
    for removal in all_removals():
        source = (ROOT / removal.file).read_text(encoding="utf-8")
        without = removal.taken_out_of(source)
        assert without != source, removal.name
        compile(without, removal.file, "exec")


def test_every_guard_names_a_test_that_exists() -> None:
    missing = []
    for removal in all_removals():
        named = PROOF.fullmatch(removal.proof)
        if named is None or named[2] not in names_in(named[1]):
            missing.append(removal.proof)
    assert missing == []


def test_no_two_guards_have_one_name() -> None:
    names = [removal.name for removal in all_removals()]
    assert sorted(set(names)) == sorted(names)
