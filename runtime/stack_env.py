"""The settings of an embedded stack: what people gave, completed by the servers that the stack starts itself."""

import os
from collections.abc import Mapping
from pathlib import Path

from pydantic_settings import BaseSettings

from runtime.home import Home
from runtime.ports import free_ports
from runtime.postgres import PostgresServer
from runtime.settings import Settings
from runtime.split import party_role
from runtime.temporal import PROFILE_VARIABLES
from workflows.names import Queue

LOOPBACK = "127.0.0.1"
FILE = "stack.env"
#: Fields of the ports that processes and commands find each other by. A worker's metrics are its own affair: another
#: worker, started by hand beside the stack, must not want the same port.
PORTS = tuple(name for name in Settings.model_fields if name.endswith("_port") and name != "worker_metrics_port")


def isolated_settings(home: Path, **changes: object) -> Settings:
    """Settings of a stack that shares nothing with others: defaults, free ports, nothing from the environment."""
    for name in [name for name in os.environ if name.startswith("TEMPORAL_")]:
        del os.environ[name]
    values = {name: field.get_default(call_default_factory=True) for name, field in Settings.model_fields.items()}
    free = dict(zip(PORTS, free_ports(len(PORTS)), strict=True))
    return Settings(_env_file=None, **(values | free | {"orders_home": home} | changes))


def own_servers(settings: Settings) -> frozenset[str]:
    """Which servers the stack has to start, because nobody named another: postgres, temporal, gateway, …"""
    given = {
        "postgres": settings.database_url,
        "temporal": settings.temporal_address or any(os.environ.get(name) for name in PROFILE_VARIABLES),
        "gateway": settings.stripe_api_base or settings.stripe_api_key,
        "courier": settings.courier_api_base,
        "fraud": settings.fraud_api_base,
        "mail": settings.smtp_url,
    }
    return frozenset(name for name, value in given.items() if not value)


def own_settings(settings: Settings, *, split: bool = False) -> dict[str, object]:
    """Addresses and secrets of the stack's own servers, by field. Secrets are made once and kept in the home.

    `split`: each party has a database role of its own.
    """
    home, own = Home(settings.orders_home), own_servers(settings)
    home.create()
    found: dict[str, object] = {name: getattr(settings, name) for name in PORTS}
    # Its workers are restarted in place: there is no old build beside the new one that could end its orders.
    found["worker_build_id"] = None
    if "postgres" in own:
        server = PostgresServer(home.path, settings.postgres_port)
        found["database_url"] = server.url()
        for party in Queue:
            found[f"database_url_{party}"] = server.url(role=party_role(party)) if split else None
    if "temporal" in own:
        found["temporal_address"] = f"{LOOPBACK}:{settings.temporal_port}"
    if "gateway" in own:
        found["stripe_api_base"] = f"http://{LOOPBACK}:{settings.sim_gateway_port}"
        found["stripe_api_key"] = f"sk_test_{home.secret('stripe-key')}"
        if not settings.stripe_webhook_secrets:
            found["stripe_webhook_secrets"] = (f"whsec_{home.secret('stripe-webhook')}",)
    if "courier" in own:
        found["courier_api_base"] = f"http://{LOOPBACK}:{settings.sim_courier_port}"
        if not settings.courier_webhook_secrets:
            found["courier_webhook_secrets"] = (home.secret("courier-webhook"),)
    if "fraud" in own:
        found["fraud_api_base"] = f"http://{LOOPBACK}:{settings.sim_fraud_port}"
    if "mail" in own:
        found["smtp_url"] = f"smtp://{LOOPBACK}:{settings.sim_smtp_port}"
    return found


def as_environment(values: Mapping[str, object]) -> dict[str, str]:
    """Fields of Settings as the variables that Settings reads back; fields without a value are left out."""
    return {name.upper(): _text(value) for name, value in values.items() if value not in (None, (), {})}


def children_environment(settings: Settings, *, split: bool = False) -> dict[str, str]:
    """What the stack's processes see: the settings and nothing else that Settings or Temporal would read."""
    names = {name.upper() for name in Settings.model_fields}
    given = "temporal" not in own_servers(settings)
    inherited = {
        name: value
        for name, value in os.environ.items()
        if name.upper() not in names and (given or not name.startswith("TEMPORAL_"))
    }
    completed: BaseSettings = settings.model_copy(update=own_settings(settings, split=split))
    return inherited | as_environment(dict(completed))


def write_stack_env(settings: Settings, *, split: bool = False) -> None:
    """Tells commands that run beside the stack where its servers are. What people gave is not copied into it."""
    lines = [f"{name}={value}" for name, value in sorted(as_environment(own_settings(settings, split=split)).items())]
    Home(settings.orders_home).write(FILE, "# Written by `make up`.\n" + "\n".join(lines) + "\n")


def _text(value: object) -> str:
    if isinstance(value, Mapping):
        return ",".join(f"{key}={item}" for key, item in value.items())
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(value) if isinstance(value, tuple) else str(value)
