"""`make up` from outside: what it says, what it restarts, and that nothing of it stays behind."""

import asyncio
import os
import re
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import psycopg
import pytest

from runtime.ports import free_ports
from runtime.settings import Settings
from runtime.stack import Stack
from runtime.stack_env import isolated_settings
from tests.polling import eventually
from tests.processes import alive, command, descendants

ROOT = Path(__file__).resolve().parents[2]
#: A whole stack takes 4 s on two idle cores, and many times that on busy ones.
pytestmark = pytest.mark.timeout(240)

SERVERS_ONLY = ("--without", "simulators,worker,api")


def _environment(home: Path) -> dict[str, str]:
    names = [name.upper() for name in Settings.model_fields]
    ports = [name for name in names if name.endswith("_PORT")]
    clean = {name: value for name, value in os.environ.items() if name not in names and "TEMPORAL" not in name}
    chosen = dict(zip(ports, map(str, free_ports(len(ports))), strict=True))
    return clean | chosen | {"ORDERS_HOME": str(home), "PYTHONPATH": str(ROOT), "MAKELEVEL": ""}


class Up:
    """A running `python -m runtime.up` and what it printed."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.lines: list[str] = []
        self._reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        assert self.process.stdout is not None
        async for line in self.process.stdout:
            self.lines.append(line.decode().rstrip())

    async def says(self, pattern: str) -> str:
        """The first line that matches, once it is there."""

        async def found() -> str | None:
            return next((line for line in self.lines if re.search(pattern, line)), None)

        return str(await eventually(found, within_seconds=60))

    async def ended(self) -> int:
        """Its exit code, after its last line."""
        async with asyncio.timeout(60):
            await self._reading
            return await self.process.wait()


@asynccontextmanager
async def _up(environment: dict[str, str], *arguments: str, module: str = "runtime.up") -> AsyncIterator[Up]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", module, *arguments),
        cwd=environment["ORDERS_HOME"],
        env=environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        yield Up(process)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def _gone(family: set[int]) -> None:
    async def nobody() -> bool:
        return not alive(family)

    await eventually(nobody, within_seconds=20)


async def test_all_is_ready_together_and_a_part_that_dies_is_started_again(tmp_path: Path) -> None:
    async with _up(_environment(tmp_path)) as up:
        await up.says(r"^ready in [\d.]+ s")
        assert await up.says(r"Temporal Web UI +http://127\.0\.0\.1:\d+")
        family = descendants(up.process.pid)
        worker = next(pid for pid in family if "worker.py" in command(pid) and "leash.py" not in command(pid))
        os.kill(worker, signal.SIGKILL)
        await up.says(r"^worker +\| ended with -?\d+, starts again in 0.5 s")
        await up.says(r"^worker +\| is ready again")
        family |= descendants(up.process.pid)
        up.process.send_signal(signal.SIGTERM)
        assert await up.ended() == 0
        assert up.lines[-1] == "stopped"
        assert not alive(family)


async def test_nothing_survives_a_kill_9_of_the_supervisor_and_the_data_does(tmp_path: Path) -> None:
    environment = _environment(tmp_path)
    for _ in range(2):
        async with _up(environment) as up:
            await up.says("^ready in")
            family = descendants(up.process.pid)
            assert len(family) > 8
            up.process.kill()
            await _gone(family)


async def test_a_taken_port_is_one_line_that_names_the_setting(tmp_path: Path) -> None:
    environment = _environment(tmp_path)
    server = await asyncio.start_server(lambda *_: None, "127.0.0.1", int(environment["SIM_MAIL_PORT"]))
    async with server, _up(environment) as up:
        assert await up.ended() == 1
    port = environment["SIM_MAIL_PORT"]
    assert up.lines == [f"error: port {port} is taken: stop what listens there or set SIM_MAIL_PORT to another port"]
    assert not (tmp_path / "postgres").exists()


async def test_two_settings_with_one_port_are_told_apart(tmp_path: Path) -> None:
    environment = _environment(tmp_path)
    environment["OPS_PORT"] = environment["HTTP_PORT"]
    async with _up(environment) as up:
        assert await up.ended() == 1
    assert up.lines == [f"error: HTTP_PORT and OPS_PORT are both {environment['HTTP_PORT']}: change one of them"]


async def test_a_wrong_setting_ends_with_2(tmp_path: Path) -> None:
    async with _up(_environment(tmp_path) | {"HTTP_PORT": "web"}) as up:
        assert await up.ended() == 2
    assert len(up.lines) == 1
    assert up.lines[0].startswith("error: HTTP_PORT is wrong: ")


async def test_one_home_runs_one_stack_and_down_stops_it(tmp_path: Path) -> None:
    environment = _environment(tmp_path)
    async with _up(environment, *SERVERS_ONLY) as up:
        await up.says("^ready in")
        family = descendants(up.process.pid)
        async with _up(environment, *SERVERS_ONLY) as second:
            assert await second.ended() == 1
        assert second.lines == [
            f"error: a stack is running already on {tmp_path} (process {up.process.pid}): "
            "`make down` stops it, or set another ORDERS_HOME"
        ]
        async with _up(environment, module="runtime.down") as down:
            assert await down.ended() == 0
        assert down.lines == ["stopped"]
        assert await up.ended() == 0
        assert not alive(family)
    async with _up(environment, module="runtime.down") as down:
        assert await down.ended() == 0
    assert down.lines == [f"nothing is running on {tmp_path} (ORDERS_HOME)"]


async def test_a_database_server_that_dies_comes_back_with_its_rows(tmp_path: Path) -> None:
    stack = Stack(isolated_settings(tmp_path), without=("simulators", "worker", "api"))

    async def goods() -> int:
        async with await psycopg.AsyncConnection.connect(stack.settings.database_for("orders")) as connection:
            row = await (await connection.execute("SELECT count(*) FROM products")).fetchone()
            return int(row[0]) if row else 0

    async def refused() -> bool:
        try:
            return not await goods()
        except psycopg.OperationalError:
            return True

    async with stack:
        before = await goods()
        assert before > 3
        stack.pause_restarts("postgres")
        stack.kill("postgres")
        await eventually(refused)
        stack.resume_restarts("postgres")
        await stack.ready("postgres")
        assert await goods() == before
