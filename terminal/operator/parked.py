"""`ops.py parked`: which orders stand still, where and why."""

from collections.abc import Sequence
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from adapters.parked import Group, ParkedItem, Wanted, grouped, read_parked
from domain.keys import PARKING, Step
from domain.order import ParkKind
from domain.words import BUG_WORDS, ERROR_WORDS
from runtime.entry import run_entry
from runtime.logs import configure_logs
from runtime.settings import load_settings
from terminal.app import BadInput, screen
from terminal.operator.flags import AsJson, age, print_json, seconds
from terminal.shop import open_database

StepFlag = Annotated[str | None, typer.Option(metavar="STEP", help="Only those parked at this step.")]
KindFlag = Annotated[
    ParkKind | None, typer.Option(help="Only those: TECHNICAL looks again by itself, DECISION waits for you.")
]
ErrorFlag = Annotated[str | None, typer.Option(metavar="ERROR", help="Only those with this error's class name.")]
OlderFlag = Annotated[str | None, typer.Option(metavar="AGE", help="Only those parked for longer: `90s`, `15m`, `2h`.")]

#: Rows that a person looks at; `--limit` shows more.
FIRST_ROWS = 20


def parked(
    *,
    step: StepFlag = None,
    kind: KindFlag = None,
    error: ErrorFlag = None,
    older_than: OlderFlag = None,
    limit: Annotated[int, typer.Option(min=0, max=100_000, help="List at most this many orders.")] = FIRST_ROWS,
    as_json: AsJson = False,
) -> None:
    """Show what is parked: how many for which cause, and the orders, the oldest first.

    * `.venv/bin/python ops.py parked`
    * `.venv/bin/python ops.py parked --step capture_payment --error PaymentServiceUnavailable --older-than 2h`

    `ops.py show ORDER` tells what to do about one, `ops.py redrive` acts on many. Exit code: **0** nothing is parked,
    **4** something is, **1** the database does not answer.
    """
    run_entry(lambda: _parked(wanted(step, kind, error, older_than), limit, as_json))


def wanted(
    step: str | None, kind: ParkKind | None, error: str | None, older_than: str | None, item: str | None = None
) -> Wanted:
    """The filter that the flags describe. Raises BadInput."""
    if step is not None and step not in PARKING:
        raise BadInput(f"--step: one of {', '.join(PARKING)}")
    found = Step(step) if step else None
    return Wanted(step=found, item=item, kind=kind, error=error, older_than_seconds=seconds(older_than))


async def _parked(which: Wanted, limit: int, as_json: bool) -> int:
    settings = load_settings()
    configure_logs("ERROR")
    async with open_database(settings) as database:
        items = await read_parked(database, which)
    if as_json:
        print_json([_document(item) for item in items[:limit]])
    else:
        show_parked(screen(), items, limit)
    return 4 if items else 0


def show_parked(console: Console, items: Sequence[ParkedItem], limit: int) -> None:
    """How many for which cause, then the oldest ones."""
    if not items:
        console.print("nothing is parked")
        return
    console.print(groups_table(grouped(items)))
    if limit:
        console.print()
        console.print(_items_table(items[:limit]))
    if len(items) > limit > 0:
        console.print(f"and {len(items) - limit} more: --limit shows them")


def groups_table(groups: Sequence[Group]) -> Table:
    """One row a cause, with what stands behind its error."""
    table = Table("parked at", "kind", "error", "orders", "oldest", "which means", box=None)
    for group in groups:
        cause = group.cause
        means = ERROR_WORDS.get(cause.error, BUG_WORDS)
        table.add_row(cause.step, cause.kind, cause.error, str(group.count), age(group.oldest_seconds), means)
    return table


def _items_table(items: Sequence[ParkedItem]) -> Table:
    table = Table("order", "parked at", "kind", "error", "for", "came back", "status", box=None)
    for item in items:
        came_back = f"{item.redrives} ×" if item.redrives else ""
        row = (item.order_id, item.name, item.kind, item.error, age(item.age_seconds), came_back, item.status)
        table.add_row(*row)
    return table


def _document(item: ParkedItem) -> dict[str, object]:
    return {
        "order_id": item.order_id,
        "step": item.step,
        "item": item.item,
        "kind": item.kind,
        "error": item.error,
        "since": item.since,
        "age_seconds": item.age_seconds,
        "redrives": item.redrives,
        "status": item.status,
    }
