"""`make down`: stops the `make up` of this home."""

import asyncio
import os
import signal
import time

import typer

from runtime.app import run_app
from runtime.entry import EntryError, run_entry
from runtime.home import Home, Lock
from runtime.settings import load_settings

#: All parts' grace times one after the other, and some.
PATIENCE_SECONDS = 60

app = typer.Typer(add_completion=False)


@app.command()
def main() -> None:
    """Stop the shop that runs on ORDERS_HOME and wait until nothing of it runs. Nothing running is fine."""
    run_entry(_down)


async def _down() -> int:
    home = Home(load_settings(from_stack=False).orders_home.resolve())
    lock = Lock(home)
    holder = lock.holder()
    if holder is None:
        print(f"nothing is running on {home.path} (ORDERS_HOME)")  # noqa: T201 (told to a person)
        return 0
    os.kill(holder, signal.SIGTERM)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while lock.holder() is not None:
        if time.monotonic() > deadline:
            raise EntryError(f"process {holder} did not stop within {PATIENCE_SECONDS} s")
        await asyncio.sleep(0.1)
    print("stopped")  # noqa: T201 (told to a person)
    return 0


if __name__ == "__main__":
    run_app(app)
