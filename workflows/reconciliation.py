"""The guard and the nightly reconciliation: what the books, the providers and Temporal say of the same orders.

Each part is read by the worker that may read it, compared in one place, and repaired by messages to other workflows.
"""

import asyncio
from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError, ApplicationError, FailureError

from workflows.names import Queue

with workflow.unsafe.imports_passed_through():
    from pydantic import BaseModel

    from domain.errors import NotServed
    from domain.reconciliation import (
        BeginRun,
        BegunRun,
        CompareRun,
        EndRun,
        Part,
        PartRead,
        ReconciliationInput,
        RunKind,
        RunResult,
    )

#: A part that is not read by then is told as not compared: the guard must be back before its next turn, and a party
#: without a worker must not keep the others from being looked at.
PATIENCE = {RunKind.GUARD: timedelta(minutes=4), RunKind.NIGHTLY: timedelta(hours=2)}
#: A reader tells of each page, so one that says nothing for so long is dead.
HEARTBEAT = timedelta(seconds=60)
#: Comparing a hundred thousand orders takes some seconds.
ATTEMPT = timedelta(minutes=10)
#: A database that takes no connection is back after some of these.
PAUSE = timedelta(seconds=10)

_READERS = {
    Part.GATEWAY: ("read_gateway_books", Queue.PAYMENTS),
    Part.COURIER: ("read_courier_books", Queue.SHIPPING),
    Part.RUNS: ("look_at_runs", Queue.ORDERS),
}


@workflow.defn
class ReconciliationWorkflow:
    """One run. Started by a schedule or by `ops.py reconcile`; any number may run at once.

    It writes findings, and messages to the workflows that own an order or its money; never an order. Ends with the
    number of its findings, also when a part could not be read: that is a finding too.
    """

    @workflow.run
    async def run(self, what: ReconciliationInput) -> RunResult:
        """Begin, read side by side, compare, repair, end."""
        begin = BeginRun(**what.model_dump(), run_id=workflow.info().workflow_id)
        begun: BegunRun = await self._ours("begin_run", begin, BegunRun)
        if begun.kept:
            return begun.kept
        failed: dict[Part, str] = {}
        _, parcels, _ = await asyncio.gather(*(self._read(part, begun, PATIENCE[what.kind], failed) for part in Part))
        compare = CompareRun(run_id=begun.run_id, grace_seconds=begun.grace_seconds, failed=failed)
        await self._ours("compare_books", compare, None)
        await self._ours("repair_findings", begun, None)
        end = EndRun(run_id=begun.run_id, complete=not failed, cursor=parcels.cursor)
        result: RunResult = await self._ours("end_run", end, RunResult)
        return result

    async def _ours(self, activity: str, argument: BaseModel, result: type | None) -> Any:
        """A step in our own database, or towards Temporal: tried until it is done."""
        while True:
            try:
                return await workflow.execute_activity(
                    activity,
                    argument,
                    task_queue=Queue.ORDERS,
                    result_type=result,
                    start_to_close_timeout=ATTEMPT,
                    heartbeat_timeout=HEARTBEAT,
                    retry_policy=RetryPolicy(maximum_interval=timedelta(minutes=1)),
                )
            except FailureError as failure:
                if _name_of(failure) != NotServed.__name__:
                    raise
            await workflow.sleep(PAUSE, summary=f"{activity} is not served, waiting")

    async def _read(self, part: Part, begun: BegunRun, patience: timedelta, failed: dict[Part, str]) -> PartRead:
        """One part's reading; what it failed with is noted."""
        activity, queue = _READERS[part]
        try:
            read: PartRead = await workflow.execute_activity(
                activity,
                begun,
                task_queue=queue,
                result_type=PartRead,
                schedule_to_close_timeout=patience,
                heartbeat_timeout=HEARTBEAT,
                retry_policy=RetryPolicy(maximum_interval=timedelta(seconds=30)),
            )
            return read
        except FailureError as failure:
            failed[part] = _name_of(failure)
            return PartRead()


def _name_of(failure: FailureError) -> str:
    cause = failure.cause if isinstance(failure, ActivityError) else failure
    if isinstance(cause, ApplicationError):
        return cause.type or ApplicationError.__name__
    return type(cause).__name__
