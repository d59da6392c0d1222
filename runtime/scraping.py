"""Where an embedded stack's metrics are: the API's operator port, and a port for each worker."""

import json
from collections.abc import Mapping, Sequence

from runtime.home import Home
from runtime.ports import lasting_ports
from runtime.settings import Settings
from workflows.names import Queue

#: As Prometheus' `file_sd_configs` reads it.
FILE = "scrape.json"

#: By worker: the one of a party, or the one of all.
WorkerPorts = Mapping[Queue | None, int]


def worker_ports(settings: Settings, workers: Sequence[Queue | None]) -> WorkerPorts:
    """A port for each worker: counted up from WORKER_METRICS_PORT, or any free ones."""
    first, number = settings.worker_metrics_port, len(workers)
    ports = lasting_ports(number) if first is None else list(range(first, first + number))
    return dict(zip(workers, ports, strict=True))


def write_targets(settings: Settings, host: str, workers: WorkerPorts, *, api: bool) -> None:
    """Tells a Prometheus on this machine what to scrape."""
    found = {f"worker-{party}" if party else "worker": port for party, port in workers.items()}
    if api:
        found["api"] = settings.ops_port
    targets = [{"targets": [f"{host}:{port}"], "labels": {"process": name}} for name, port in sorted(found.items())]
    Home(settings.orders_home).write(FILE, json.dumps(targets, indent=2) + "\n")
