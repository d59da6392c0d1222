"""What groups of processes have used so far, read from /proc."""

import os
from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")


@dataclass(frozen=True)
class Usage:
    """CPU time since its processes began, those that ended meanwhile included, and the memory held now."""

    cpu_ms: float
    memory_mb: float


@dataclass(frozen=True)
class _Process:
    parent: int
    ticks: int


def usage(roots: Mapping[str, int]) -> dict[str, Usage]:
    """By group: its root and all that descends from it, but no other root. Empty where there is no /proc."""
    processes = dict(_processes())
    children: defaultdict[int, list[int]] = defaultdict(list)
    for pid, process in processes.items():
        children[process.parent].append(pid)
    found: dict[str, Usage] = {}
    for name, root in roots.items():
        family, waiting = set[int](), [root]
        while waiting:
            pid = waiting.pop()
            if pid in processes and (pid == root or pid not in roots.values()):
                family.add(pid)
                waiting += children[pid]
        ticks = sum(processes[pid].ticks for pid in family)
        if family:
            found[name] = Usage(ticks * 1000 / os.sysconf("SC_CLK_TCK"), sum(map(_memory_kb, family)) / 1024)
    return found


def peak_memory_mb(pid: int) -> float:
    """The most that a process has held so far, 0 where there is no /proc or the process has ended.

    Not `ru_maxrss`: a child's counts what its parent held when it was made.
    """
    with suppress(OSError):
        for line in (PROC / str(pid) / "status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    return 0


def _processes() -> list[tuple[int, _Process]]:
    found = []
    for directory in PROC.glob("[0-9]*"):
        with suppress(FileNotFoundError, ProcessLookupError):  # ended meanwhile
            fields = (directory / "stat").read_text().rpartition(")")[2].split()
            # proc(5): state, ppid, … utime, stime, and both of the children that were waited for.
            found.append((int(directory.name), _Process(int(fields[1]), sum(map(int, fields[11:15])))))
    return found


def _memory_kb(pid: int) -> int:
    """Its proportional share: pages that processes have in common count once in all."""
    with suppress(OSError):
        for line in (PROC / str(pid) / "smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1])
    return 0
