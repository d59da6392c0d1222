"""What each process of a split stack is told: its own settings, and none that only others need."""

from collections.abc import Mapping

from runtime.settings import Settings
from workflows.names import Queue

_COMMON = frozenset({"log_level", "temporal_address", "temporal_namespace"}) | {
    "otel_exporter_otlp_endpoint",
    "otel_traces_sampler_arg",
}
_WORKER = _COMMON | {"worker_metrics_port", "bind_host", "auth_mode", "open_beyond_loopback"}

#: By process: every setting that it reads. `ORDERS_HOME` is not among them: the file with everybody's secrets is there.
OWN_SETTINGS: dict[str, frozenset[str]] = {
    Queue.ORDERS: _WORKER
    | {"database_url_orders", "fraud_api_base", "provider_timeout_seconds"}
    | {"payment_deadline_seconds", "review_deadline_seconds", "review_limits", "reconcile_time_zone"},
    Queue.INVENTORY: _WORKER | {"database_url_inventory"},
    Queue.LOYALTY: _WORKER | {"database_url_loyalty"},
    Queue.PAYMENTS: _WORKER
    | {"database_url_payments", "stripe_api_key", "stripe_api_base", "provider_timeout_seconds"},
    Queue.SHIPPING: _WORKER | {"database_url_shipping", "courier_api_base", "provider_timeout_seconds"},
    # An operator fills shelves and accounts here, by the roles whose books those are.
    "api": _COMMON
    | {"database_url_orders", "database_url_inventory", "database_url_loyalty"}
    | {"stripe_webhook_secrets", "courier_webhook_secrets", "points_currency", "default_payment_method"}
    | {"auth_mode", "open_beyond_loopback", "bind_host", "http_port", "ops_port"}
    | {"temporal_ui_url", "temporal_ui_port"},
    "simulators": frozenset(),
}


def party_role(party: str) -> str:
    """The name of a party's role on a server of our own."""
    return f"party_{party}"


def own_environment(environment: Mapping[str, str], process: str) -> dict[str, str]:
    """The part of the whole stack's variables that one process gets; what is no setting stays."""
    others = {name.upper() for name in Settings.model_fields if name not in OWN_SETTINGS[process]}
    return {name: value for name, value in environment.items() if name not in others}
