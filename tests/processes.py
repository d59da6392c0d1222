"""Looking at processes from outside, as an operator does."""

import subprocess
from collections import defaultdict
from contextlib import suppress
from pathlib import Path

PROC = Path("/proc")


def running() -> dict[int, int]:
    """Process id → parent, without those that ended and only wait to be collected."""
    rows = _from_proc() if (PROC / "self/stat").exists() else _from_ps()
    return {pid: parent for pid, parent, state in rows if not state.startswith("Z")}


def descendants(pid: int) -> set[int]:
    """All processes under one, at whatever depth."""
    children: defaultdict[int, list[int]] = defaultdict(list)
    for child, parent in running().items():
        children[parent].append(child)
    found: set[int] = set()
    waiting = [pid]
    while waiting:
        for child in children[waiting.pop()]:
            found.add(child)
            waiting.append(child)
    return found


def alive(pids: set[int]) -> set[int]:
    """Those of them that still run."""
    return pids & running().keys()


def command(pid: int) -> str:
    """Its command line."""
    file = PROC / str(pid) / "cmdline"
    if file.exists():
        return file.read_text().replace("\0", " ")
    return subprocess.run(["/bin/ps", "-p", str(pid), "-o", "command="], capture_output=True, text=True).stdout  # noqa: PLW1510, S603


def _from_proc() -> list[tuple[int, int, str]]:
    rows = []
    for directory in PROC.glob("[0-9]*"):
        with suppress(FileNotFoundError, ProcessLookupError):  # ended meanwhile
            state, parent = (directory / "stat").read_text().rpartition(")")[2].split()[:2]
            rows.append((int(directory.name), int(parent), state))
    return rows


def _from_ps() -> list[tuple[int, int, str]]:
    table = subprocess.run(["/bin/ps", "-A", "-o", "pid=,ppid=,stat="], capture_output=True, text=True, check=True)
    words = (line.split(None, 2) for line in table.stdout.splitlines())
    return [(int(pid), int(parent), state) for pid, parent, state in words]
