"""Keeps the parts of a stack running: starts, watches, restarts with back-off, stops in reverse order."""

import asyncio
import signal
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass

from runtime.entry import EntryError
from runtime.process import Command, Leashed

FIRST_DELAY_SECONDS = 0.5
LONGEST_DELAY_SECONDS = 30.0
#: A part that ran this long is healthy: its next end starts the back-off anew.
HEALTHY_SECONDS = 60.0
READY_TIMEOUT_SECONDS = 60.0
PROBE_SECONDS = 0.05
#: Ends before it was ever ready, after which a part is given up.
HOPELESS_STARTS = 3

#: Takes a part's name and one line about or from it.
Tell = Callable[[str, str], None]


class PartError(EntryError):
    """A part does not start."""


@dataclass(frozen=True)
class Part:
    """A process of the stack. It is ready when `probe` says so, or when it writes a line that holds `ready_line`."""

    name: str
    command: Command
    probe: Callable[[], Awaitable[bool]] | None = None
    ready_line: str | None = None


class Keeper:
    """Keeps one part running."""

    def __init__(self, part: Part, tell: Tell) -> None:
        self.part = part
        self._tell = tell
        self._process: Leashed | None = None
        self._ready = asyncio.Event()
        self._may_start = asyncio.Event()
        self._may_start.set()
        self._stopping = asyncio.Event()
        self._was_ready = False
        self._hopeless: PartError | None = None
        self._last_line = ""
        self._task = asyncio.create_task(self._keep(), name=f"keep-{part.name}")

    @property
    def pid(self) -> int | None:
        """The process that holds the part, all of whose processes descend from it."""
        return self._process.pid if self._process and self._process.running else None

    async def ready(self, within_seconds: float = READY_TIMEOUT_SECONDS) -> None:
        """Waits until the part does its work. Raises PartError after `within_seconds` or when it is hopeless."""
        waiting = asyncio.create_task(self._ready.wait())
        await asyncio.wait({waiting, self._task}, timeout=within_seconds, return_when=asyncio.FIRST_COMPLETED)
        if not waiting.done():
            waiting.cancel()
            raise self._hopeless or PartError(f"{self.part.name} is not ready after {within_seconds:g} s")

    def signal(self, number: signal.Signals) -> None:
        """Sends the part a signal; SIGKILL is a real kill -9, after which it is started again."""
        if number is signal.SIGKILL:
            self._ready.clear()
        if self._process:
            self._process.signal(number)

    def hold(self) -> None:
        """From now on the part is not started again when it ends."""
        self._may_start.clear()

    def release(self) -> None:
        """Lets it start again, at once."""
        self._may_start.set()

    async def stop(self) -> None:
        """Ends the part for good: politely first."""
        self._stopping.set()
        self._may_start.set()
        if self._process:
            await self._process.stop()
        await asyncio.wait({self._task})

    async def _keep(self) -> None:
        delay, failures = FIRST_DELAY_SECONDS, 0
        while not self._stopping.is_set():
            began = time.monotonic()
            try:
                end = f"ended with {await self._run_once()}"
            except OSError as error:  # no memory, no process, no file left: later there may be
                end = self._last_line = f"cannot be run: {error.strerror or type(error).__name__}"
            if self._stopping.is_set():
                return
            if time.monotonic() - began >= HEALTHY_SECONDS:
                delay = FIRST_DELAY_SECONDS
            failures = 0 if self._was_ready else failures + 1
            if failures == HOPELESS_STARTS:
                self._hopeless = PartError(f"{self.part.name} does not start: {self._last_line or end}")
                return
            delay = await self._pause(end, delay)

    async def _pause(self, end: str, delay: float) -> float:
        held = not self._may_start.is_set()
        self._tell(self.part.name, f"{end}, {'waits' if held else f'starts again in {delay:g} s'}")
        if not held:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), delay)
        await self._may_start.wait()
        return min(delay * 2, LONGEST_DELAY_SECONDS)

    async def _run_once(self) -> int:
        process = self._process = await Leashed.start(self.part.command, self._on_line)
        if self._stopping.is_set():
            return await process.stop()
        probing = asyncio.create_task(self._probe(process))
        try:
            return await process.wait()
        finally:
            probing.cancel()
            self._ready.clear()

    async def _probe(self, process: Leashed) -> None:
        if self.part.probe is None:
            return
        told = ""
        while process.running:
            try:
                if await self.part.probe():
                    self._set_ready()
                    return
            except Exception as error:
                # Whatever it is, the part may still become ready, and a person may want to know why it does not.
                trouble = f"cannot be asked whether it is ready: {type(error).__name__}: {error}"
                if trouble != told:
                    self._tell(self.part.name, trouble)
                told = trouble
            await asyncio.sleep(PROBE_SECONDS)

    def _on_line(self, line: str) -> None:
        if not line:
            return
        self._last_line = line
        self._tell(self.part.name, line)
        if self.part.ready_line and self.part.ready_line in line:
            self._set_ready()

    def _set_ready(self) -> None:
        if self._was_ready:
            self._tell(self.part.name, "is ready again")
        self._was_ready = True
        self._ready.set()


class Supervisor:
    """All parts that were started, in their order."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self._keepers: dict[str, Keeper] = {}

    def __getitem__(self, name: str) -> Keeper:
        """The keeper of a part. Raises KeyError when the stack does not run it."""
        return self._keepers[name]

    def pids(self) -> dict[str, int]:
        """By part that runs: the process from which all of its processes descend."""
        return {name: keeper.pid for name, keeper in self._keepers.items() if keeper.pid}

    async def start(self, part: Part) -> None:
        """Starts a part and returns when it is ready. Raises PartError."""
        keeper = self._keepers[part.name] = Keeper(part, self._tell)
        await keeper.ready()

    async def stop(self) -> None:
        """Ends all parts, the last one first."""
        while self._keepers:
            _, keeper = self._keepers.popitem()
            await keeper.stop()

    def kill(self) -> None:
        """Ends all at once, without asking."""
        for keeper in self._keepers.values():
            keeper.signal(signal.SIGKILL)
