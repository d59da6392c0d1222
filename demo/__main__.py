"""`python -m demo`: starts a shop, sends it one order of each kind, and checks everybody's books."""

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path
from uuid import uuid4

import aiohttp
from rich.console import Console

from demo.cases import CASES
from demo.doors import Doors
from demo.run import Running, place_and_follow, prepare
from demo.show import Progress, outcome_table
from domain.books import Books
from runtime.entry import run_entry
from runtime.links import web_ui_link
from runtime.proof import prove
from runtime.settings import Settings, load_settings
from runtime.stack import Stack
from runtime.stack_env import isolated_settings
from runtime.temporal import connect
from terminal.app import screen
from terminal.books import show_books

LOG = "demo.log"


async def main() -> int:
    """0 when every order ended as it should and all books hold, else 1."""
    began, console = time.monotonic(), screen()
    usual = load_settings(from_stack=False)
    home = (usual.orders_home / "demo").resolve()
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    console.print(f"starting a shop in {home} …", markup=False)
    with (home / LOG).open("w") as log:
        async with Stack(isolated_settings(home), tell=lambda part, line: print(part, line, file=log)) as stack:
            console.print(f"it runs after {time.monotonic() - began:.1f} s; {len(CASES)} orders, side by side")
            orders = await _run(stack.settings, console)
            books = await prove(stack.settings, await connect(stack.settings))
    console.print(outcome_table(orders))
    for one in orders:
        for difference in one.differences():
            console.print(f"{one.case.name} ({one.order_id}): {difference}", style="red", markup=False)
    show_books(console, books)
    _say_where_to_look(console, home, orders, usual)
    return _verdict(console, orders, books, time.monotonic() - began)


async def _run(settings: Settings, console: Console) -> Sequence[Running]:
    async with aiohttp.ClientSession() as session:
        doors, run = Doors(settings, session), uuid4().hex[:8]
        orders = await asyncio.gather(*(prepare(doors, case, run) for case in CASES))
        showing = asyncio.create_task(Progress(console, orders).keep_showing())
        try:
            await asyncio.gather(*(place_and_follow(doors, one) for one in orders))
        finally:
            showing.cancel()
            await showing
    return orders


def _say_where_to_look(console: Console, home: Path, orders: Sequence[Running], usual: Settings) -> None:
    console.print()
    console.print(f"Its data is kept. To look at it:  ORDERS_HOME={home} make up", markup=False, soft_wrap=True)
    console.print("with the same ORDERS_HOME for starter.py and make down.", markup=False)
    console.print("Then each order has its page in Temporal's Web UI:", markup=False)
    for one in orders:
        link = web_ui_link(usual, one.order_id)
        console.print(f"  {one.case.name:<13} {link}", markup=False, soft_wrap=True)
    console.print(f"What the shop's processes said: {home / LOG}", markup=False, soft_wrap=True)


def _verdict(console: Console, orders: Sequence[Running], books: Books, seconds: float) -> int:
    right = sum(not one.differences() for one in orders)
    good = right == len(orders) and books.hold
    word = "[bold green]all is as expected[/]" if good else "[bold red]not all is as expected[/]"
    held = "the books hold" if books.hold else "the books do not hold"
    console.print(f"{word}: {right} of {len(orders)} orders, {held}, {seconds:.1f} s")
    return 0 if good else 1


if __name__ == "__main__":
    run_entry(main)
