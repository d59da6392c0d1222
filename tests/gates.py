"""Gates in front of and behind the activities: a test holds one order's step, or makes it fail, where it likes.

The interceptor stands inside the worker's error boundary, so an error that a gate raises is told as if the activity
itself had raised it. `after` means: the effect is there, its answer is not.
"""

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from temporalio import activity
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor

from domain.errors import DatabaseNotReached, DatabaseUnavailable
from domain.keys import Step
from domain.messages import StatusChange
from tests.polling import eventually

#: A gate that nobody reaches, or opens, fails its test instead of hanging it.
DEADLINE_SECONDS = 30.0


def database_down() -> Exception:
    """An error that is worth another try."""
    return DatabaseUnavailable("tests")


def database_restarting() -> Exception:
    """The database takes no connections."""
    return DatabaseNotReached("tests")


def a_bug() -> Exception:
    """An error that nobody classified."""
    return ZeroDivisionError("tests")


@dataclass(eq=False)
class Gate:
    """One place of one order's saga. `item` None meets every item; `left` None meets every attempt until it opens."""

    order_id: str
    step: Step
    item: str | None
    after: bool
    left: int | None
    error: Callable[[], Exception] | None
    passed: int = 0
    _reached: asyncio.Event = field(default_factory=asyncio.Event)
    _opened: asyncio.Event = field(default_factory=asyncio.Event)

    async def reached(self, *, within_seconds: float = DEADLINE_SECONDS) -> None:
        """Until an attempt stands at the gate."""
        async with asyncio.timeout(within_seconds):
            await self._reached.wait()

    def open(self) -> None:
        """Lets everyone through, now and later."""
        self._opened.set()

    def meets(self, step: Step, argument: Any, *, after: bool) -> bool:
        """Whether this call is one of those meant."""
        item = _item(argument)
        return (
            (self.step, self.order_id, self.after) == (step, argument.order_id, after)
            and self.item in {None, item}
            and self.left != 0
            and not self._opened.is_set()
        )

    async def pass_through(self) -> None:
        """Holds the attempt until the gate opens, or raises the gate's error."""
        if self.left is not None:
            self.left -= 1
        self.passed += 1
        self._reached.set()
        if self.error is not None:
            raise self.error()
        async with asyncio.timeout(DEADLINE_SECONDS):
            await self._opened.wait()


class Gates(Interceptor):
    """All gates of one shop, and how often each step of each order was called."""

    def __init__(self) -> None:
        self._gates: list[Gate] = []
        self._calls: Counter[tuple[str, Step, str]] = Counter()
        self._ends: Counter[tuple[str, Step]] = Counter()

    def hold(
        self, order_id: str, step: Step, *, item: str | None = None, after: bool = False, times: int | None = None
    ) -> Gate:
        """Holds attempts until the gate is opened: every one of them, or the next `times`."""
        return self._add(Gate(order_id, step, item, after, times, None))

    def fail(
        self,
        order_id: str,
        step: Step,
        error: Callable[[], Exception],
        *,
        item: str | None = None,
        after: bool = False,
        times: int | None = None,
    ) -> Gate:
        """Makes attempts end with `error()`: every one until the gate is opened, or the next `times`."""
        return self._add(Gate(order_id, step, item, after, times, error))

    def calls(self, order_id: str, step: Step, item: str | None = None) -> int:
        """Attempts so far, those that a gate stopped included."""
        return sum(
            count
            for (order, called, on), count in self._calls.items()
            if (order, called) == (order_id, step) and item in {None, on}
        )

    async def ended(self, order_id: str, step: Step, attempts: int) -> None:
        """Until so many attempts are over, one that nobody waits for any more included."""

        async def look() -> bool:
            return self._ends[order_id, step] >= attempts

        await eventually(look)

    def note_end(self, step: Step, argument: Any) -> None:
        """An attempt is over."""
        self._ends[argument.order_id, step] += 1

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        """Puts the gates around the activity."""
        return _Gated(next, self)

    async def pass_through(self, step: Step, argument: Any, *, after: bool) -> None:
        """All gates of this call, in the order in which they were set up."""
        if not after:
            self._calls[argument.order_id, step, _item(argument)] += 1
        for gate in [gate for gate in self._gates if gate.meets(step, argument, after=after)]:
            await gate.pass_through()

    def _add(self, gate: Gate) -> Gate:
        self._gates.append(gate)
        return gate


class _Gated(ActivityInboundInterceptor):
    def __init__(self, next: ActivityInboundInterceptor, gates: Gates) -> None:
        super().__init__(next)
        self._gates = gates

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        name, argument = activity.info().activity_type, input.args[0]
        if name not in set(Step):
            return await self.next.execute_activity(input)  # no step of an order: the guard's
        step = Step(name)
        try:
            await self._gates.pass_through(step, argument, after=False)
            result = await self.next.execute_activity(input)
            await self._gates.pass_through(step, argument, after=True)
            return result
        finally:
            self._gates.note_end(step, argument)


def _item(argument: Any) -> str:
    """A shipment's warehouse; for `record_status` the status."""
    return argument.status.value if isinstance(argument, StatusChange) else getattr(argument, "item", "")
