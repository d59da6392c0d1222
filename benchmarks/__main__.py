"""`python -m benchmarks`: starts a shop, sends it many orders, tells what they took and cost, and proves its books."""

import os
import platform
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from adapters.database import Database
from benchmarks.books import SHARE, measure_books, show_books_spent
from benchmarks.load import Load, run_load
from benchmarks.processes import Usage, usage
from domain.books import Books
from domain.order import OrderStatus
from runtime.app import run_app
from runtime.entry import run_entry
from runtime.proof import prove
from runtime.settings import load_settings
from runtime.stack import Stack
from runtime.stack_env import isolated_settings
from runtime.temporal import connect
from terminal.app import screen
from terminal.books import show_books, verdict

#: Placed first and not measured: a process's first orders pay for its imports and connections.
WARM_UP = 10
#: The slowest machine that makes sense confirms this many a second.
SLOWEST_PER_SECOND = 0.5
CLIENT = "this client"

app = typer.Typer(add_completion=False, rich_markup_mode="markdown")


@app.command()
def main(
    orders: Annotated[int, typer.Option(min=1, max=100_000, help="Place this many.")] = 200,
    concurrency: Annotated[int, typer.Option(min=1, max=256, help="Requests under way at a time.")] = 16,
    books: Annotated[
        int | None, typer.Option(min=SHARE, max=1_000_000, help="Instead: prove and reconcile so many closed orders.")
    ] = None,
) -> None:
    """Measure a shop of its own, on this machine, under many orders at once.

    Orders of two lines, paid by card, are placed over HTTP as fast as they are accepted; the simulated gateway
    authorizes each by a webhook a moment later. Everything shares this machine, the simulators and this client too.

    With `--books` nothing is placed: so many closed orders, and a tenth of them in a shop beside it, are put into our
    own books, the gateway's and the courier's, and proven and reconciled, with the time and the memory that this takes.

    Exit code: **0** every order was confirmed and the books hold, **1** not so.
    """
    run_entry(lambda: _bench(orders, concurrency) if books is None else _bench_books(books))


async def _bench_books(orders: int) -> int:
    measured = {}
    for count in (orders // SHARE, orders):
        home = _new_home()
        screen().print(f"putting {count} closed orders into the books of a shop in {home} …", markup=False)
        measured[count] = await measure_books(isolated_settings(home), home / "bench.log", count)
        shutil.rmtree(home)
    show_books_spent(screen(), measured)
    return 0


def _new_home() -> Path:
    base = load_settings(from_stack=False).orders_home.resolve()
    base.mkdir(parents=True, exist_ok=True, mode=0o700)
    return Path(tempfile.mkdtemp(prefix="bench-", dir=base))


async def _bench(orders: int, concurrency: int) -> int:
    home, console = _new_home(), screen()
    console.print(f"starting a shop in {home} …", markup=False)
    with (home / "bench.log").open("w") as log:
        async with Stack(isolated_settings(home), tell=lambda part, line: print(part, line, file=log)) as stack:
            url = f"http://127.0.0.1:{stack.settings.http_port}"
            roots = {**stack.pids(), CLIENT: os.getpid()}
            database = Database(stack.settings.database_for("orders"), application="bench", pool_size=2)
            try:
                await run_load(database, url, WARM_UP, concurrency, WARM_UP / SLOWEST_PER_SECOND)
                console.print(f"placing {orders} orders, {concurrency} at a time …")
                before = usage(roots)
                load = await run_load(database, url, orders, concurrency, 60 + orders / SLOWEST_PER_SECOND)
                after = usage(roots)
            finally:
                await database.close()
            books = await prove(stack.settings, await connect(stack.settings))
    show(console, load, before, after)
    good = told_as_good(console, load, books)
    if good:
        shutil.rmtree(home)
    else:
        console.print(f"its data and log are kept: ORDERS_HOME={home} make up", markup=False, soft_wrap=True)
    return 0 if good else 1


def show(console: Console, load: Load, before: Mapping[str, Usage], after: Mapping[str, Usage]) -> None:
    """The times, then the costs by process group."""
    console.print(
        f"{platform.system()} {platform.machine()}, {os.cpu_count()} CPUs, Python {platform.python_version()}"
    )
    times = Table("orders", "", box=None)
    times.add_row("placed and accepted", str(len(load.accepting)))
    times.add_row("accepted after, ms", percentiles(load.accepting, (50, 95, 99), scale=1000))
    times.add_row("confirmed", str(len(load.confirming)))
    times.add_row("confirmed after, s", percentiles(load.confirming, (50, 95)))
    times.add_row("confirmed per second", f"{len(load.confirming) / load.seconds:.1f}" if load.seconds else "–")
    console.print(times)
    if not after:
        console.print("CPU and memory are read from /proc, which this system does not have")
        return
    costs = Table("processes", "CPU-ms per order", "memory, MB", box=None)
    spent = {name: (used.cpu_ms - before[name].cpu_ms) / load.count for name, used in after.items() if name in before}
    for name, milliseconds in spent.items():
        costs.add_row(name, f"{milliseconds:.1f}", f"{after[name].memory_mb:.0f}")
    costs.add_row("all", f"{sum(spent.values()):.1f}", f"{sum(after[name].memory_mb for name in spent):.0f}")
    console.print(costs)


def told_as_good(console: Console, load: Load, books: Books) -> bool:
    """Whether every order was confirmed and all books hold; what does not is told."""
    if books.hold:
        console.print(f"the books: {verdict(books)}")
    else:
        show_books(console, books)
    others = {status: number for status, number in load.statuses.items() if status != OrderStatus.CONFIRMED}
    for status, number in sorted(others.items()):
        console.print(f"{number} orders ended, or stand, {status}", style="red", markup=False)
    return books.hold and not others and len(load.confirming) == load.count


def percentiles(values: Sequence[float], parts: Sequence[int], *, scale: float = 1) -> str:
    """By nearest rank."""
    if not values:
        return "–"
    ranked = sorted(values)
    told = [f"p{part} {scale * ranked[max(0, -(-len(ranked) * part // 100) - 1)]:.2f}" for part in parts]
    return "  ".join(told)


if __name__ == "__main__":
    run_app(app)
