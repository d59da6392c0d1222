"""Our commands as a person runs them: a process of its own, its exit code, and what it printed."""

import asyncio
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from runtime.settings import Settings

ROOT = Path(__file__).resolve().parents[1]
#: Far above what a command may need on a busy machine; the tests say what is promised.
LIMIT_SECONDS = 60


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def complaint(self) -> str:
        """What it says on stderr, which must be one line."""
        assert self.out == "", self.out
        assert self.err.count("\n") == 1, self.err
        assert self.err.startswith("error: "), self.err
        return self.err.removeprefix("error: ").rstrip("\n")


def plain_environment(home: Path, **more: str) -> dict[str, str]:
    """Nothing of ours but the home and `more`, whatever the tests themselves were started with."""
    ours = {name.upper() for name in Settings.model_fields}
    clean = {name: value for name, value in os.environ.items() if name not in ours and "TEMPORAL" not in name}
    return {**clean, "ORDERS_HOME": str(home), "PYTHONPATH": str(ROOT), **more}


async def command(
    environment: Mapping[str, str], *words: str, stdin: bytes = b"", limit_seconds: float = LIMIT_SECONDS
) -> Ended:
    """Runs `python WORDS…` in the home, where no `.env` of a developer is read."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(ROOT / words[0]),
        *words[1:],
        env=dict(environment),
        cwd=environment["ORDERS_HOME"],
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        out, err = await asyncio.wait_for(process.communicate(stdin), limit_seconds)
    except TimeoutError:
        process.kill()
        raise
    assert process.returncode is not None
    return Ended(process.returncode, out.decode(), err.decode())
