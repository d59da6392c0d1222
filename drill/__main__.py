"""`python -m drill`: starts a shop, sends it orders of every kind under scripted evil, heals it, and judges."""

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Annotated

import aiohttp
import typer
from rich.console import Console
from sqlalchemy import func, select

from adapters.database import Database
from adapters.tables import orders, review_items, stock_movements
from domain.books import Books, Failure, LineKind, LineResult
from domain.errors import DatabaseUnavailable, TransientError
from domain.order import OrderStatus
from drill.clients import Shoppers
from drill.evil import Striker
from drill.mending import Operator
from drill.plan import Plan, make_plan
from drill.shop import Shop
from drill.verdict import Evidence, Verdict, judge, show, tell
from drill.watch import Watch
from runtime.app import run_app
from runtime.entry import EntryError, run_entry
from runtime.proof import prove
from runtime.settings import load_settings
from runtime.stack import Stack
from runtime.stack_env import isolated_settings
from runtime.temporal import connect
from terminal.app import screen

#: Orders a minute where no time is given: a machine of two cores keeps up with it while its processes are killed.
ORDERS_PER_MINUTE = 90
SHORTEST_MINUTES = 0.5
#: Shoppers' and reviewers' deadlines: reached within the drill by those who do nothing.
DEADLINE_SECONDS = 45
#: What was begun under evil waits for its next try for minutes; the second look after a booking takes one.
PATIENCE_SECONDS = 600
REVIEW_SECONDS = 2

app = typer.Typer(add_completion=False, rich_markup_mode="markdown")


@app.command()
def main(
    orders_wanted: Annotated[int, typer.Option("--orders", min=1, max=10_000, help="Place this many.")] = 300,
    seed: Annotated[int, typer.Option(help="The same seed makes the same plan of evil.")] = 1,
    minutes: Annotated[float | None, typer.Option(min=0.1, max=600, help="Let the evil last so long.")] = None,
    clients: Annotated[int, typer.Option(min=1, max=64, help="Shoppers at the door at a time.")] = 4,
) -> None:
    """Break a shop of your own on purpose, while orders of every kind stream in; then heal it and prove its books.

    Processes are killed and frozen, gateway and courier are slow, down, rate-limited and lose answers, webhooks are
    lost, doubled and late, clocks jump, and runs are terminated and reset. The books that must always hold are looked
    at each second. Then all is healed, what is parked is retried, and everybody's books are compared.

    Exit code: **0** PASS, **1** FAIL, with the orders named and the shop's data kept.
    """
    run_entry(lambda: _drill(orders_wanted, seed, clients, minutes))


async def _drill(count: int, seed: int, clients: int, minutes: float | None) -> int:
    console = screen()
    plan = make_plan(seed, count, 60 * (minutes or max(SHORTEST_MINUTES, count / ORDERS_PER_MINUTE)))
    base = load_settings(from_stack=False).orders_home.resolve()
    base.mkdir(parents=True, exist_ok=True, mode=0o700)
    home = Path(tempfile.mkdtemp(prefix=f"drill-{seed}-", dir=base))
    settings = isolated_settings(
        home, payment_deadline_seconds=DEADLINE_SECONDS, review_deadline_seconds=DEADLINE_SECONDS
    )
    console.print(f"starting a shop in {home} …", markup=False, soft_wrap=True)
    with (home / "drill.log").open("w") as log:
        stack = Stack(settings, split=True, tell=lambda part, line: print(part, line, file=log))
        async with stack, _doors(stack) as (http, database):
            verdict, books = await _Drill(plan, stack, http, database, console).run(clients)
    passed = verdict.passed(books)
    if passed:
        shutil.rmtree(home)
    else:
        console.print(f"its data and log are kept: ORDERS_HOME={home} make up", markup=False, soft_wrap=True)
    console.print(verdict.last_line(books), markup=False)
    return 0 if passed else 1


@asynccontextmanager
async def _doors(stack: Stack) -> AsyncIterator[tuple[aiohttp.ClientSession, Database]]:
    database = Database(stack.settings.database_for("orders"), application="drill", pool_size=3)
    try:
        async with aiohttp.ClientSession() as http:
            yield http, database
    finally:
        await database.close()


