"""Each service of ours in docker-compose.yml starts: its very command, its very variables, the image's very files.

Only addresses are changed to those of the test's servers, and ports to free ones.
"""

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import psycopg
import pytest
import pytest_asyncio
from sqlalchemy import make_url
from temporalio.api.operatorservice.v1 import ListSearchAttributesRequest
from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
from temporalio.client import Client

from runtime.ports import free_port, free_ports
from runtime.postgres import ADMIN, PostgresServer
from runtime.temporal import RETENTION_DAYS
from simulators import Config, Simulators
from tests.composed import Service, services, unpack_image, variables_used
from tests.imports import ROOT
from workflows.names import SEARCH_ATTRIBUTES, Queue

VARIABLES = {name: "madeup" for name, default in variables_used().items() if default is None}
READY_SECONDS = 30


@pytest.fixture(scope="session")
def image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of the image."""
    return unpack_image(tmp_path_factory.mktemp("image"))


def address(client: Client) -> str:
    """Where the test's Temporal server listens."""
    return client.service_client.config.target_host


def environment(service: Service, **elsewhere: str) -> dict[str, str]:
    """The container's variables, with the addresses of `elsewhere`: those that the service has, and no others."""
    own = {name: elsewhere.get(name, value) for name, value in service.environment.items()}
    return {"PATH": os.environ["PATH"], "PYTHONUNBUFFERED": "1", **own}


@asynccontextmanager
async def running(command: list[str], image: Path, env: dict[str, str]) -> AsyncIterator[asyncio.subprocess.Process]:
    """The command, until the block ends."""
    process = await asyncio.create_subprocess_exec(
        *command, cwd=image, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.terminate()
        await process.communicate()


async def make_namespace(client: Client, namespace: str, image: Path) -> None:
    """Runs the service that makes the namespace."""
    service = services(VARIABLES)["temporal-namespace"]
    script = [part.replace("/compose/", f"{ROOT}/compose/") for part in service.raw["entrypoint"]]
    env = environment(service, TEMPORAL_ADDRESS=address(client), TEMPORAL_NAMESPACE=namespace)
    env["PATH"] = f"{Path(sys.executable).parent}:{env['PATH']}"  # where the server's wheel puts `temporal`
    async with running(script, image, env) as process:
        output, _ = await process.communicate()
    assert process.returncode == 0, output


@pytest_asyncio.fixture(scope="session")
async def namespace(temporal: Client, image: Path) -> str:
    """A namespace of its own on the session's server: other tests' sagas are not this worker's business."""
    name = f"composed-{free_port()}"
    await make_namespace(temporal, name, image)
    return name


async def says(process: asyncio.subprocess.Process, words: str) -> None:
    """Waits for a line of output with these words."""
    assert process.stdout is not None
    seen = []
    async with asyncio.timeout(READY_SECONDS):
        async for line in process.stdout:
            seen.append(line.decode())
            if words in seen[-1]:
                return
    pytest.fail(f"it ended without {words!r}: {''.join(seen)}")


@pytest_asyncio.fixture(scope="session")
async def urls(postgres: PostgresServer, image: Path) -> dict[str, str]:
    """By variable: the addresses of a database that the service `migrate` has built, parties' roles and all."""
    await postgres.create_database("composed")
    service = services(VARIABLES)["migrate"]
    here = make_url(postgres.url("composed", ADMIN))
    found = {
        name: make_url(url)
        .set(host=here.host, port=here.port, database=here.database)
        .render_as_string(hide_password=False)
        for name, url in service.environment.items()
    } | {"DATABASE_URL": here.render_as_string(hide_password=False)}
    async with running(service.command, image, environment(service, **found)) as process:
        output, _ = await process.communicate()
    assert process.returncode == 0, output
    return found


async def test_migrate_builds_the_schema_and_lets_each_party_in(urls: dict[str, str]) -> None:
    for url in urls.values():
        async with await psycopg.AsyncConnection.connect(url) as connection:
            assert (await (await connection.execute("SELECT count(*) FROM order_steps")).fetchone()) == (0,)


@pytest.mark.parametrize("party", list(Queue))
async def test_a_partys_worker_serves_its_queue(
    urls: dict[str, str], temporal: Client, namespace: str, image: Path, party: Queue
) -> None:
    service = services(VARIABLES)[f"worker-{party}"]
    env = environment(service, **urls, TEMPORAL_ADDRESS=address(temporal), TEMPORAL_NAMESPACE=namespace)
    async with running(service.command, image, env) as process:
        await says(process, "worker_ready")


async def test_the_api_is_healthy(urls: dict[str, str], temporal: Client, image: Path) -> None:
    shopper, operator = (str(port) for port in free_ports(2))
    service = services(VARIABLES)["api"]
    env = environment(service, **urls, TEMPORAL_ADDRESS=address(temporal))
    # In its container it has the default ports to itself.
    env |= {"HTTP_PORT": shopper, "OPS_PORT": operator}
    probe = [word.replace(":8080", f":{shopper}") for word in service.healthcheck]
    async with running(service.command, image, env) as process:
        await says(process, "api_listening")
        async with running(probe, image, env) as health:
            output, _ = await health.communicate()
    assert health.returncode == 0, output


async def test_the_operator_proves_the_books(
    urls: dict[str, str], temporal: Client, namespace: str, image: Path
) -> None:
    service = services(VARIABLES)["operator"]
    async with Simulators(Config()) as providers:
        env = environment(
            service,
            **urls,
            TEMPORAL_ADDRESS=address(temporal),
            TEMPORAL_NAMESPACE=namespace,
            STRIPE_API_BASE=providers.gateway_url,
            COURIER_API_BASE=providers.courier_url,
        )
        async with running(service.command, image, env) as process:
            output, _ = await process.communicate()
    assert process.returncode == 0, output


@pytest.mark.parametrize("command", ["worker.py", "starter.py", "ops.py"])
async def test_the_image_has_what_its_commands_need(command: str, image: Path) -> None:
    async with running([sys.executable, command, "--help"], image, {"PATH": os.environ["PATH"]}) as process:
        output, _ = await process.communicate()
    assert process.returncode == 0, output


async def test_the_simulators_listen(image: Path, tmp_path: Path) -> None:
    service = services(VARIABLES)["simulators"]
    command = [word.replace("/data", str(tmp_path)) for word in service.command]
    ports = ("gateway", "courier", "fraud", "smtp", "mail")
    command += [f"--{name}-port={port}" for name, port in zip(ports, free_ports(len(ports)), strict=True)]
    async with running(command, image, environment(service)) as process:
        await says(process, "simulators ready")


async def test_the_namespace_is_made_and_made_again(temporal: Client, namespace: str, image: Path) -> None:
    await make_namespace(temporal, namespace, image)
    found = await temporal.workflow_service.describe_namespace(DescribeNamespaceRequest(namespace=namespace))
    assert found.config.workflow_execution_retention_ttl.ToTimedelta().days == RETENTION_DAYS
    known = await temporal.operator_service.list_search_attributes(ListSearchAttributesRequest(namespace=namespace))
    wanted = {key.name: int(key.indexed_value_type) for key in SEARCH_ATTRIBUTES}
    assert {name: int(known.custom_attributes[name]) for name in wanted} == wanted
