"""What Temporal starts by the clock: the guard every few minutes, and the reconciliation of each night."""

from datetime import timedelta
from uuid import uuid4

import structlog
from temporalio.client import (
    Client,
    Schedule,
    ScheduleActionStartWorkflow,
    ScheduleAlreadyRunningError,
    ScheduleCalendarSpec,
    ScheduleIntervalSpec,
    ScheduleOverlapPolicy,
    SchedulePolicy,
    ScheduleRange,
    ScheduleSpec,
    ScheduleState,
    ScheduleUpdate,
    ScheduleUpdateInput,
)
from temporalio.service import RPCError

from domain.reconciliation import ReconciliationInput, RunKind, RunResult
from runtime.settings import Settings
from workflows.names import Queue

GUARD_EVERY = timedelta(minutes=5)
#: Outside 02:00–03:00: where clocks change, that hour does not exist once a year, and once it is there twice.
NIGHTLY_HOUR, NIGHTLY_MINUTE = 3, 30
#: A night that was missed is made up for until so long after.
CATCH_UP = timedelta(hours=12)

log = structlog.get_logger()


def nightly_spec(time_zone: str) -> ScheduleSpec:
    """Once a night, by the wall clocks of the time zone."""
    at = ScheduleCalendarSpec(hour=[ScheduleRange(NIGHTLY_HOUR)], minute=[ScheduleRange(NIGHTLY_MINUTE)])
    return ScheduleSpec(calendars=[at], time_zone_name=time_zone)


def schedules(settings: Settings) -> dict[str, Schedule]:
    """By id. An overlapping run is skipped: the one before still looks."""
    guard = ScheduleSpec(intervals=[ScheduleIntervalSpec(every=GUARD_EVERY)])
    return {
        "guard": _schedule(RunKind.GUARD, guard, GUARD_EVERY, "Finds orders that nobody looks after"),
        "nightly-reconciliation": _schedule(
            RunKind.NIGHTLY,
            nightly_spec(settings.reconcile_time_zone),
            CATCH_UP,
            "Compares a month of orders with the gateway, the courier and the stock",
        ),
    }


def _schedule(kind: RunKind, spec: ScheduleSpec, catch_up: timedelta, summary: str) -> Schedule:
    return Schedule(
        action=ScheduleActionStartWorkflow(
            "ReconciliationWorkflow",
            ReconciliationInput(kind=kind),
            id=kind.value,
            task_queue=Queue.ORDERS,
            static_summary=summary,
        ),
        spec=spec,
        policy=SchedulePolicy(overlap=ScheduleOverlapPolicy.SKIP, catchup_window=catch_up),
        state=ScheduleState(note=summary),
    )


async def ensure_schedules(client: Client, settings: Settings) -> None:
    """Makes the schedules, or brings those that are there up to these settings; one that is paused stays paused.

    A server that does not let us is told of in the log: who may work need not be allowed to plan.
    """
    for name, schedule in schedules(settings).items():
        try:
            await _ensure(client, name, schedule)
        except RPCError as error:
            log.warning("schedule_not_made", schedule=name, error=error.status.name)


async def _ensure(client: Client, name: str, schedule: Schedule) -> None:
    try:
        await client.create_schedule(name, schedule)
    except ScheduleAlreadyRunningError:

        def renewed(known: ScheduleUpdateInput) -> ScheduleUpdate:
            schedule.state = known.description.schedule.state
            return ScheduleUpdate(schedule=schedule)

        await client.get_schedule_handle(name).update(renewed)


async def run_now(client: Client, kind: RunKind) -> RunResult:
    """One run beside those of the schedule, and how it ended. Raises RPCError, or WorkflowFailureError."""
    result: RunResult = await client.execute_workflow(
        "ReconciliationWorkflow",
        ReconciliationInput(kind=kind),
        id=f"{kind.value}-by-hand-{uuid4()}",
        task_queue=Queue.ORDERS,
        result_type=RunResult,
    )
    return result
