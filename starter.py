"""Starts orders from the terminal and follows them to their end."""

import math
from dataclasses import dataclass
from typing import Annotated
from uuid import uuid4

import typer
from rich.console import Console

from adapters.orders import list_orders, read_timeline
from domain.errors import IntakeHeld
from domain.intake import IntakeProblem, OrderRequest
from domain.order import OrderStatus
from runtime.app import run_app
from runtime.entry import EntryError, run_entry
from runtime.links import web_ui_link
from runtime.logs import configure_logs
from runtime.settings import load_settings
from terminal.app import BadInput, screen
from terminal.follow import exit_code, follow, sentence
from terminal.intake import Flags, read_request, refused
from terminal.many import place_many, summary
from terminal.shop import Shop, known_order, open_database, open_shop
from terminal.show import orders_table, show_order
from workflows.names import order_workflow_id

app = typer.Typer(
    add_completion=False,
    rich_markup_mode="markdown",
    help="Start orders and follow them. `make up` runs the shop that takes them.",
    epilog="Settings come from the environment, `.env`, or what `make up` wrote; `.env.example` lists them.",
)


@dataclass(frozen=True)
class Wishes:
    """How orders are placed, besides what is in them."""

    key: str
    watch: bool
    count: int
    rate: float | None
    timeout_seconds: float | None


@app.command()
def order(
    file: Annotated[
        str | None, typer.Argument(metavar="FILE", help="JSON file with the body of `POST /orders`; `-` reads stdin.")
    ] = None,
    *,
    customer: Annotated[str | None, typer.Option(help="Customer id; `alice` when missing.")] = None,
    line: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SKU=QUANTITY", help="A line; give it again for more. `tea-green=1 mug-blue=2` when missing."
        ),
    ] = None,
    currency: Annotated[str | None, typer.Option(help="Currency of the goods; `EUR` when missing.")] = None,
    payment_method: Annotated[
        str | None, typer.Option(help="The gateway's token, like `pm_card_visa` or `pm_card_chargeDeclined`.")
    ] = None,
    points: Annotated[int | None, typer.Option(help="Points to burn, each worth one smallest unit.")] = None,
    store_credit: Annotated[int | None, typer.Option(help="Store credit to use, in smallest units.")] = None,
    expected_total: Annotated[int | None, typer.Option(help="Refuse at any other total, in smallest units.")] = None,
    email: Annotated[str | None, typer.Option(help="`CUSTOMER@example.com` when missing.")] = None,
    postcode: Annotated[str | None, typer.Option(help="Where it goes; `00000` is refused by the courier.")] = None,
    country: Annotated[str | None, typer.Option(help="Two letters; `DE` when missing.")] = None,
    key: Annotated[
        str | None, typer.Option(help="Idempotency key: the same one is the same order. Else a new one.")
    ] = None,
    watch: Annotated[bool, typer.Option("--watch", help="Show each step and wait for the end.")] = False,
    count: Annotated[int, typer.Option(min=1, max=100_000, help="Place this many, each under a key of its own.")] = 1,
    rate: Annotated[float | None, typer.Option(help="With --count: at most this many a second.")] = None,
    timeout: Annotated[
        float | None, typer.Option(min=0, metavar="SECONDS", help="With --watch: wait no longer than this.")
    ] = None,
) -> None:
    """Place an order, from flags or a file, by the same door as `POST /orders`.

    * `.venv/bin/python starter.py order --watch`
    * `.venv/bin/python starter.py order --customer bob --line kettle-steel=1 --payment-method pm_card_chargeDeclined`
    * `.venv/bin/python starter.py order --points 500 --store-credit 200 --watch`
    * `.venv/bin/python starter.py order order.json --key 4711`
    * `.venv/bin/python starter.py order --count 200 --rate 20 --watch`

    Exit code: **0** confirmed (without `--watch`: accepted), **1** an error or a server that does not answer, **2**
    wrong flags or file, **3** cancelled or rejected, **4** needs review, **5** still open at `--timeout`. With
    `--count` the highest.
    """
    flags = Flags(
        customer=customer,
        line=tuple(line or ()),
        currency=currency,
        payment_method=payment_method,
        points=points,
        store_credit=store_credit,
        expected_total=expected_total,
        email=email,
        postcode=postcode,
        country=country,
    )
    wishes = Wishes(str(uuid4()) if key is None else key, watch, count, rate, timeout)
    run_entry(lambda: _order(file, flags, wishes))


