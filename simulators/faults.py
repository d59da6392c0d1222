"""Faults on demand: one table for the whole process, so that a fault posted to any simulator's port works.

A fault waits for calls of its operation and hits `times` of them; `order_id` narrows it to one order. Where two
providers share a word (`cancel`, `*`), the one on whose port the fault was posted is meant; `webhook` means both.
"""

import asyncio
import math
import time
from collections import deque
from dataclasses import dataclass, field
from typing import Any

from simulators.ids import new_id

GATEWAY_OPS = frozenset({"create", "confirm", "capture", "cancel", "refund", "read"})
COURIER_OPS = frozenset({"book", "cancel", "find"})
PARTY_OPS = {"gateway": GATEWAY_OPS, "courier": COURIER_OPS, "fraud": frozenset({"score"})}
CALL_MODES = frozenset({"error", "drop", "delay", "hang", "rate", "conflict", "answer", "pending"})
WEBHOOK_MODES = frozenset({"lose", "duplicate", "reorder", "delay"})
_FIELDS = frozenset(
    {"op", "mode", "times", "order_id", "status", "delay_ms", "retry_after", "body", "per_second", "rate"}
)


@dataclass
class Fault:
    """One posted fault. `remaining` hits are left, None: until it is deleted; `held` calls wait for its end."""

    id: str
    op: str
    mode: str
    parties: frozenset[str]
    remaining: int | None
    order_id: str | None
    status: int | None
    delay_ms: int
    retry_after: int | None
    body: Any
    per_second: float
    held: int = 0
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    _recent: deque[float] = field(default_factory=deque)

    def meets(self, party: str, op: str, order_id: str | None) -> bool:
        """Whether a call is one of those meant."""
        return (
            self.remaining != 0
            and party in self.parties
            and self.op in {op, "*"}
            and self.order_id in {None, order_id}
            and not (self.mode == "pending" and op != "refund")
            and (self.mode in WEBHOOK_MODES if op == "webhook" else self.mode in CALL_MODES)
        )

    def strikes(self) -> bool:
        """Counts a call that is meant and says whether it is hit; a rate hits only what is above it."""
        if self.mode != "rate":
            if self.remaining is not None:
                self.remaining -= 1
            return True
        now = time.monotonic()
        window_seconds = max(1.0, 1 / self.per_second)
        while self._recent and self._recent[0] <= now - window_seconds:
            self._recent.popleft()
        if len(self._recent) >= max(1, math.floor(self.per_second)):
            return True
        self._recent.append(now)
        return False

    @property
    def spent(self) -> bool:
        """Nothing more comes of it."""
        return self.remaining == 0 and self.held == 0

    def view(self) -> dict[str, Any]:
        """The fault as the control routes show it."""
        names = ("id", "op", "mode", "remaining", "order_id", "status", "delay_ms", "retry_after", "body", "per_second")
        return {**{name: getattr(self, name) for name in names}, "held": self.held}


class FaultTable:
    """All faults in the order in which they were posted. They end with the process."""

    def __init__(self) -> None:
        self._faults: dict[str, Fault] = {}

    def add(self, document: Any, *, posted_to: str) -> Fault:
        """Takes a fault as posted. Raises ValueError naming what is wrong with it."""
        fault = _read(document, posted_to)
        self._faults[fault.id] = fault
        return fault

    def take(self, party: str, op: str, order_id: str | None) -> Fault | None:
        """The first fault that hits this call, with the hit counted; None when the call goes through."""
        for fault in list(self._faults.values()):
            if fault.meets(party, op, order_id) and fault.strikes():
                if fault.mode == "hang":
                    fault.held += 1
                self._forget_spent()
                return fault
        return None

    def end(self, fault_id: str | None = None) -> int:
        """Ends one fault or all; held calls go on. Returns how many ended."""
        ended = [fault for fault in self._faults.values() if fault_id in {None, fault.id}]
        for fault in ended:
            del self._faults[fault.id]
            fault.ended.set()
        return len(ended)

    def views(self, fault_id: str | None = None) -> list[dict[str, Any]]:
        """One fault or all of them."""
        return [fault.view() for fault in self._faults.values() if fault_id in {None, fault.id}]

    def _forget_spent(self) -> None:
        for fault in [fault for fault in self._faults.values() if fault.spent]:
            del self._faults[fault.id]


def _read(document: Any, posted_to: str) -> Fault:
    if not isinstance(document, dict):
        raise ValueError("a fault is a JSON object {op, mode, …}")
    if unknown := set(document) - _FIELDS:
        raise ValueError(f"unknown field {sorted(unknown)[0]}; known are {', '.join(sorted(_FIELDS))}")
    op, mode = document.get("op"), document.get("mode")
    known_ops = set().union(*PARTY_OPS.values(), {"webhook", "*"})
    if op not in known_ops:
        raise ValueError(f"op is one of {', '.join(sorted(known_ops))}")
    modes = WEBHOOK_MODES if op == "webhook" else CALL_MODES | WEBHOOK_MODES if op == "*" else CALL_MODES
    if mode not in modes:
        raise ValueError(f"mode for op {op} is one of {', '.join(sorted(modes))}")
    nested = document.get("rate")
    per_second = nested.get("per_second") if isinstance(nested, dict) else document.get("per_second")
    if mode == "rate" and (isinstance(per_second, bool) or not isinstance(per_second, int | float) or per_second <= 0):
        raise ValueError("mode rate needs per_second, a number above 0")
    order_id = document.get("order_id")
    if order_id is not None and not isinstance(order_id, str):
        raise ValueError("order_id is a string")
    times = _whole(document, "times", lowest=1) if "times" in document else 1
    return Fault(
        id=new_id("fault"),
        op=op,
        mode=mode,
        parties=_parties(op, mode, posted_to),
        remaining=None if mode == "rate" else times,
        order_id=order_id,
        status=_whole(document, "status", lowest=200, highest=599),
        delay_ms=_whole(document, "delay_ms") or 0,
        retry_after=_whole(document, "retry_after"),
        body=document.get("body"),
        per_second=per_second or 0.0,
    )


def _parties(op: str, mode: str, posted_to: str) -> frozenset[str]:
    if op == "webhook" or mode in WEBHOOK_MODES - CALL_MODES:
        return frozenset(PARTY_OPS)
    able = frozenset(party for party, ops in PARTY_OPS.items() if op == "*" or op in ops)
    return frozenset({posted_to}) if posted_to in able else able


def _whole(document: dict[str, Any], name: str, *, lowest: int = 0, highest: int = 10**9) -> int | None:
    value = document.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not lowest <= value <= highest:
        raise ValueError(f"{name} is a whole number from {lowest} to {highest}")
    return value
