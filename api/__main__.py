"""`python -m api`: the shopper's port and the operator's, until SIGTERM or Ctrl-C.

Starts, and takes orders in, while Temporal is down; answers 503 while the database is.
"""

import asyncio
import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

import structlog
from aiohttp import web
from temporalio.client import Plugin

from adapters.database import Database
from api.app import Apps, build_apps
from api.deps import Deps
from api.metrics import Metrics
from api.starts import DirectStarts
from runtime.entry import EntryError, run_entry
from runtime.logs import configure_logs
from runtime.settings import Settings, load_settings
from runtime.temporal import connect_lazily
from runtime.tracing import tracing

#: Requests under way may take this long to end when the process is told to stop: all of their time (`api.edge`).
SHUTDOWN_SECONDS = 10

log = structlog.get_logger(__name__)


async def main() -> int:
    """Serves until told to stop; the requests under way are answered first."""
    settings = load_settings()
    host = settings.host_to_bind()
    configure_logs(settings.log_level)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    async with AsyncExitStack() as stack:
        traced = tracing(settings, "api", settings.database_for("orders"))
        plugins = await stack.enter_async_context(traced)
        needs = await stack.enter_async_context(dependencies(settings, plugins))
        apps = build_apps(needs)
        await stack.enter_async_context(serve(apps, host, settings))
        log.info("api_listening", http_port=settings.http_port, ops_port=settings.ops_port)
        await stop.wait()
        log.info("api_stopping")
    return 0


@asynccontextmanager
async def dependencies(settings: Settings, plugins: Sequence[Plugin] = ()) -> AsyncIterator[Deps]:
    """The process's dependencies, none of which has to answer yet. Raises SettingsError when one is not named."""
    database, inventory, loyalty = (
        Database(settings.database_for(party), application="api") for party in ("orders", "inventory", "loyalty")
    )
    client = await connect_lazily(settings, plugins)
    metrics = Metrics()
    starts = DirectStarts(database, client, metrics)
    for name in ("stripe_webhook_secrets", "courier_webhook_secrets"):
        if not getattr(settings, name):
            log.warning("webhooks_are_all_refused", setting_missing=name.upper())
    try:
        yield Deps(database, client, settings, metrics, starts, inventory, loyalty)
    finally:
        await starts.close()
        for one in (database, inventory, loyalty):
            await one.close()


@asynccontextmanager
async def serve(apps: Apps, host: str, settings: Settings) -> AsyncIterator[None]:
    """Both ports until the block ends; then neither takes new requests, and those under way are answered."""
    doors = ((apps.operator, settings.ops_port, "OPS_PORT"), (apps.shopper, settings.http_port, "HTTP_PORT"))
    runners: list[web.AppRunner] = []
    try:
        for app, port, setting in doors:
            runner = web.AppRunner(app, access_log=None, shutdown_timeout=SHUTDOWN_SECONDS)
            runners.append(runner)
            await runner.setup()
            try:
                await web.TCPSite(runner, host, port).start()
            except OSError as error:
                raise EntryError(f"{setting} {port} on {host} cannot be used: {error.strerror}") from None
        yield
    finally:
        await asyncio.gather(*(runner.cleanup() for runner in runners))


if __name__ == "__main__":
    run_entry(main)
