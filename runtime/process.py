"""A child process on a leash: it ends with us, whatever ends us."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

LEASH = Path(__file__).with_name("leash.py")


@dataclass(frozen=True)
class Command:
    """What to run. `death` ends it when its leash is killed; after `grace_seconds` a stop becomes a kill."""

    argv: Sequence[str]
    env: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    cwd: Path | None = None
    stop: signal.Signals = signal.SIGTERM
    death: signal.Signals = signal.SIGKILL
    grace_seconds: float = 10
    user: str | None = None

    def leashed(self) -> list[str]:
        """The command line of the leash around it."""
        user = ["--user", self.user] if self.user else []
        options = ["--stop", self.stop.name, "--death", self.death.name, "--grace", str(self.grace_seconds), *user]
        return [sys.executable, "-I", "-S", str(LEASH), *options, "--", *self.argv]


class Leashed:
    """One run of a command; its output arrives line by line."""

    def __init__(self, process: asyncio.subprocess.Process, reader: asyncio.Task[None]) -> None:
        self._process = process
        self._reader = reader

    @classmethod
    async def start(cls, command: Command, on_line: Callable[[str], None]) -> "Leashed":
        """Starts it in a process group of its own, so that a terminal's Ctrl-C reaches only us."""
        process = await asyncio.create_subprocess_exec(
            *command.leashed(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=dict(command.env),
            cwd=command.cwd,
            process_group=0,
            limit=2**20,
        )
        return cls(process, asyncio.create_task(_read(process, on_line)))

    @property
    def pid(self) -> int:
        """The process id of the leash, which is the id of the group too."""
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether it has not ended yet."""
        return self._process.returncode is None

    async def wait(self) -> int:
        """Its exit code, after the last line of output was told and the whole group is gone."""
        code = await self._process.wait()
        self.signal(signal.SIGKILL)
        await self._reader
        return code

    async def stop(self) -> int:
        """Ends it politely, after the grace time by force."""
        if self._process.stdin:
            self._process.stdin.close()
        return await self.wait()

    def signal(self, number: signal.Signals) -> None:
        """Sends a signal to leash and command at once: SIGKILL is a real kill -9."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)


async def run(command: Command) -> tuple[int, list[str]]:
    """Runs a short command to its end: exit code and output."""
    lines: list[str] = []
    process = await Leashed.start(command, lines.append)
    return await process.wait(), lines


async def _read(process: asyncio.subprocess.Process, on_line: Callable[[str], None]) -> None:
    assert process.stdout is not None
    while True:
        try:
            line = await process.stdout.readline()
        except ValueError:  # a line above the limit: its beginning is gone, the rest follows
            continue
        if not line:
            return
        on_line(line.decode(errors="replace").rstrip())
