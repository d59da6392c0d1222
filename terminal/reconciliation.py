"""`ops.py reconcile` and `ops.py report`: what the guard and the nightly reconciliation found."""

import asyncio
from datetime import date, datetime
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text
from temporalio.client import WorkflowFailureError
from temporalio.service import RPCError

from adapters.database import Database
from adapters.reconciliation.runs import newest_run, read_report
from domain.reconciliation import Report, RunKind
from runtime.entry import EntryError, run_entry
from runtime.logs import configure_logs
from runtime.schedules import run_now
from runtime.settings import load_settings
from terminal.app import BadInput, screen
from terminal.shop import open_database, open_shop

#: Rows of the table; `--json` has them all.
MOST_ROWS = 100

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]


def reconcile(
    nightly: Annotated[bool, typer.Option("--nightly", help="Compare all orders of the last 30 days.")] = False,
    as_json: AsJson = False,
    timeout: Annotated[float, typer.Option(min=1, help="Give up after so many seconds.")] = 600,
) -> None:
    """Looks now for what nobody looks after, and sends the messages that repair it.

    * `.venv/bin/python ops.py reconcile`
    * `.venv/bin/python ops.py reconcile --nightly`

    The same run as the one every five minutes, beside it: two at once are harmless. With `--nightly` the one of each
    night; a night that is complete is shown and not done again. The workers do it: each party asks its own provider.
    Exit code: **0** nothing was found, **1** something was, repaired or not, or a server does not answer.
    """
    run_entry(lambda: _reconcile(RunKind.NIGHTLY if nightly else RunKind.GUARD, as_json, timeout))


def report(
    night: Annotated[
        str | None, typer.Argument(metavar="DAY", help="A night, like 2026-11-30; else the newest.")
    ] = None,
    guard: Annotated[bool, typer.Option("--guard", help="The guard's newest run instead.")] = False,
    as_json: AsJson = False,
) -> None:
    """Shows what a night's reconciliation found: reports are kept for 30 days.

    * `.venv/bin/python ops.py report`
    * `.venv/bin/python ops.py report 2026-11-30 --json`
    * `.venv/bin/python ops.py report --guard`

    Exit code: **0** nothing was found, **1** something was, or there is no such report.
    """
    run_entry(lambda: _report(night, guard, as_json))


async def _reconcile(kind: RunKind, as_json: bool, timeout_seconds: float) -> int:
    settings = load_settings()
    configure_logs("ERROR")
    async with open_shop(settings) as shop:
        try:
            async with asyncio.timeout(timeout_seconds):
                result = await run_now(shop.client, kind)
        except TimeoutError:
            why = (
                f"the run has not ended in {timeout_seconds:g} s, and goes on: does a worker serve the queue `orders`?"
            )
            raise EntryError(why) from None
        except (RPCError, WorkflowFailureError) as error:
            raise EntryError(f"the run failed ({type(error).__name__}): the Web UI has it") from None
        return _told(await _read(shop.database, result.run_id), as_json)


async def _report(night: str | None, guard: bool, as_json: bool) -> int:
    if night and guard:
        raise BadInput("a DAY is about the nights: leave out --guard")
    try:
        day = date.fromisoformat(night) if night else None
    except ValueError:
        raise BadInput("DAY is a date like 2026-11-30") from None
    kind = RunKind.GUARD if guard else RunKind.NIGHTLY
    settings = load_settings()
    configure_logs("ERROR")
    async with open_database(settings) as database:
        async with database.begin() as connection:
            run_id = await newest_run(connection, kind, day)
        if run_id is None:
            which = f"of {day}" if day else f"of a {kind} run"
            raise EntryError(f"there is no report {which}: `ops.py reconcile` makes one now")
        return _told(await _read(database, run_id), as_json)


async def _read(database: Database, run_id: str) -> Report:
    async with database.begin() as connection:
        found = await read_report(connection, run_id)
    if found is None:
        raise EntryError("the report is gone")
    return found


def _told(found: Report, as_json: bool) -> int:
    if as_json:
        print(found.model_dump_json(indent=2))  # noqa: T201 (what was asked for)
    else:
        show_report(screen(), found)
    return 1 if found.findings else 0


def show_report(console: Console, found: Report) -> None:
    """A table of what was found, then the verdict."""
    if found.findings:
        table = Table("what", "about", "how it stands", "what was sent", box=None)
        for finding in found.findings[:MOST_ROWS]:
            told = (finding.kind, finding.subject, finding.detail, finding.action or "nothing: a person decides")
            table.add_row(*map(Text, told))
        console.print(table)
    if len(found.findings) > MOST_ROWS:
        console.print(f"and {len(found.findings) - MOST_ROWS} more: --json has them all", markup=False)
    console.print(verdict(found), markup=False)


def verdict(found: Report) -> str:
    """The last line."""
    open_ones = sum(finding.action is None for finding in found.findings)
    told = f"found {len(found.findings)}, {open_ones} of it for a person" if found.findings else "nothing was found"
    looked = f"{found.checked} closed orders in {_seconds(found.started_at, found.finished_at)}"
    whole = "" if found.complete else "; not everything could be read"
    return f"{found.kind} run of {found.started_at:%Y-%m-%d %H:%M} UTC: {looked}, {told}{whole}"


def _seconds(began: datetime, ended: datetime | None) -> str:
    return f"{(ended - began).total_seconds():.1f} s" if ended else "an unknown time"
