"""Two builds of the workers side by side: orders end on the build that began them, new ones go to the current one."""

import asyncio
import sys
from asyncio.subprocess import PIPE, STDOUT
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
import pytest_asyncio
import structlog
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.testing import WorkflowEnvironment

from adapters.database import Database
from adapters.orders import read_order
from domain.keys import Step
from domain.messages import OrderResult, RedriveStep
from domain.order import RedriveAction
from events.relay import start_order
from runtime import deployment
from runtime.deployment import current_build, known_builds, make_current, worker_version
from runtime.entry import EntryError
from runtime.settings import Settings
from runtime.workers import running_workers
from simulators import Config, Simulators
from tests.builders import an_accepted_order, the_fixture_products
from tests.commands import Ended, command, plain_environment
from tests.gates import Gate, Gates, a_bug
from tests.integration.conftest import FAST
from tests.polling import eventually
from tests.shop import QUICK
from workflows.names import SEARCH_ATTRIBUTES, Queue, order_workflow_id

TEMPORAL = str(Path(sys.executable).parent / "temporal")
#: So that a build tells soon that it became the current one.
SOON = 0.1


class Town:
    """A database, providers and a Temporal server, on which builds of the workers come and go."""

    def __init__(self, client: Client, database: Database, simulators: Simulators, home: Path) -> None:
        self.client = client
        self.database = database
        self.home = home
        self._settings = Settings(
            _env_file=None,
            database_url=database.url,
            stripe_api_key="sk_test_of_the_tests",
            stripe_api_base=simulators.gateway_url,
            courier_api_base=simulators.courier_url,
            fraud_api_base=simulators.fraud_url,
            worker_build_id=None,
            deployment_name="orders",
        )

    def settings(self, build: str | None) -> Settings:
        """What a worker of this build is told."""
        return self._settings.model_copy(update={"worker_build_id": build})

    @asynccontextmanager
    async def build(self, build: str | None, *, queues: tuple[Queue, ...] = tuple(Queue)) -> AsyncIterator[Gates]:
        """Workers of one build, and gates in front of their activities."""
        gates = Gates()
        async with running_workers(self.client, self.settings(build), queues, QUICK, [gates]):
            yield gates

    async def promote(self, build: str, *, within_seconds: float = 20) -> None:
        """Makes a build the current one."""
        version = worker_version(self.settings(build))
        assert version is not None
        await make_current(self.client, version, within_seconds=within_seconds)

    async def order(self) -> str:
        """A started order for 50.00."""
        order_id = await an_accepted_order(self.database)
        await start_order(self.client, order_id, customer_id="ada", total=5000, currency="EUR")
        return order_id

    async def parked(self, gates: Gates) -> tuple[str, Gate]:
        """An order that waits for an operator, and what keeps it there."""
        order_id = await self.order()
        bug = gates.fail(order_id, Step.RESERVE_STOCK, a_bug)

        async def look() -> bool:
            view = await read_order(self.database, order_id)
            return view is not None and bool(view.needs_review)

        await eventually(look, within_seconds=20)
        return order_id, bug

    async def retry(self, order_id: str) -> None:
        """An operator's word on the parked order."""
        word = RedriveStep(step=Step.RESERVE_STOCK, action=RedriveAction.RETRY, actor="tests", reason="tests")
        await self.client.get_workflow_handle(order_workflow_id(order_id)).execute_update("redrive_step", word)

    async def ended(self, order_id: str) -> OrderResult:
        """How the order ended."""
        handle = self.client.get_workflow_handle(order_workflow_id(order_id), result_type=OrderResult)
        result: OrderResult = await handle.result()
        return result

    async def builds_of(self, order_id: str) -> set[str]:
        """The builds on which the order's own code ran."""
        history = await self.client.get_workflow_handle(order_workflow_id(order_id)).fetch_history()
        done = EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED
        events = [event for event in history.events if event.event_type == done]
        return {event.workflow_task_completed_event_attributes.deployment_version.build_id for event in events}

    async def move(self, old: str, new: str) -> None:
        """Temporal's own command moves what is open on one build to another one."""
        words = ["workflow", "update-options", "--versioning-override-behavior", "one_time", "--yes"]
        words += ["--versioning-override-deployment-name", "orders", "--versioning-override-build-id", new]
        words += ["--query", f"TemporalWorkerDeploymentVersion = 'orders:{old}' AND ExecutionStatus = 'Running'"]
        words += ["--address", self.client.service_client.config.target_host, "--reason", "a test"]
        process = await asyncio.create_subprocess_exec(TEMPORAL, *words, stdout=PIPE, stderr=STDOUT)
        out, _ = await process.communicate()
        assert process.returncode == 0, out

    async def deploy(self, *words: str) -> Ended:
        """`ops.py deploy`, typed by an operator."""
        environment = plain_environment(self.home, TEMPORAL_ADDRESS=self.client.service_client.config.target_host)
        return await command(environment, "ops.py", "deploy", *words)


