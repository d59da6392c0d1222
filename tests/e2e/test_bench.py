"""`make bench` from outside."""

import os
import sys
from asyncio import create_subprocess_exec, subprocess
from pathlib import Path

import pytest

from tests.commands import plain_environment

pytestmark = pytest.mark.timeout(240)


async def test_the_benchmark_confirms_its_orders_proves_the_books_and_leaves_nothing(tmp_path: Path) -> None:
    process = await create_subprocess_exec(
        *(sys.executable, "-m", "benchmarks", "--orders", "4", "--concurrency", "2"),
        env=plain_environment(tmp_path),
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    output = (await process.communicate())[0].decode()
    assert process.returncode == 0, output
    rows = {line[:21].strip(): line[21:].strip() for line in output.splitlines()}
    assert (rows["placed and accepted"], rows["confirmed"]) == ("4", "4")
    assert "lines hold" in output.splitlines()[-1]
    assert os.listdir(tmp_path) == []


@pytest.mark.long
async def test_the_books_of_an_old_shop_are_proven_and_reconciled_with_their_time_and_memory(tmp_path: Path) -> None:
    process = await create_subprocess_exec(
        *(sys.executable, "-m", "benchmarks", "--books", "200"),
        env=plain_environment(tmp_path),
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    output = (await process.communicate())[0].decode()
    assert process.returncode == 0, output
    rows = [line.split() for line in output.splitlines() if line.strip().startswith("ops.py")]
    assert [row[1] for row in rows] == ["prove", "reconcile"] * 2
    assert all(float(row[-2]) > 0 for row in rows)
    assert os.listdir(tmp_path) == []
