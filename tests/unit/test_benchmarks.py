"""What the benchmark tells, and when it says that something is wrong."""

import os
import subprocess
import sys
from collections import Counter
from io import StringIO

from rich.console import Console

from benchmarks.__main__ import percentiles, told_as_good
from benchmarks.load import Load
from benchmarks.processes import PROC, usage
from domain.books import Books, Failure, LineKind, LineResult

BUSY = "import time\nwhile time.process_time() < 0.3: pass\nprint(flush=True); input()"


def _books(*failures: Failure) -> Books:
    line = LineResult("stock", LineKind.ALWAYS, checked=1, failed=len(failures), failures=failures)
    return Books((line,), (), ())


def _load(**statuses: int) -> Load:
    return Load(count=2, confirming=[0.1] * statuses.get("CONFIRMED", 0), statuses=Counter(statuses))


def _verdict(load: Load, books: Books) -> tuple[bool, str]:
    out = StringIO()
    return told_as_good(Console(file=out, width=200), load, books), out.getvalue()


def test_books_that_do_not_hold_are_told_and_spoil_the_result() -> None:
    good, told = _verdict(_load(CONFIRMED=2), _books(Failure("o-1", "one piece is gone")))
    assert not good
    assert "FAILS stock: o-1: one piece is gone" in told
    assert _verdict(_load(CONFIRMED=2), _books())[0]


def test_an_order_that_was_not_confirmed_is_told_and_spoils_the_result() -> None:
    good, told = _verdict(_load(CONFIRMED=1, AWAITING_PAYMENT=1), _books())
    assert not good
    assert "1 orders ended, or stand, AWAITING_PAYMENT" in told


def test_percentiles_are_times_that_an_order_really_took() -> None:
    assert percentiles([0.3, 0.1, 0.2, 0.4], (50, 95, 99), scale=1000) == "p50 200.00  p95 400.00  p99 400.00"
    assert percentiles([0.5], (50,)) == "p50 0.50"
    assert percentiles([], (50,)) == "–"


def test_what_a_part_uses_is_its_own_and_not_its_starters() -> None:
    nested = [sys.executable, "-c", f"import subprocess, sys; subprocess.run([sys.executable, '-c', {BUSY!r}])"]
    with subprocess.Popen(nested, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as part:  # noqa: S603
        assert part.stdin
        assert part.stdout
        part.stdout.readline()
        found = usage({"part": part.pid, "us": os.getpid()})
        alone = usage({"us": os.getpid()})
        part.communicate(b"\n")
    if not PROC.exists():
        assert (found, alone) == ({}, {})
        return
    assert found["part"].cpu_ms >= 290
    assert found["part"].memory_mb > 1
    assert alone["us"].cpu_ms >= found["us"].cpu_ms + 290
