"""Versions of the workers: which build takes new orders, and which builds still have some of theirs.

With WORKER_BUILD_ID set an order ends on the build that began it. A build that was never made current takes no orders.
"""

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

import structlog
from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.workflowservice.v1 import (
    DescribeWorkerDeploymentRequest,
    DescribeWorkerDeploymentVersionRequest,
    SetWorkerDeploymentCurrentVersionRequest,
)
from temporalio.client import Client
from temporalio.common import VersioningBehavior, WorkerDeploymentVersion
from temporalio.service import RPCError, RPCStatusCode
from temporalio.worker import WorkerDeploymentConfig

from runtime.entry import EntryError
from runtime.settings import Settings
from workflows.names import Queue

#: A worker polls a second or two after its start; a command waits longer than a slow start takes.
FIRST_POLL_SECONDS = 60
#: How soon a worker's log tells that it became the current version.
LOOK_SECONDS = 5.0

log = structlog.get_logger()


@dataclass(frozen=True)
class Build:
    """One known build of the workers. `open_workflows`: orders, and late money, that end on it."""

    build_id: str
    current: bool
    open_workflows: int


def worker_version(settings: Settings) -> WorkerDeploymentVersion | None:
    """The version of this process, or None: without a build id workers are restarted in place."""
    if settings.worker_build_id is None:
        return None
    return WorkerDeploymentVersion(deployment_name=settings.deployment_name, build_id=settings.worker_build_id)


def versioned(version: WorkerDeploymentVersion | None) -> WorkerDeploymentConfig | None:
    """How a worker of this version takes work: pinned, so an order's steps too go to the build that began it."""
    if version is None:
        return None
    return WorkerDeploymentConfig(
        version=version, use_worker_versioning=True, default_versioning_behavior=VersioningBehavior.PINNED
    )


@asynccontextmanager
async def told_when_current(client: Client, version: WorkerDeploymentVersion | None) -> AsyncIterator[None]:
    """Until the block ends, the log tells whether new orders come to this version, and each change of it."""
    if version is None:
        yield
        return
    telling = asyncio.create_task(_tell(client, version))
    try:
        yield
    finally:
        telling.cancel()
        await asyncio.gather(telling, return_exceptions=True)


async def _tell(client: Client, version: WorkerDeploymentVersion) -> None:
    told: set[str | None] = set()
    while True:
        # Who may work need not be allowed to look, and a server that is down is told of by the worker itself.
        with suppress(RPCError):
            current = await current_build(client, version.deployment_name)
            if current not in told:
                told = {current}
                _tell_once(version, current)
        await asyncio.sleep(LOOK_SECONDS)


def _tell_once(version: WorkerDeploymentVersion, current: str | None) -> None:
    facts = {"deployment": version.deployment_name, "build_id": version.build_id}
    if current == version.build_id:
        log.info("build_is_current", **facts)
    elif current is None:
        log.warning("no_build_takes_orders", until=f"python ops.py deploy {version.build_id}", **facts)
    else:
        log.info("build_is_not_current", current_build_id=current, **facts)


async def current_build(client: Client, deployment_name: str) -> str | None:
    """The build that takes new orders, None while there is none. Raises RPCError."""
    request = DescribeWorkerDeploymentRequest(namespace=client.namespace, deployment_name=deployment_name)
    try:
        answer = await client.workflow_service.describe_worker_deployment(request)
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            return None
        raise
    return answer.worker_deployment_info.routing_config.current_deployment_version.build_id or None


async def make_current(
    client: Client, version: WorkerDeploymentVersion, *, within_seconds: float = FIRST_POLL_SECONDS
) -> None:
    """New orders go to this version from now on. Idempotent: the current version stays what it is.

    Waits until workers of it serve every queue: an order that begins on it could not go on elsewhere.
    Raises EntryError when they do not within the time, or when the server refuses.
    """
    deadline = asyncio.get_running_loop().time() + within_seconds
    while missing := set(Queue) - await _served(client, version):
        if asyncio.get_running_loop().time() > deadline:
            raise EntryError(_nobody_serves(version, missing))
        await asyncio.sleep(0.2)
    request = SetWorkerDeploymentCurrentVersionRequest(
        namespace=client.namespace,
        deployment_name=version.deployment_name,
        build_id=version.build_id,
        identity=client.identity,
    )
    try:
        await client.workflow_service.set_worker_deployment_current_version(request)
    except RPCError as error:
        if error.status is not RPCStatusCode.FAILED_PRECONDITION:
            raise
        raise EntryError(f"build {version.build_id} cannot become current: {error.message}") from None


def _nobody_serves(version: WorkerDeploymentVersion, missing: Collection[Queue]) -> str:
    queues = ", ".join(sorted(missing))
    start = f"start them with WORKER_BUILD_ID={version.build_id} first"
    return f"no worker of build {version.build_id} serves {queues}: {start}"


async def _served(client: Client, version: WorkerDeploymentVersion) -> set[Queue]:
    """The queues that workers of this version have polled, for workflows where there are some."""
    request = DescribeWorkerDeploymentVersionRequest(namespace=client.namespace)
    request.deployment_version.deployment_name = version.deployment_name
    request.deployment_version.build_id = version.build_id
    try:
        answer = await client.workflow_service.describe_worker_deployment_version(request)
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            return set()
        raise
    polled = {(info.name, info.type) for info in answer.worker_deployment_version_info.task_queue_infos}
    found = {queue for queue in Queue if (queue, TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY) in polled}
    return found if (Queue.ORDERS, TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW) in polled else found - {Queue.ORDERS}


async def known_builds(client: Client, deployment_name: str) -> list[Build]:
    """All builds that the server knows, the newest first, with what they still have to end."""
    request = DescribeWorkerDeploymentRequest(namespace=client.namespace, deployment_name=deployment_name)
    try:
        info = (await client.workflow_service.describe_worker_deployment(request)).worker_deployment_info
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            return []
        raise
    current = info.routing_config.current_deployment_version.build_id
    summaries = sorted(info.version_summaries, key=lambda one: one.create_time.ToNanoseconds(), reverse=True)
    ids = [one.deployment_version.build_id for one in summaries]
    return [Build(one, one == current, await _open_workflows(client, deployment_name, one)) for one in ids]


async def _open_workflows(client: Client, deployment_name: str, build_id: str) -> int:
    query = f"TemporalWorkerDeploymentVersion = '{deployment_name}:{build_id}' AND ExecutionStatus = 'Running'"
    return (await client.count_workflows(query)).count
