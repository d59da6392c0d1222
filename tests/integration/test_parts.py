"""How the supervisor treats one part of the stack."""

import asyncio
import errno
import signal
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import pytest_asyncio

from runtime import supervisor as module
from runtime.process import Command, Leashed
from runtime.supervisor import Part, PartError, Supervisor
from tests.polling import eventually

SERVING = "import time; print('serving', flush=True); time.sleep(600)"


class Shop:
    """A supervisor and all it was told."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.supervisor = Supervisor(lambda name, line: self.told.append(f"{name}: {line}"))

    async def start(self, name: str, code: str) -> None:
        command = Command([sys.executable, "-c", code], grace_seconds=5)
        await self.supervisor.start(Part(name, command, ready_line="serving"))


@pytest_asyncio.fixture
async def shop(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Shop]:
    monkeypatch.setattr(module, "FIRST_DELAY_SECONDS", 0.01)
    shop = Shop()
    yield shop
    await shop.supervisor.stop()


async def test_a_part_that_never_gets_ready_is_given_up_with_its_last_words(shop: Shop) -> None:
    with pytest.raises(PartError, match=r"^api does not start: no such module$"):
        await shop.start("api", "print('no such module'); raise SystemExit(1)")
    assert shop.told.count("api: no such module") == module.HOPELESS_STARTS


async def test_each_end_doubles_the_wait_before_the_next_start(shop: Shop) -> None:
    await shop.start("api", "print('serving', flush=True)")

    async def waits() -> list[str]:
        found = [line.removeprefix("api: ended with 0, starts again in ") for line in shop.told if "again in" in line]
        return found[:4] if len(found) >= 4 else []

    assert await eventually(waits) == ["0.01 s", "0.02 s", "0.04 s", "0.08 s"]


async def test_parts_end_in_the_reverse_of_their_order(shop: Shop, tmp_path: Path) -> None:
    log = tmp_path / "ends"
    for name in ("database", "worker", "api"):
        tell_end = f"open({str(log)!r}, 'a').write('{name} ')"
        code = f"import signal, sys\nsignal.signal(signal.SIGTERM, lambda *_: ({tell_end}, sys.exit(0)))\n{SERVING}"
        await shop.start(name, code)
    await shop.supervisor.stop()
    assert log.read_text() == "api worker database "


async def test_a_part_that_is_held_stays_down_until_it_is_released(shop: Shop) -> None:
    await shop.start("api", SERVING)
    shop.supervisor["api"].hold()
    shop.supervisor["api"].signal(signal.SIGKILL)

    async def down() -> bool:
        return "api: ended with -9, waits" in shop.told

    await eventually(down)
    with pytest.raises(PartError, match="api is not ready after"):
        await shop.supervisor["api"].ready(within_seconds=0.1)
    shop.supervisor["api"].release()
    await shop.supervisor["api"].ready()


async def test_a_stack_can_be_stopped_while_a_part_waits_for_its_next_start(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "FIRST_DELAY_SECONDS", 600.0)
    await shop.start("api", "print('serving', flush=True)")

    async def waiting() -> bool:
        return any("starts again in 600 s" in line for line in shop.told)

    await eventually(waiting)
    async with asyncio.timeout(5):
        await shop.supervisor.stop()


async def test_a_part_that_cannot_be_run_for_a_moment_is_told_and_started_again(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    start, tries = Leashed.start, 0

    async def short_of_memory(command: Command, on_line: Callable[[str], None]) -> Leashed:
        nonlocal tries
        tries += 1
        if tries == 2:
            raise OSError(errno.ENOMEM, "Cannot allocate memory")
        return await start(command, on_line)

    monkeypatch.setattr(Leashed, "start", short_of_memory)
    await shop.start("api", SERVING)
    shop.supervisor["api"].signal(signal.SIGKILL)

    async def told() -> bool:
        return "api: cannot be run: Cannot allocate memory, starts again in 0.02 s" in shop.told

    await eventually(told)
    await shop.supervisor["api"].ready()


async def test_a_part_that_can_never_be_run_is_given_up_with_the_reason(shop: Shop, tmp_path: Path) -> None:
    command = Command([sys.executable, "-c", SERVING], cwd=tmp_path / "gone")
    with pytest.raises(PartError, match=r"^api does not start: cannot be run: No such file or directory$"):
        await shop.supervisor.start(Part("api", command, ready_line="serving"))


async def test_a_part_that_could_not_be_asked_is_asked_again_and_the_trouble_told_once(shop: Shop) -> None:
    asked = 0

    async def probe() -> bool:
        nonlocal asked
        asked += 1
        if asked < 4:
            raise ValueError("no such answer")
        return True

    command = Command([sys.executable, "-c", SERVING], grace_seconds=5)
    await shop.supervisor.start(Part("api", command, probe=probe))
    trouble = "api: cannot be asked whether it is ready: ValueError: no such answer"
    assert shop.told.count(trouble) == 1