class _Drill:
    """One drill on a running stack."""

    def __init__(
        self, plan: Plan, stack: Stack, http: aiohttp.ClientSession, database: Database, console: Console
    ) -> None:
        self._plan, self._stack, self._http = plan, stack, http
        self._database, self._console = database, console

    async def run(self, clients: int) -> tuple[Verdict, Books]:
        """What the shop made of it, and everybody's books at the end."""
        plan, shop = self._plan, Shop(self._stack.settings, self._http)
        client = await connect(self._stack.settings)
        shoppers = Shoppers(shop, client, plan, clients)
        striker = Striker(self._stack, client, self._http, shoppers.begun)
        operator = Operator(shop, client, self._database, shoppers)
        watch = Watch(self._database, self._console, striker)
        shelf = await shoppers.stock_the_shelves()
        self._console.print(f"{len(plan.orders)} orders and {len(plan.strikes)} strikes in {plan.seconds:.0f} s")
        watching = asyncio.create_task(watch.keep_watching())
        try:
            await self._under_evil(shoppers, striker, operator, watch)
        finally:
            watching.cancel()
            with suppress(asyncio.CancelledError):
                await watching
        await watch.look()
        books = _with_samples(await prove(self._stack.settings, client), watch)
        found = await self._look_around(shoppers, shop, striker, shelf)
        verdict = judge(found)
        show(self._console, found, striker)
        self._console.print(
            f"books sampled {watch.samples} times (the database was away {watch.unseen} times), "
            f"{operator.reviewed} reviews decided, {operator.redriven} steps retried, {striker.missed} strikes missed"
        )
        tell(self._console, verdict, books)
        return verdict, books

    async def _under_evil(self, shoppers: Shoppers, striker: Striker, operator: Operator, watch: Watch) -> None:
        """Until the last order was seen to, or patience ends."""
        streaming = asyncio.create_task(shoppers.stream())
        striking = asyncio.create_task(striker.play(self._plan.strikes))
        try:
            while not striking.done():
                with suppress(DatabaseUnavailable, TransientError, EntryError):  # the reviewer comes back
                    await operator.review_all()
                await asyncio.wait({striking}, timeout=REVIEW_SECONDS)
            await striking
            self._console.print("healing, and retrying what is parked …")
            await striker.heal()
            # Whoever still knocks gets in now; a shopper may even wait for an order whose run the guard has to find.
            await operator.until_quiet(watch, streaming, PATIENCE_SECONDS)
            await streaming
        finally:
            streaming.cancel()
            striking.cancel()

    async def _look_around(self, shoppers: Shoppers, shop: Shop, striker: Striker, shelf: dict[str, int]) -> Evidence:
        parked = select(review_items.c.order_id).where(review_items.c.closed_at.is_(None)).distinct()
        sold = (
            select(stock_movements.c.sku, func.sum(stock_movements.c.quantity))
            .where(stock_movements.c.kind == "sold")
            .group_by(stock_movements.c.sku)
        )
        async with self._database.snapshot() as connection:
            statuses = (await connection.execute(select(orders.c.order_id, orders.c.status))).all()
            return Evidence(
                placed=shoppers.placed,
                statuses={order_id: OrderStatus(status) for order_id, status in statuses},
                parked=list(await connection.scalars(parked)),
                intents=(await shop.expect("GET", f"{shop.gateway}/_sim/ledger"))["intents"],
                parcels=(await shop.expect("GET", f"{shop.courier}/_sim/ledger"))["shipments"],
                sold={sku: int(pieces) for sku, pieces in await connection.execute(sold)},
                shelf=shelf,
                victims=frozenset(striker.victims),
            )


def _with_samples(books: Books, watch: Watch) -> Books:
    """The books with one more line: what did not hold in some second of the drill."""
    failures = tuple(Failure(subject, f"{line}: {detail}") for (line, subject), detail in watch.broken.items())
    sampled = LineResult(
        "always, in every second of the drill", LineKind.ALWAYS, watch.samples, len(failures), failures
    )
    return Books((*books.lines, sampled), books.waived, books.notes)


if __name__ == "__main__":
    run_app(app)
