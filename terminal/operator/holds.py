"""`ops.py hold`, `release` and `status`: what must not begin now, and how the shop does."""

from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from adapters.backlog import Backlog, read_backlog
from adapters.database import Database
from adapters.holds import place_hold, read_holds, release_hold
from adapters.parked import Group, Wanted, grouped, read_parked
from domain.holds import Held, Hold
from runtime.entry import run_entry
from runtime.logs import configure_logs
from runtime.settings import load_settings
from terminal.app import screen
from terminal.operator.flags import Actor, AsJson, Reason, age, checked_actor, checked_reason, print_json
from terminal.operator.parked import groups_table
from terminal.shop import open_database

Party = Annotated[Held, typer.Argument(metavar="gateway|courier|intake", help="What must not begin anything new.")]

_PLACED = {
    Held.GATEWAY: "nothing new is sent to the gateway: no hold, capture, void or refund. Orders wait there, "
    "as long as it takes, and nothing of them is parked or undone for it; look-ups go on",
    Held.COURIER: "nothing new is sent to the courier: no booking, no cancel. Orders wait there, "
    "as long as it takes, and nothing of them is parked or undone for it; look-ups go on",
    Held.INTAKE: "no new order is taken (503, Retry-After). Accepted orders go on, and their keys are answered",
}
_RELEASED = {
    Held.GATEWAY: "waiting orders go on within 5 minutes",
    Held.COURIER: "waiting orders go on within 5 minutes",
    Held.INTAKE: "new orders are taken",
}


def hold(party: Party, reason: Reason, actor: Actor = None) -> None:
    """Hold the gateway, the courier or the intake: nothing new is attempted there, accepted orders wait.

    * `.venv/bin/python ops.py hold gateway --reason 'maintenance at the gateway until 14:00, ticket 4711'`

    Returns when every worker sees it, a second later; calls that are under way then end by themselves. A cancel still
    wakes a waiting order. Exit code: **0** held, also when it was before; **1** the database does not answer.
    """
    run_entry(lambda: _change(party, reason, actor, begins=True))


def release(party: Party, reason: Reason, actor: Actor = None) -> None:
    """End a hold: waiting orders go on.

    * `.venv/bin/python ops.py release gateway --reason 'maintenance is over'`

    Exit code: **0** not held any more, **1** the database does not answer.
    """
    run_entry(lambda: _change(party, reason, actor, begins=False))


async def _change(party: Held, reason: str, actor: str | None, *, begins: bool) -> int:
    who, why = checked_actor(actor), checked_reason(reason)
    settings = load_settings()
    configure_logs("ERROR")
    async with open_database(settings) as database:
        if begins:
            changed = await place_hold(database, party, who, why)
            words = f"{party} is on hold: {_PLACED[party]}" if changed else f"{party} is on hold already: see status"
        else:
            changed = await release_hold(database, party, who, why)
            words = f"{party} is released: {_RELEASED[party]}" if changed else f"{party} was not on hold"
    screen().print(words, markup=False)
    return 0


def status(as_json: AsJson = False) -> None:
    """Show on one screen what is held, what stands still, what is open, and what waits for our own workers.

    * `.venv/bin/python ops.py status`

    Needs no Temporal. Exit code: **0** it is shown, **1** the database does not answer.
    """
    run_entry(lambda: _status(as_json))


async def _status(as_json: bool) -> int:
    settings = load_settings()
    configure_logs("ERROR")
    async with open_database(settings) as database:
        holds, groups, backlog = await _read(database)
    if as_json:
        print_json(_document(holds, groups, backlog))
    else:
        _show(screen(), holds, groups, backlog)
    return 0


async def _read(database: Database) -> tuple[list[Hold], list[Group], Backlog]:
    return await read_holds(database), grouped(await read_parked(database, Wanted())), await read_backlog(database)


def _document(holds: list[Hold], groups: list[Group], backlog: Backlog) -> dict[str, object]:
    return {
        "holds": [{"party": one.party, "actor": one.actor, "reason": one.reason, "since": one.at} for one in holds],
        "parked": [
            {"step": one.cause.step, "kind": one.cause.kind, "error": one.cause.error}
            | {"count": one.count, "oldest_seconds": one.oldest_seconds}
            for one in groups
        ],
        "open_orders": {labels[0]: count for labels, count in backlog.orders},
        "oldest_order_not_started_seconds": backlog.oldest_submitted_seconds,
        "oldest_webhook_not_delivered_seconds": backlog.oldest_waiting_seconds,
    }


def _show(console: Console, holds: list[Hold], groups: list[Group], backlog: Backlog) -> None:
    for one in holds:
        since = f"{one.at:%Y-%m-%d %H:%M:%S} UTC"
        console.print(f"ON HOLD {one.party}: by {one.actor} since {since}: {one.reason}", style="red", markup=False)
    if not holds:
        console.print("nothing is on hold")
    console.print(groups_table(groups) if groups else "nothing is parked")
    table = Table("open orders", "", box=None)
    for labels, count in sorted(backlog.orders):
        table.add_row(labels[0], str(count))
    console.print(table if backlog.orders else "no order is open")
    console.print(f"oldest order not started: {age(backlog.oldest_submitted_seconds)}")
    console.print(f"oldest webhook not delivered: {age(backlog.oldest_waiting_seconds)}")
