"""A command on a leash ends with its supervisor, however that one ends."""

import asyncio
import os
import pwd
import signal
import sys
from pathlib import Path

import pytest

from runtime.process import Command, Leashed, run
from tests.polling import eventually
from tests.processes import alive, descendants

STUBBORN = (
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(600)"
)
OBEDIENT = "import time; print('up', flush=True); time.sleep(600)"
#: A supervisor of its own, that starts a leashed command and then does nothing.
SUPERVISOR = """
import asyncio, sys
from runtime.process import Command, Leashed
async def main():
    command = Command([sys.executable, "-c", sys.argv[1]], grace_seconds=0.2)
    await Leashed.start(command, lambda line: print(line, flush=True))
    await asyncio.sleep(600)
asyncio.run(main())
"""


async def _supervisor(code: str) -> asyncio.subprocess.Process:
    environment = {**os.environ, "PYTHONPATH": str(Path.cwd())}
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", SUPERVISOR, code, stdout=asyncio.subprocess.PIPE, env=environment
    )
    assert process.stdout is not None
    assert await process.stdout.readline() == b"up\n"
    return process


@pytest.mark.parametrize("code", [OBEDIENT, STUBBORN])
async def test_nothing_survives_a_supervisor_that_is_killed_hard(code: str) -> None:
    supervisor = await _supervisor(code)
    family = descendants(supervisor.pid)
    assert len(family) == 2  # the leash and its command
    supervisor.kill()
    await supervisor.wait()

    async def gone() -> bool:
        return not alive(family)

    await eventually(gone)


async def _started(code: str, grace_seconds: float = 5) -> Leashed:
    up = asyncio.Event()
    command = Command([sys.executable, "-c", code], grace_seconds=grace_seconds)
    process = await Leashed.start(command, lambda _: up.set())
    await up.wait()
    return process


async def test_the_command_ends_when_only_its_leash_is_killed() -> None:
    process = await _started(STUBBORN)
    family = descendants(process.pid)
    os.kill(process.pid, signal.SIGKILL)
    await process.wait()

    async def gone() -> bool:
        return not alive(family)

    await eventually(gone)


async def test_a_stop_is_polite_first() -> None:
    process = await _started(
        "import signal, sys, time\nsignal.signal(signal.SIGTERM, lambda *_: sys.exit(7))\n" + OBEDIENT
    )
    assert await process.stop() == 7


async def test_a_command_that_ignores_a_stop_is_killed_after_the_grace_time() -> None:
    process = await _started(STUBBORN, grace_seconds=0.2)
    assert await process.stop() == 128 + signal.SIGKILL


async def test_output_arrives_whole_and_the_exit_code_is_the_commands() -> None:
    code, lines = await run(Command([sys.executable, "-c", "print('one'); print('two'); raise SystemExit(3)"]))
    assert (code, lines) == (3, ["one", "two"])


async def test_a_command_that_does_not_exist_is_told_in_one_line() -> None:
    code, lines = await run(Command(["/nowhere/at-all"]))
    assert (code, lines) == (127, ["cannot run /nowhere/at-all: No such file or directory"])


async def test_a_command_in_a_directory_closed_to_its_user_runs(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    tool = closed / "tool"
    tool.write_text("#!/bin/sh\nid -u\n")
    tool.chmod(0o755)
    user = "nobody" if os.geteuid() == 0 else None
    # `test -x` asks by access(2), as initdb does.
    command = Command(["/bin/sh", "-c", f"test -x {tool} && exec {tool}"], cwd=Path("/"), user=user)
    uid = pwd.getpwnam(user).pw_uid if user else os.geteuid()
    assert await run(command) == (0, [str(uid)])
