"""The way to the Temporal server, told by our settings or by Temporal's own variables and profiles."""

import asyncio
import os
from collections.abc import Sequence
from functools import cache

from google.protobuf.duration_pb2 import Duration
from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.namespace.v1 import NamespaceConfig
from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest, ListSearchAttributesRequest
from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest, UpdateNamespaceRequest
from temporalio.client import Client, Plugin
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.envconfig import ClientConfig, ClientConnectConfig
from temporalio.runtime import LoggingConfig, LoggingFormat, Runtime, TelemetryConfig, TelemetryFilter
from temporalio.service import RPCError, RPCStatusCode

from runtime.entry import ServerUnavailable
from runtime.settings import Settings, SettingsError
from workflows.names import SEARCH_ATTRIBUTES

#: A command without a server ends within 10 s; this leaves time for its own start.
GIVE_UP_SECONDS = 8
#: Ways of Temporal's own to name a server, besides TEMPORAL_ADDRESS.
PROFILE_VARIABLES = ("TEMPORAL_PROFILE", "TEMPORAL_CONFIG_FILE")
#: How long a closed workflow's history can be looked at.
RETENTION_DAYS = 30


async def connect(
    settings: Settings, *, wait: bool = False, runtime: Runtime | None = None, plugins: Sequence[Plugin] = ()
) -> Client:
    """A client whose messages are pydantic models. `runtime`: the process's own, where it is not the usual one.

    Raises ServerUnavailable when the server does not answer within GIVE_UP_SECONDS or does not know the namespace;
    with `wait` it keeps trying instead. Raises SettingsError when no address is known or the profile is wrong.
    """
    config = connect_config(settings)
    delay = 0.2
    while True:
        try:
            return await _connect(config, runtime or _runtime(), plugins)
        except ServerUnavailable:
            if not wait:
                raise
        await asyncio.sleep(delay)
        delay = min(delay * 2, 5)


async def connect_lazily(settings: Settings, plugins: Sequence[Plugin] = ()) -> Client:
    """A client that connects with its first call: for a process that has work to do while Temporal is down.

    Raises SettingsError when no address is known or the settings are wrong.
    """
    config = connect_config(settings)
    try:
        return await Client.connect(
            **config, data_converter=pydantic_data_converter, runtime=_runtime(), plugins=plugins, lazy=True
        )
    except ValueError as error:
        raise SettingsError(f"TEMPORAL_ADDRESS is wrong: {error}") from None


def connect_config(settings: Settings) -> ClientConnectConfig:
    """Address, namespace and credentials.

    The settings go before a profile's address and namespace, unless a variable asks for that very profile.
    """
    asked = any(os.environ.get(name) for name in PROFILE_VARIABLES)
    try:
        # The default profile's credentials belong to the default profile's server, not to the one we were told.
        alone = bool(settings.temporal_address) and not asked
        config = ClientConfig.load_client_connect_config(disable_file=alone)
    except (RuntimeError, OSError, ValueError) as error:
        raise SettingsError(f"Temporal's own settings are wrong: {error}") from None
    if settings.temporal_address and not (asked and config.get("target_host")):
        config["target_host"] = settings.temporal_address
    if settings.temporal_namespace and not (asked and config.get("namespace")):
        config["namespace"] = settings.temporal_namespace
    settings.need(config.get("target_host"), "TEMPORAL_ADDRESS")
    return config


async def ensure_search_attributes(client: Client) -> None:
    """Registers those that are missing in the client's namespace; once for a server, harmless again."""
    operator = client.operator_service
    known = await operator.list_search_attributes(ListSearchAttributesRequest(namespace=client.namespace))
    wanted = {key.name: IndexedValueType.ValueType(key.indexed_value_type) for key in SEARCH_ATTRIBUTES}
    missing = {name: kind for name, kind in wanted.items() if name not in known.custom_attributes}
    if missing:
        request = AddSearchAttributesRequest(namespace=client.namespace, search_attributes=missing)
        await operator.add_search_attributes(request)


async def keep_histories(client: Client) -> None:
    """Sets the namespace's retention to RETENTION_DAYS; a development server keeps one day."""
    config = NamespaceConfig(workflow_execution_retention_ttl=Duration(seconds=RETENTION_DAYS * 86_400))
    await client.workflow_service.update_namespace(UpdateNamespaceRequest(namespace=client.namespace, config=config))


async def _connect(config: ClientConnectConfig, runtime: Runtime, plugins: Sequence[Plugin]) -> Client:
    address, namespace = config["target_host"], config.get("namespace", "default")
    try:
        async with asyncio.timeout(GIVE_UP_SECONDS):
            client = await Client.connect(
                **config, data_converter=pydantic_data_converter, runtime=runtime, plugins=plugins
            )
            await _check_namespace(client, namespace)
            return client
    except ValueError as error:
        raise SettingsError(f"TEMPORAL_ADDRESS is wrong: {error}") from None
    except (RuntimeError, RPCError, TimeoutError) as error:
        if isinstance(error, RPCError) and error.status is RPCStatusCode.NOT_FOUND:
            raise ServerUnavailable(f"Temporal at {address} has no namespace {namespace!r}") from None
        raise ServerUnavailable(f"Temporal at {address} does not answer: is `make up` running?") from None


async def _check_namespace(client: Client, namespace: str) -> None:
    try:
        await client.workflow_service.describe_namespace(DescribeNamespaceRequest(namespace=namespace))
    except RPCError as error:
        if error.status is not RPCStatusCode.PERMISSION_DENIED:  # a key may be allowed to work but not to look
            raise


def json_logging() -> LoggingConfig:
    """The SDK's own log lines as JSON like all others."""
    return LoggingConfig(filter=TelemetryFilter(core_level="WARN", other_level="ERROR"), format=LoggingFormat.JSON)


@cache
def _runtime() -> Runtime:
    """One for the process."""
    return Runtime(telemetry=TelemetryConfig(logging=json_logging()))
