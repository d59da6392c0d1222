"""Carries out the strikes of a plan, and takes all of it back at the end."""

import asyncio
import signal
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

import aiohttp
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import ResetWorkflowExecutionRequest
from temporalio.client import Client
from temporalio.service import RPCError

from drill.plan import JUMP_SECONDS, Evil, Strike
from runtime.entry import EntryError
from runtime.settings import Settings
from runtime.stack import Stack
from workflows.names import order_workflow_id

#: The first workflow task of every history ends with the fourth event: started, scheduled, started, completed.
FIRST_TASK_ENDS = 4
ASKING_SECONDS = 5
SLOW_BY_MS = 1_500
RATE_PER_SECOND = 3

FAULTS: dict[Evil, dict[str, object]] = {
    Evil.SLOW: {"op": "*", "mode": "delay", "delay_ms": SLOW_BY_MS},
    Evil.ERRORS: {"op": "*", "mode": "error", "status": 500},
    Evil.RATE: {"op": "*", "mode": "rate", "per_second": RATE_PER_SECOND, "retry_after": 1},
    Evil.LOST_ANSWERS: {"op": "*", "mode": "drop"},
    Evil.HANG: {"op": "*", "mode": "hang"},
    Evil.LOST_WEBHOOKS: {"op": "webhook", "mode": "lose"},
    Evil.DOUBLED_WEBHOOKS: {"op": "webhook", "mode": "duplicate"},
    Evil.REORDERED_WEBHOOKS: {"op": "webhook", "mode": "reorder"},
    Evil.LATE_WEBHOOKS: {"op": "webhook", "mode": "delay", "delay_ms": 5_000},
}


class Striker:
    """Strikes one shop. `begun` are the ids of its orders so far, in order; `victims` those whose run was ended."""

    def __init__(self, stack: Stack, client: Client, http: aiohttp.ClientSession, begun: Sequence[str]) -> None:
        self._stack = stack
        self._client = client
        self._http = http
        self._begun = begun
        self._lasting: set[asyncio.Task[None]] = set()
        self.done: Counter[tuple[Evil, str]] = Counter()
        self.missed = 0
        self.victims: set[str] = set()

    async def play(self, strikes: Sequence[Strike]) -> None:
        """Each at its time. One that finds its target down already is counted as missed."""
        began = time.monotonic()
        for strike in strikes:
            await asyncio.sleep(max(0.0, began + strike.at_seconds - time.monotonic()))
            try:
                async with asyncio.timeout(ASKING_SECONDS):
                    await self._strike(strike)
            except (aiohttp.ClientError, RPCError, TimeoutError):
                self.missed += 1
            else:
                self.done[strike.evil, strike.target] += 1

    async def heal(self) -> None:
        """Ends all that lasts, and waits until every process works. Raises EntryError when one does not."""
        for task in self._lasting:
            task.cancel()
        await asyncio.gather(*self._lasting, return_exceptions=True)
        for part in self._stack.pids():
            self._stack.kill(part, signal.SIGCONT)
        for part in self._stack.pids():
            await self._stack.ready(part)
        base = _base(self._stack.settings, "gateway")
        try:
            async with self._http.delete(f"{base}/_sim/faults") as answer:
                answer.raise_for_status()
            for provider in ("gateway", "courier"):
                await self._tell(provider, "endpoint", {"enabled": True})
        except (aiohttp.ClientError, TimeoutError) as error:
            raise EntryError(f"the simulators cannot be healed: {type(error).__name__}") from None

    async def _strike(self, strike: Strike) -> None:
        match strike.evil:
            case Evil.KILL:
                self._stack.kill(strike.target)
            case Evil.FREEZE:
                self._stack.kill(strike.target, signal.SIGSTOP)
                self._later(strike.seconds, lambda: self._thaw(strike.target))
            case Evil.CLOCK_JUMP:
                await self._tell(strike.target, "clock", {"advance_seconds": JUMP_SECONDS})
            case Evil.TERMINATE | Evil.RESET:
                await self._end_runs(strike)
            case evil:
                fault = dict(FAULTS[evil])
                if evil is not Evil.RATE:
                    fault["times"] = strike.times
                found = await self._tell(strike.target, "faults", fault)
                if strike.seconds:
                    self._later(strike.seconds, lambda: self._end_fault(str(found["id"])))

    async def _end_runs(self, strike: Strike) -> None:
        """The youngest orders: they are on their way."""
        for order_id in self._begun[-strike.times :]:
            handle = self._client.get_workflow_handle(order_workflow_id(order_id))
            with suppress(RPCError):  # not started yet, or ended: nobody is harmed
                if strike.evil is Evil.TERMINATE:
                    await handle.terminate("drill")
                else:
                    await self._reset(order_workflow_id(order_id), strike)
                self.victims.add(order_id)

    async def _reset(self, workflow_id: str, strike: Strike) -> None:
        await self._client.workflow_service.reset_workflow_execution(
            ResetWorkflowExecutionRequest(
                namespace=self._client.namespace,
                workflow_execution=WorkflowExecution(workflow_id=workflow_id),
                reason="drill",
                workflow_task_finish_event_id=FIRST_TASK_ENDS,
                request_id=f"{workflow_id}-{strike.at_seconds}",
            )
        )

    async def _tell(self, provider: str, control: str, body: dict[str, object]) -> dict[str, object]:
        async with self._http.post(f"{_base(self._stack.settings, provider)}/_sim/{control}", json=body) as answer:
            answer.raise_for_status()
            found: dict[str, object] = await answer.json()
            return found

    async def _thaw(self, part: str) -> None:
        self._stack.kill(part, signal.SIGCONT)

    async def _end_fault(self, fault_id: str) -> None:
        async with self._http.delete(f"{_base(self._stack.settings, 'gateway')}/_sim/faults/{fault_id}"):
            return

    def _later(self, seconds: float, end: Callable[[], Awaitable[None]]) -> None:
        async def wait() -> None:
            await asyncio.sleep(seconds)
            with suppress(aiohttp.ClientError, TimeoutError):
                await end()

        task = asyncio.create_task(wait())
        self._lasting.add(task)
        task.add_done_callback(self._lasting.discard)


def _base(settings: Settings, provider: str) -> str:
    port = settings.sim_gateway_port if provider == "gateway" else settings.sim_courier_port
    return f"http://127.0.0.1:{port}"
