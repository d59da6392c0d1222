"""The worker's own metrics: Temporal's of this process and ours beside them, under one address."""

from temporalio.client import Client
from temporalio.common import MetricMeter
from temporalio.runtime import PrometheusConfig, Runtime, TelemetryConfig

from runtime.entry import EntryError
from runtime.settings import Settings
from runtime.temporal import json_logging

#: Seconds: a step of our own tables takes milliseconds, one at a provider up to its time-out of 20 s.
STEP_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20)
#: Most steps are done at once; three tries, an undo's five and the capture's twenty are the policies' numbers.
TRIES = (1, 2, 3, 5, 10, 20)


def worker_runtime(settings: Settings) -> Runtime | None:
    """The runtime that serves `/metrics` on WORKER_METRICS_PORT, or None where that is not set. One a process.

    Raises EntryError when the port cannot be used.
    """
    if settings.worker_metrics_port is None:
        return None
    host, port = settings.host_to_bind(), settings.worker_metrics_port
    served = PrometheusConfig(
        bind_address=f"{host}:{port}",
        counters_total_suffix=True,
        unit_suffix=True,
        durations_as_seconds=True,
        histogram_bucket_overrides={"orders_step_seconds": STEP_SECONDS, "orders_step_tries": TRIES},
    )
    try:
        return Runtime(telemetry=TelemetryConfig(logging=json_logging(), metrics=served, attach_service_name=False))
    except (RuntimeError, ValueError) as error:
        raise EntryError(f"WORKER_METRICS_PORT {port} on {host} cannot be used: {error}") from None


def meter_of(client: Client) -> MetricMeter:
    """Where measures of this client's process go; nowhere while none are served."""
    runtime = client.service_client.config.runtime
    return runtime.metric_meter if runtime else MetricMeter.noop
