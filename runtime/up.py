"""`make up`: the whole shop in the foreground, until Ctrl-C."""

import asyncio
import os
import signal
import sys
import time
from collections.abc import Collection
from contextlib import suppress
from typing import Annotated

import typer

from runtime.app import run_app
from runtime.entry import run_entry
from runtime.settings import SettingsError, load_settings
from runtime.stack import PARTS, Stack
from workflows.names import Queue

SUPERVISOR = "stack"
OPTIONAL = ("simulators", "worker", "api")
_COLOURS = dict(zip((SUPERVISOR, *PARTS), (1, 34, 35, 33, 32, 36), strict=True))

app = typer.Typer(add_completion=False, rich_markup_mode="markdown")


@app.command()
def main(
    without: Annotated[
        str, typer.Option(help=f"Comma-separated parts to leave out and run by hand: {', '.join(OPTIONAL)}.")
    ] = "",
    split: Annotated[
        bool, typer.Option("--split", help="One worker for each party, with only its own settings and database role.")
    ] = False,
) -> None:
    """Run the whole shop in the foreground: PostgreSQL, Temporal with its Web UI, simulators, worker and API.

    Data lives in `ORDERS_HOME` (`.local`) and survives a restart. A server that the environment or `.env` names
    (`DATABASE_URL`, `TEMPORAL_ADDRESS`, `STRIPE_API_KEY`, …) is used instead of one started here. The addresses and
    secrets are written to `stack.env` in the home, so plain `.venv/bin/python worker.py` and
    `.venv/bin/python starter.py` find them.

    Ctrl-C or `make down` stops everything cleanly, a second Ctrl-C at once.
    """
    run_entry(lambda: _serve(without, split=split))


async def _serve(without: str, *, split: bool) -> int:
    began, stop = time.monotonic(), asyncio.Event()
    settings = load_settings(from_stack=False)
    stack = Stack(settings, tell=_Log(stop, split=split).tell, without=_parse_parts(without), split=split)
    _listen_for_the_end(stop, stack)
    starting = asyncio.create_task(stack.start())
    stopping = asyncio.create_task(stop.wait())
    await asyncio.wait({starting, stopping}, return_when=asyncio.FIRST_COMPLETED)
    if starting.done():
        starting.result()
        _print(_welcome(stack, time.monotonic() - began))
        await stopping
        _print("stopping …")
        await stack.stop()
    else:
        starting.cancel()
        with suppress(asyncio.CancelledError):
            await starting
    _print("stopped")
    return 0


def _parse_parts(names: str) -> Collection[str]:
    parts = [name.strip() for name in names.split(",") if name.strip()]
    if unknown := sorted(set(parts) - set(OPTIONAL)):
        raise SettingsError(f"--without takes some of {', '.join(OPTIONAL)}; not {', '.join(unknown)}")
    return parts


def _listen_for_the_end(stop: asyncio.Event, stack: Stack) -> None:
    def end() -> None:
        if stop.is_set():
            stack.kill_all()
        stop.set()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, end)
    if "MAKELEVEL" in os.environ:
        _watch_make(loop, os.getppid(), stop)


def _watch_make(loop: asyncio.AbstractEventLoop, make: int, stop: asyncio.Event) -> None:
    """A `make` that is killed hard cannot pass the signal on: when it is gone, so are we."""
    if os.getppid() != make:
        stop.set()
    else:
        loop.call_later(1, _watch_make, loop, make, stop)


class _Log:
    """One log for all parts: each line with the name of its part, coloured on a terminal."""

    def __init__(self, stop: asyncio.Event, *, split: bool) -> None:
        names = [*_COLOURS, *(f"worker-{party}" for party in Queue if split)]
        self._width = max(map(len, names))
        self._coloured = sys.stdout.isatty() and "NO_COLOR" not in os.environ
        self._stop = stop

    def tell(self, part: str, line: str) -> None:
        name = f"{part:<{self._width}} |"
        if self._coloured:
            name = f"\x1b[{_COLOURS[part.partition('-')[0]]}m{name}\x1b[0m"
        try:
            print(name, line, flush=True)  # noqa: T201 (this is the log)
        except BrokenPipeError:  # nobody reads on (`| head`)
            self._stop.set()


def _welcome(stack: Stack, seconds: float) -> str:
    urls = [f"  {name:<16} {url}" for name, url in stack.urls().items()]
    return "\n".join([f"ready in {seconds:.1f} s; Ctrl-C stops everything", *urls])


def _print(text: str) -> None:
    with suppress(BrokenPipeError):
        print(text, flush=True)  # noqa: T201 (told to a person)


if __name__ == "__main__":
    run_app(app)
