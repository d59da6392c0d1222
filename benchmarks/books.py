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
from runtime.entry import EntryError
from runtime.parts import ROOT
from runtime.settings import Settings
from runtime.stack import Stack

#: The smaller books, beside which the memory of the large ones is told.
SHARE = 10


@dataclass(frozen=True)
class Spent:
    """One command: what it took from start to end, and the most memory that it held."""

    seconds: float
    cpu_seconds: float
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
            return {name: await asyncio.to_thread(_spend, home, log, *words) for name, words in commands.items()}


def _spend(home: Path, log: Path, *words: str) -> Spent:
    began = time.monotonic()
    with log.open("a") as told:
        redirect = [(os.POSIX_SPAWN_DUP2, told.fileno(), 1), (os.POSIX_SPAWN_DUP2, told.fileno(), 2)]
        argv = [sys.executable, str(ROOT / "ops.py"), *words]
        pid = os.posix_spawn(sys.executable, argv, {**os.environ, "ORDERS_HOME": str(home)}, file_actions=redirect)
    _, status, used = os.wait4(pid, 0)
    if code := os.waitstatus_to_exitcode(status):
        raise EntryError(f"`ops.py {' '.join(words)}` ended with {code}: {log} says why")
    # ru_maxrss: kilobytes on Linux, bytes on macOS (getrusage(2) of each).
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return Spent(time.monotonic() - began, used.ru_utime + used.ru_stime, used.ru_maxrss / unit)


def show_books_spent(console: Console, measured: dict[int, dict[str, Spent]]) -> None:
    """One row a command and size of the books."""
    table = Table("command", "closed orders", "s", "CPU of the command, s", "its memory at most, MB", box=None)
    for orders, commands in measured.items():
        for name, spent in commands.items():
            numbers = (f"{spent.seconds:.1f}", f"{spent.cpu_seconds:.1f}", f"{spent.memory_mb:.0f}")
            table.add_row(name, f"{orders:,}", *numbers)
    console.print(table)