@pytest_asyncio.fixture
async def town(database: Database, tmp_path: Path) -> AsyncIterator[Town]:
    """A town in which no worker runs yet. The server is its own: builds are known to a whole namespace."""
    async with AsyncExitStack() as stack:
        environment = await stack.enter_async_context(
            await WorkflowEnvironment.start_local(
                dev_server_existing_path=TEMPORAL,
                search_attributes=SEARCH_ATTRIBUTES,
                data_converter=pydantic_data_converter,
                dev_server_extra_args=[word for setting in FAST for word in ("--dynamic-config-value", setting)],
                dev_server_log_level="error",
            )
        )
        simulators = await stack.enter_async_context(Simulators(Config(settle_seconds=0)))
        await the_fixture_products(database)
        yield Town(environment.client, database, simulators, tmp_path)


async def test_an_order_stays_on_its_build_and_new_ones_go_to_the_current_build(town: Town) -> None:
    async with town.build("v1") as old:
        await town.promote("v1")
        first, bug = await town.parked(old)
        async with town.build("v2") as new:
            ended = await town.deploy("v2")
            assert (ended.code, ended.err) == (0, "")
            assert ended.out.splitlines() == ["v2  takes new orders, 0 open", "v1  1 open: keep its workers"]
            second = await town.order()
            assert (await town.ended(second)).status == "CONFIRMED"
            bug.open()
            await town.retry(first)
            assert (await town.ended(first)).status == "CONFIRMED"
            assert await town.builds_of(first) == {"v1"}
            assert await town.builds_of(second) == {"v2"}
            # Its activities too, which may have changed together with it.
            assert (old.calls(first, Step.CAPTURE_PAYMENT), new.calls(first, Step.CAPTURE_PAYMENT)) == (1, 0)
            assert (old.calls(second, Step.CAPTURE_PAYMENT), new.calls(second, Step.CAPTURE_PAYMENT)) == (0, 1)

            async def drained() -> bool:
                return [build.open_workflows for build in await known_builds(town.client, "orders")] == [0, 0]

            assert await eventually(drained, within_seconds=30)


async def test_an_order_that_its_build_cannot_end_is_moved_to_another(town: Town) -> None:
    """As docs/changing-workflows.md says."""
    async with town.build("v1") as broken:
        await town.promote("v1")
        order, _ = await town.parked(broken)
    async with town.build("v2"):
        await town.promote("v2")
        await town.move("v1", "v2")
        await town.retry(order)
        assert (await town.ended(order)).status == "CONFIRMED"
        assert await town.builds_of(order) == {"v1", "v2"}


async def test_an_order_begun_without_a_build_goes_on_with_the_first_one_that_is_current(town: Town) -> None:
    async with town.build(None) as unversioned:
        order, _ = await town.parked(unversioned)
    async with town.build("v1"):
        await town.promote("v1")
        await town.retry(order)
        assert (await town.ended(order)).status == "CONFIRMED"
        assert await town.builds_of(order) == {"", "v1"}


async def test_a_build_that_is_not_current_takes_no_orders_and_says_so(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deployment, "LOOK_SECONDS", SOON)
    with structlog.testing.capture_logs() as lines:

        async def told(event: str) -> dict[str, object] | None:
            return next((dict(line) for line in lines if line["event"] == event), None)

        async with town.build("v1") as gates:
            line = await eventually(lambda: told("no_build_takes_orders"))
            assert line is not None
            assert (line["log_level"], line["build_id"], line["until"]) == (
                "warning",
                "v1",
                "python ops.py deploy v1",
            )
            order = await town.order()
            assert gates.calls(order, Step.OPEN_ORDER) == 0
            await town.promote("v1")
            await eventually(lambda: told("build_is_current"))
            assert (await town.ended(order)).status == "CONFIRMED"
            async with town.build("v2"):
                line = await eventually(lambda: told("build_is_not_current"))
                assert line is not None
                assert (line["build_id"], line["current_build_id"]) == ("v2", "v1")


async def test_a_build_becomes_current_only_when_every_party_runs_it(town: Town) -> None:
    async with town.build("v1", queues=(Queue.ORDERS, Queue.PAYMENTS)):
        with pytest.raises(EntryError, match="no worker of build v1 serves inventory, loyalty, shipping"):
            await town.promote("v1", within_seconds=3)
        assert await current_build(town.client, "orders") is None
        promotion = asyncio.create_task(town.promote("v1"))
        async with town.build("v1", queues=(Queue.INVENTORY, Queue.LOYALTY, Queue.SHIPPING)):
            await promotion
            assert [build.build_id for build in await known_builds(town.client, "orders") if build.current] == ["v1"]


async def test_without_builds_there_is_nothing_to_show(town: Town) -> None:
    ended = await town.deploy()
    assert (ended.code, ended.out) == (0, "no worker has a build id: each takes whatever comes\n")
