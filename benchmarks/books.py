"""How long it takes, and how much memory, to prove and to reconcile the books of an old shop."""

import asyncio
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from adapters.database import Database
from benchmarks.filled import OldShop
from benchmarks.processes import peak_memory_mb
from runtime.entry import EntryError
from runtime.parts import ROOT
from runtime.settings import Settings
from runtime.stack import Stack

#: The smaller books, beside which the memory of the large ones is told.
SHARE = 10
LOOK_SECONDS = 0.05


@dataclass(frozen=True)
class Spent:
    """One command: what it took from start to end, and the most memory that it held (0 where there is no /proc)."""

    seconds: float
    memory_mb: float


async def measure_books(settings: Settings, log: Path, orders: int) -> dict[str, Spent]:
    """Fills a stack of its own with closed orders, then proves and reconciles them, each as its own command.

    Raises EntryError when one of the commands finds something: the books agree.
    """
    with log.open("a") as told:
        async with Stack(settings, tell=lambda part, line: print(part, line, file=told), without=["api"]) as stack:
            database = Database(stack.settings.database_for("orders"), application="bench", pool_size=2)
            try:
                gateway, courier = stack.settings.stripe_api_base, stack.settings.courier_api_base
                await OldShop(database, gateway or "", courier or "").fill(orders)
            finally:
                await database.close()
            home = stack.settings.orders_home
            commands = {"ops.py prove": ("prove",), "ops.py reconcile --nightly": ("reconcile", "--nightly")}
            return {name: await _spend(home, log, *words) for name, words in commands.items()}


async def _spend(home: Path, log: Path, *words: str) -> Spent:
    began, peak = time.monotonic(), 0.0
    with log.open("a") as told:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, str(ROOT / "ops.py"), *words),
            env={**os.environ, "ORDERS_HOME": str(home)},
            stdout=told,
            stderr=told,
        )
    ending = asyncio.create_task(process.wait())
    while not (await asyncio.wait({ending}, timeout=LOOK_SECONDS))[0]:
        peak = max(peak, peak_memory_mb(process.pid))
    if code := ending.result():
        raise EntryError(f"`ops.py {' '.join(words)}` ended with {code}: {log} says why")
    return Spent(time.monotonic() - began, peak)


def show_books_spent(console: Console, measured: dict[int, dict[str, Spent]]) -> None:
    """One row a command and size of the books."""
    table = Table("command", "closed orders", "s", "memory at most, MB", box=None)
    for orders, commands in measured.items():
        for name, spent in commands.items():
            table.add_row(name, f"{orders:,}", f"{spent.seconds:.1f}", f"{spent.memory_mb:.0f}")
    console.print(table)
