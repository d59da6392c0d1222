"""What a stack tells a Prometheus to scrape."""

import json
from pathlib import Path

from runtime.scraping import FILE, worker_ports, write_targets
from runtime.settings import Settings
from runtime.stack_env import own_settings
from workflows.names import Queue


def test_each_worker_has_a_port_of_its_own() -> None:
    free = worker_ports(Settings(_env_file=None), list(Queue))
    assert len(set(free.values())) == len(Queue)
    # None that an outgoing connection may be given before the worker is there, or while it is restarted.
    assert max(free.values()) < 32_768
    counted = worker_ports(Settings(_env_file=None, worker_metrics_port=9464), list(Queue))
    assert list(counted.values()) == [9464, 9465, 9466, 9467, 9468]
    assert worker_ports(Settings(_env_file=None), []) == {}


def test_the_targets_are_the_processes_of_the_stack(tmp_path: Path) -> None:
    settings = Settings(_env_file=None, orders_home=tmp_path, ops_port=8081)
    write_targets(settings, "127.0.0.1", {Queue.ORDERS: 1, Queue.PAYMENTS: 2}, api=True)
    assert json.loads((tmp_path / FILE).read_text()) == [
        {"targets": ["127.0.0.1:8081"], "labels": {"process": "api"}},
        {"targets": ["127.0.0.1:1"], "labels": {"process": "worker-orders"}},
        {"targets": ["127.0.0.1:2"], "labels": {"process": "worker-payments"}},
    ]


def test_a_worker_that_is_started_by_hand_does_not_want_a_port_of_the_stack(tmp_path: Path) -> None:
    settings = Settings(_env_file=None, orders_home=tmp_path / "home", worker_metrics_port=9464)
    assert "worker_metrics_port" not in own_settings(settings)
