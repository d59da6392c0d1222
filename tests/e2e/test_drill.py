"""`make drill`: a shop that keeps its promise passes under evil, and one that lacks a guard is caught."""

import asyncio
import re
import shutil
import sys
from pathlib import Path

import pytest

from tests.commands import Ended, plain_environment
from tests.imports import ROOT

#: A drill's own patience is ten minutes; a busy machine needs most of it.
pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]

#: Each kind of order comes at least once, and the plan of this seed ends runs by force too.
ORDERS = 30
PUSHED = "        self._undo.push(Step.RELEASE_STOCK)\n"


async def drill(home: Path, tree: Path = ROOT) -> Ended:
    """`make drill` of a tree, with a small plan of evil."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "drill", "--orders", str(ORDERS), "--seed", "1", "--minutes", "0.5"),
        env={**plain_environment(home), "PYTHONPATH": str(tree)},
        cwd=tree,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        out, err = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
    assert process.returncode is not None
    return Ended(process.returncode, out.decode(), err.decode())


async def test_a_shop_under_evil_keeps_its_promise(tmp_path: Path) -> None:
    ended = await drill(tmp_path)
    assert ended.code == 0, ended.out
    last = ended.out.splitlines()[-1]
    assert re.fullmatch(
        rf"verdict: PASS accepted={ORDERS} confirmed=\d+ cancelled=\d+ parked=0 double=0 stranded=0 oversold=0", last
    )


async def test_a_shop_that_forgets_to_give_stock_back_fails_and_the_order_is_named(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns(".*", "__pycache__", "docs", "tests"))
    saga = tree / "workflows/order.py"
    text = saga.read_text()
    assert text.count(PUSHED) == 1
    saga.write_text(text.replace(PUSHED, ""))
    ended = await drill(tmp_path, tree)
    assert ended.code == 1, ended.out
    assert ended.out.splitlines()[-1].startswith(f"verdict: FAIL accepted={ORDERS} ")
    assert re.search(r"FAILS .*: [a-z2-7]{24}: ", ended.out)
