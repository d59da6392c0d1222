"""The way to the Temporal server, told by our settings or by Temporal's own variables and profiles."""

import asyncio
import os
from functools import cache

from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
from temporalio.client import Client
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.envconfig import ClientConfig, ClientConnectConfig
from temporalio.runtime import LoggingConfig, LoggingFormat, Runtime, TelemetryConfig, TelemetryFilter
from temporalio.service import RPCError, RPCStatusCode

from runtime.entry import ServerUnavailable
from runtime.settings import Settings, SettingsError

#: A command without a server ends within 10 s; this leaves time for its own start.
GIVE_UP_SECONDS = 8


async def connect(settings: Settings, *, wait: bool = False) -> Client:
    """A client whose messages are pydantic models.

    Raises ServerUnavailable when the server does not answer within GIVE_UP_SECONDS or does not know the namespace;
    with `wait` it keeps trying instead. Raises SettingsError when no address is known or the profile is wrong.
    """
    config = connect_config(settings)
    delay = 0.2
    while True:
        try:
            return await _connect(config)
        except ServerUnavailable:
            if not wait:
                raise
        await asyncio.sleep(delay)
        delay = min(delay * 2, 5)


def connect_config(settings: Settings) -> ClientConnectConfig:
    """Address, namespace and credentials.

    The settings go before a profile's address and namespace, unless TEMPORAL_PROFILE asks for that profile.
    """
    try:
        config = ClientConfig.load_client_connect_config()
    except (RuntimeError, OSError, ValueError) as error:
        raise SettingsError(f"Temporal's own settings are wrong: {error}") from None
    asked = "TEMPORAL_PROFILE" in os.environ
    if settings.temporal_address and not (asked and config.get("target_host")):
        config["target_host"] = settings.temporal_address
    if settings.temporal_namespace and not (asked and config.get("namespace")):
        config["namespace"] = settings.temporal_namespace
    settings.need(config.get("target_host"), "TEMPORAL_ADDRESS")
    return config


async def _connect(config: ClientConnectConfig) -> Client:
    address, namespace = config["target_host"], config.get("namespace", "default")
    try:
        async with asyncio.timeout(GIVE_UP_SECONDS):
            client = await Client.connect(**config, data_converter=pydantic_data_converter, runtime=_runtime())
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


@cache
def _runtime() -> Runtime:
    """One for the process: the SDK's own log lines as JSON like all others."""
    levels = TelemetryFilter(core_level="WARN", other_level="ERROR")
    return Runtime(telemetry=TelemetryConfig(logging=LoggingConfig(filter=levels, format=LoggingFormat.JSON)))
