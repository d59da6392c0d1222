"""Workers of some queues in this process, with the relay and the webhook delivery beside the orders queue."""

import asyncio
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta

from temporalio.client import Client
from temporalio.worker import Interceptor, PollerBehaviorAutoscaling, Worker
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions

from activities.boundary import ErrorBoundary
from activities.measured import StepMeter
from adapters.database import POOL_SIZE, Database
from domain.policy import OrderPolicy
from events.delivery import Delivery
from events.relay import Relay
from runtime.deployment import told_when_current, versioned, worker_version
from runtime.measures import meter_of
from runtime.parties import open_party
from runtime.settings import Settings
from workflows.leftovers import LeftoversWorkflow
from workflows.money import MoneyWorkflow
from workflows.names import Queue
from workflows.order import OrderWorkflow
from workflows.reconciliation import ReconciliationWorkflow

WORKFLOWS = (OrderWorkflow, MoneyWorkflow, LeftoversWorkflow, ReconciliationWorkflow)

#: What a workflow imports is not imported anew for each order: that was a seventh of all CPU of an order. These modules
#: are held to the sandbox's rules by a walk over their source (`tests/workflow_rules.py`).
PASSED_THROUGH = (
    "domain",
    "pydantic",
    *(
        f"workflows.{name}"
        for name in (
            "calls",
            "compensation",
            "dead_runs",
            "details",
            "names",
            "options",
            "parking",
            "payment",
            "review",
            "stage",
            "steps",
        )
    ),
)

#: Steps of one queue that run at once: twice what its pool may grow to, since a step that waits for a provider holds no
#: connection meanwhile. More would only wait inside their time-out, and a worker that comes back to a long queue would
#: cancel orders that way.
STEPS_AT_ONCE = 4 * POOL_SIZE

#: Above this many open orders a worker replays their histories from the server, at four times the CPU.
CACHED_WORKFLOWS = 2000
#: Steps in flight at a stop have this long to end: most of their time-out. One that takes longer is given up here and
#: tried again by another worker. All queues stop at once, so a supervisor waits this long and a little more.
GRACE_SECONDS = 8


def workflow_runner() -> SandboxedWorkflowRunner:
    """How workflows are run, by workers and by the replay of recorded histories alike."""
    return SandboxedWorkflowRunner(restrictions=SandboxRestrictions.default.with_passthrough_modules(*PASSED_THROUGH))


@asynccontextmanager
async def running_workers(
    client: Client,
    settings: Settings,
    queues: Collection[Queue],
    policy: OrderPolicy | None = None,
    interceptors: Sequence[Interceptor] = (),
) -> AsyncIterator[None]:
    """Serves the queues until the block ends; what is in flight then may finish.

    With a build id they take only orders of their own build, and new ones once that build is current.
    `interceptors` stand inside the error boundary: what they raise is told as the activity's own.
    Raises SettingsError when a setting of one of the parties is missing.
    """
    version, measured = worker_version(settings), StepMeter(meter_of(client))
    stopping, workers = asyncio.Event(), list[Worker]()
    async with AsyncExitStack() as stack:
        for queue in queues:
            activities = await stack.enter_async_context(open_party(queue, settings, client, policy))
            worker = Worker(
                client,
                task_queue=queue.value,
                activities=activities,
                workflows=WORKFLOWS if queue is Queue.ORDERS else [],
                workflow_runner=workflow_runner(),
                interceptors=[measured, ErrorBoundary(), *interceptors],
                max_cached_workflows=CACHED_WORKFLOWS,
                max_concurrent_activities=STEPS_AT_ONCE,
                workflow_task_poller_behavior=PollerBehaviorAutoscaling(),
                activity_task_poller_behavior=PollerBehaviorAutoscaling(),
                graceful_shutdown_timeout=timedelta(seconds=GRACE_SECONDS),
                deployment_config=versioned(version),
            )
            workers.append(await stack.enter_async_context(worker))
            if queue is Queue.ORDERS:
                await stack.enter_async_context(_running_messages(client, settings, stopping))
        await stack.enter_async_context(told_when_current(client, version))
        await stack.enter_async_context(_stopping_together(workers, stopping))
        yield


@asynccontextmanager
async def _stopping_together(workers: Collection[Worker], stopping: asyncio.Event) -> AsyncIterator[None]:
    try:
        yield
    finally:
        stopping.set()
        await asyncio.gather(*(worker.shutdown() for worker in workers))


@asynccontextmanager
async def _running_messages(client: Client, settings: Settings, stop: asyncio.Event) -> AsyncIterator[None]:
    database = Database(settings.database_for(Queue.ORDERS), application="messages")
    loops = [
        asyncio.create_task(Relay(database, client, meter_of(client)).run(stop)),
        asyncio.create_task(Delivery(database, client).run(stop)),
    ]
    try:
        yield
    finally:
        stop.set()
        await asyncio.gather(*loops)
        await database.close()