@app.command()
def status(order_id: Annotated[str, typer.Argument(metavar="ID", help="The order's id.")]) -> None:
    """Show an order: payment, shipments, what waits for a person, and its timeline.

    * `.venv/bin/python starter.py status b3peowq5n7rtbghveapkno2l`
    """
    run_entry(lambda: _status(order_id))


@app.command(name="list")
def list_(
    limit: Annotated[int, typer.Option(min=1, max=1000, help="At most this many.")] = 20,
    status: Annotated[OrderStatus | None, typer.Option(help="Only those with this status.")] = None,
) -> None:
    """List the newest orders.

    * `.venv/bin/python starter.py list --status NEEDS_REVIEW`
    """
    run_entry(lambda: _list(limit, status))


async def _order(file: str | None, flags: Flags, wishes: Wishes) -> int:
    if wishes.rate is not None and not (math.isfinite(wishes.rate) and wishes.rate > 0):
        raise BadInput("--rate: a number above 0")
    if wishes.rate is not None and wishes.count == 1:
        raise BadInput("--rate: goes with --count, for more than one order")
    if wishes.timeout_seconds is not None and not wishes.watch:
        raise BadInput("--timeout: goes with --watch")
    request = read_request(file, flags)
    settings = load_settings()
    configure_logs("ERROR")
    async with open_shop(settings) as shop:
        try:
            place = _order_many if wishes.count > 1 else _order_one
            return await place(shop, request, wishes, screen())
        except IntakeHeld:
            raise EntryError("the shop takes no new orders now: an operator holds the intake") from None
        except IntakeProblem as problem:
            raise (BadInput(f"--key: {problem.detail}") if "key" in problem.type else refused(problem, file)) from None


async def _order_one(shop: Shop, request: OrderRequest, wishes: Wishes, console: Console) -> int:
    accepted = await shop.place(request, wishes.key)
    order_id = accepted.order_id
    started = await shop.start(order_id)
    console.print(f"order     {order_id} {'is known already' if accepted.replayed else 'accepted'}: {accepted.status}")
    console.print(f"workflow  {order_workflow_id(order_id)}")
    console.print(f"web ui    {web_ui_link(shop.settings, order_id)}")
    if not started:
        console.print("Temporal did not take the start; the relay starts the order as soon as it can")
    if not wishes.watch:
        return 0
    view = await follow(shop.database, order_id, console, wishes.timeout_seconds)
    console.print(sentence(view), markup=False)
    return exit_code(view.status)


async def _order_many(shop: Shop, request: OrderRequest, wishes: Wishes, console: Console) -> int:
    batch = await place_many(
        shop,
        request,
        wishes.key,
        count=wishes.count,
        rate=wishes.rate,
        watch=wishes.watch,
        timeout_seconds=wishes.timeout_seconds,
        console=console,
    )
    console.print(summary(batch, watch=wishes.watch))
    if batch.not_started:
        console.print(f"Temporal did not take {batch.not_started} starts; the relay starts them as soon as it can")
    return batch.exit_code() if wishes.watch else 0


async def _status(order_id: str) -> int:
    settings = load_settings()
    configure_logs("ERROR")
    async with open_database(settings) as database:
        view = await known_order(database, order_id)
        timeline = await read_timeline(database, order_id)
    show_order(screen(), view, timeline or [], web_ui_link(settings, order_id))
    return 0


async def _list(limit: int, wanted: OrderStatus | None) -> int:
    settings = load_settings()
    configure_logs("ERROR")
    async with open_database(settings) as database:
        found = await list_orders(database, limit, wanted)
    screen().print(orders_table(found) if found else "no orders")
    return 0


if __name__ == "__main__":
    run_app(app, needs_words=True)
