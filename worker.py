"""Starts worker processes: all task queues in one process, or some parties alone."""

import asyncio
import signal
from typing import Annotated

import structlog
import typer

from runtime.app import run_app
from runtime.entry import run_entry
from runtime.logs import configure_logs
from runtime.measures import worker_runtime
from runtime.schedules import ensure_schedules
from runtime.settings import SettingsError, load_settings
from runtime.temporal import connect
from runtime.tracing import tracing
from runtime.workers import running_workers
from workflows.names import Queue

log = structlog.get_logger()

app = typer.Typer(add_completion=False, rich_markup_mode="markdown")


@app.command()
def main(
    queues: Annotated[
        str, typer.Option(help="Comma-separated queues to serve, one a party.", metavar="orders,payments,…")
    ] = ",".join(Queue),
    wait: Annotated[bool, typer.Option("--wait", help="Keep trying while Temporal does not answer.")] = False,
) -> None:
    """Serve task queues until Ctrl-C or SIGTERM.

    Without options one process serves every party: **orders** (the saga itself, the relay that starts accepted orders
    and the delivery of webhooks), **inventory**, **loyalty**, **payments** and **shipping**. A party can run alone,
    with only its own settings:

        .venv/bin/python worker.py --queues payments

    Any number of workers may serve the same queue. Settings come from the environment, `.env`, or what `make up`
    wrote; `.env.example` lists them.
    """
    run_entry(lambda: _serve(queues, wait))


async def _serve(names: str, wait: bool) -> int:
    queues = _parse_queues(names)
    settings = load_settings()
    configure_logs(settings.log_level)
    runtime, stop = worker_runtime(settings), asyncio.Event()
    async with tracing(settings, "worker", settings.database_for(queues[0])) as plugins:
        client = await connect(settings, wait=wait, runtime=runtime, plugins=plugins)
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        if Queue.ORDERS in queues:
            await ensure_schedules(client, settings)
        async with running_workers(client, settings, queues):
            log.info("worker_ready", queues=[queue.value for queue in queues])
            await stop.wait()
            log.info("worker_stopping")
    return 0


def _parse_queues(names: str) -> list[Queue]:
    try:
        return [Queue(name.strip()) for name in names.split(",")]
    except ValueError:
        raise SettingsError(f"--queues takes some of {', '.join(Queue)}, separated by commas; not {names!r}") from None


if __name__ == "__main__":
    run_app(app)
