"""`python -m api` as a process: starts without its servers, ends when told, keeps what it acknowledged."""

import asyncio
import json
import os
import signal
import socket
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from temporalio.client import Client

from adapters.database import Database
from api.__main__ import serve
from api.app import Apps
from events.relay import publish_submitted
from runtime.ports import free_port
from runtime.settings import Settings
from tests.builders import an_order_document, the_fixture_products, unique
from tests.polling import eventually
from workflows.names import order_workflow_id

ROOT = Path(__file__).parents[2]


async def start(home: Path, **settings: str) -> Process:
    kept = {name: value for name, value in os.environ.items() if name in {"PATH", "HOME", "LANG"}}
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", "api", env={**kept, "PYTHONPATH": str(ROOT), **settings}, cwd=home, stderr=PIPE
    )


@asynccontextmanager
async def serving(home: Path, database_url: str) -> AsyncIterator[tuple[Process, str]]:
    """An API process without Temporal, and the shopper's address."""
    ports = {"HTTP_PORT": str(free_port()), "OPS_PORT": str(free_port())}
    process = await start(home, DATABASE_URL=database_url, TEMPORAL_ADDRESS=f"127.0.0.1:{free_port()}", **ports)
    address = f"http://127.0.0.1:{ports['HTTP_PORT']}"
    try:

        async def alive() -> bool:
            assert process.returncode is None
            try:
                return (await call("GET", f"{address}/livez"))[0] == 200
            except aiohttp.ClientConnectionError:
                return False

        await eventually(alive)
        yield process, address
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def call(method: str, url: str, **request: Any) -> tuple[int, Any]:
    timeout = aiohttp.ClientTimeout(total=10)
    async with aiohttp.ClientSession(timeout=timeout) as session, session.request(method, url, **request) as answer:
        return answer.status, json.loads(await answer.read())


def plain(database: Database) -> str:
    return database.engine.url.set(drivername="postgresql").render_as_string(hide_password=False)


async def test_a_killed_api_loses_no_order_that_it_accepted(
    tmp_path: Path, database: Database, temporal: Client
) -> None:
    """S87: killed between its answer and the start."""
    await the_fixture_products(database)
    async with serving(tmp_path, plain(database)) as (process, address):
        order = {"json": an_order_document(), "headers": {"Idempotency-Key": unique("key")}}
        status, accepted = await call("POST", f"{address}/orders", **order)
        assert status == 202
        process.kill()
        await process.wait()
    order_id = accepted["order_id"]

    async def published() -> bool:
        return (await publish_submitted(database, temporal, order_id=order_id)).started == 1

    await eventually(published)
    assert (await temporal.get_workflow_handle(order_workflow_id(order_id)).describe()).id.endswith(order_id)


async def test_it_starts_without_its_servers_and_ends_when_told(tmp_path: Path) -> None:
    async with serving(tmp_path, "postgresql://nobody@127.0.0.1:1/nothing") as (process, address):
        status, problem = await call("GET", f"{address}/orders/x")
        assert (status, problem["type"]) == (503, "/problems/database-unavailable")
        process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(10):
            assert await process.wait() == 0


async def test_its_log_is_json_with_ids_and_without_persons(tmp_path: Path, database: Database) -> None:
    """S96."""
    await the_fixture_products(database)
    async with serving(tmp_path, plain(database)) as (process, address):
        marked = an_order_document(note="marker-note", email="marker@example.com")
        marked["shipping_address"] = dict.fromkeys(("name", "line1", "city", "postcode"), "marker") | {"country": "GB"}
        headers = {"Idempotency-Key": unique("key"), "X-Correlation-Id": "cart-17"}
        _, accepted = await call("POST", f"{address}/orders", json=marked, headers=headers)
        await call("POST", f"{address}/orders", json=marked | {"email": "marker"}, headers=headers)
        process.send_signal(signal.SIGTERM)
        _, output = await process.communicate()
    assert b"marker" not in output
    lines = [json.loads(line) for line in output.splitlines()]
    (line,) = [line for line in lines if line["event"] == "order_accepted"]
    assert (line["order_id"], line["correlation_id"]) == (accepted["order_id"], "cart-17")


async def test_a_taken_port_is_one_line(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        process = await start(
            tmp_path,
            DATABASE_URL="postgresql://nobody@127.0.0.1:1/nothing",
            TEMPORAL_ADDRESS="127.0.0.1:1",
            OPS_PORT=port,
            HTTP_PORT=str(free_port()),
            LOG_LEVEL="ERROR",
        )
        _, output = await process.communicate()
    assert process.returncode == 1
    (line,) = output.decode().splitlines()
    assert line.startswith(f"error: OPS_PORT {port} on 127.0.0.1 cannot be used")


async def test_an_open_api_on_an_address_that_others_reach_is_refused_in_one_line(tmp_path: Path) -> None:
    process = await start(
        tmp_path,
        DATABASE_URL="postgresql://nobody@127.0.0.1:1/nothing",
        TEMPORAL_ADDRESS="127.0.0.1:1",
        BIND_HOST="0.0.0.0",  # noqa: S104 (refused)
        HTTP_PORT=str(free_port()),
        OPS_PORT=str(free_port()),
    )
    _, output = await process.communicate()
    assert process.returncode == 2
    (line,) = output.decode().splitlines()
    assert line.startswith("error: BIND_HOST 0.0.0.0 is reached from elsewhere")


async def test_both_ports_end_together(monkeypatch: pytest.MonkeyPatch) -> None:
    everybody = asyncio.Barrier(2)

    class Waiting(web.AppRunner):
        async def cleanup(self) -> None:
            await everybody.wait()
            await super().cleanup()

    monkeypatch.setattr(web, "AppRunner", Waiting)
    settings = Settings(_env_file=None, http_port=free_port(), ops_port=free_port())
    async with asyncio.timeout(10), serve(Apps(web.Application(), web.Application()), "127.0.0.1", settings):
        assert [await _status(port) for port in (settings.http_port, settings.ops_port)] == [404, 404]


async def _status(port: int) -> int:
    async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}/") as answer:
        return answer.status
