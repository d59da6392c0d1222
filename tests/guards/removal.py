"""A guard that is taken out of a copy of the project, and the test that has to miss it."""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.commands import ROOT

#: What a copy does without. It has the compiled modules, which Python takes by the time and size of their source.
LEFT_OUT = shutil.ignore_patterns(".git", ".venv", ".local", ".env", ".*_cache", ".hypothesis", "histories", "pictures")
#: Far above what one test may need on a busy machine.
PROOF_SECONDS = 120
LIMIT_SECONDS = 300

#: For every file of removals.
MARKS = [pytest.mark.long, pytest.mark.timeout(LIMIT_SECONDS + 60)]


@dataclass(frozen=True)
class Removal:
    """One guard: what it is, what it is good against, the one place `old` that makes it, and what stands there without.

    `proof` is the test that misses it: its whole id, with the square brackets of one case.
    """

    name: str
    against: str
    file: str
    old: str
    new: str
    proof: str

    def taken_out_of(self, source: str) -> str:
        """The file's text without the guard. Fails where the guard is not found, or in several places."""
        assert source.count(self.old) == 1, f"{self.file} has {source.count(self.old)} of: {self.old}"
        return source.replace(self.old, self.new)


def each(removals: Sequence[Removal]) -> pytest.MarkDecorator:
    """One long test a removal, named by its guard."""
    return pytest.mark.parametrize("removal", removals, ids=[removal.name for removal in removals])


def assert_missed(removal: Removal, copy: Path) -> None:
    """Fails unless the proof runs and fails in a copy of the project that has all but this guard."""
    shutil.copytree(ROOT, copy, ignore=LEFT_OUT)
    source = copy / removal.file
    source.write_text(removal.taken_out_of(source.read_text(encoding="utf-8")), encoding="utf-8")
    code, told = run_test(removal.proof, copy)
    shutil.rmtree(copy)
    red = [line for line in told.splitlines() if line.startswith(f"FAILED {removal.proof}")]
    assert (code, len(red)) == (1, 1), f"{removal.proof} does not miss it, it ends with {code}:\n{told}"
    assert "from pytest-timeout" not in red[0], f"{removal.proof} hangs, which says little: {red[0]}"


def run_test(test: str, project: Path) -> tuple[int, str]:
    """Runs one test of a project as it is there: its exit code and what it prints, with a line `FAILED <test>`."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    options = ("-q", "-rfE", "--tb=short", "-p", "no:cacheprovider", "-p", "no:xdist", "-o", "addopts=--strict-markers")
    ran = subprocess.run(  # noqa: S603
        [sys.executable, "-m", "pytest", test, *options, f"--timeout={PROOF_SECONDS}"],
        cwd=project,
        env={**ours, "PYTHONDONTWRITEBYTECODE": "1", "COLUMNS": "400"},
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
        check=False,
    )
    return ran.returncode, ran.stdout + ran.stderr
