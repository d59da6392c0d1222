"""A split stack tells each process its own settings, and nothing that only others need."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from temporalio.client import Client

from runtime import parts
from runtime.parties import open_party
from runtime.settings import Settings
from runtime.split import OWN_SETTINGS, own_environment
from runtime.stack import Stack, StackError
from runtime.stack_env import children_environment, own_settings, write_stack_env
from workflows.names import Queue

#: By process: what opens a door. Everything else that it is told is an address or a number.
KEYS = {
    "orders": {"DATABASE_URL_ORDERS"},
    "inventory": {"DATABASE_URL_INVENTORY"},
    "loyalty": {"DATABASE_URL_LOYALTY"},
    "payments": {"DATABASE_URL_PAYMENTS", "STRIPE_API_KEY"},
    "shipping": {"DATABASE_URL_SHIPPING"},
    "api": {"DATABASE_URL_ORDERS", "DATABASE_URL_INVENTORY", "DATABASE_URL_LOYALTY"}
    | {"STRIPE_WEBHOOK_SECRETS", "COURIER_WEBHOOK_SECRETS"},
    "simulators": set(),
}
ALL_KEYS = {"DATABASE_URL", *(name for names in KEYS.values() for name in names)}
#: The settings as `python worker.py` reads them, with the home's file of everybody's secrets next to it.
READ = "import json; from runtime.settings import load_settings as l; print(json.dumps(l().model_dump(mode='json')))"


@pytest.fixture
def settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Settings:
    """Nobody has set anything."""
    for name in os.environ:
        if name.startswith("TEMPORAL_") or name.lower() in Settings.model_fields:
            monkeypatch.delenv(name)
    return Settings(_env_file=None, orders_home=tmp_path / ".local")


def told(settings: Settings, process: str) -> dict[str, str]:
    """What a process of the split stack is told, where it is a setting."""
    environment = own_environment(children_environment(settings, split=True), process)
    return {name: value for name, value in environment.items() if name.lower() in Settings.model_fields}


def test_every_process_of_a_split_stack_has_its_list() -> None:
    assert OWN_SETTINGS.keys() == KEYS.keys() == {*Queue, "api", "simulators"}


@pytest.mark.parametrize("process", sorted(KEYS))
def test_a_process_is_told_its_own_keys_and_no_others(settings: Settings, process: str) -> None:
    assert told(settings, process).keys() & ALL_KEYS == KEYS[process]


def test_the_unsplit_processes_share_all_keys_but_the_parties_own(settings: Settings) -> None:
    assert children_environment(settings).keys() & ALL_KEYS == {
        "DATABASE_URL",
        "STRIPE_API_KEY",
        "STRIPE_WEBHOOK_SECRETS",
        "COURIER_WEBHOOK_SECRETS",
    }


@pytest.mark.parametrize("party", sorted(Queue))
async def test_what_a_party_is_told_is_enough_for_its_worker(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, party: str
) -> None:
    for name, value in told(settings, party).items():
        monkeypatch.setenv(name, value)
    client = await Client.connect("127.0.0.1:1", lazy=True)
    async with open_party(Queue(party), Settings(_env_file=None), client) as activities:
        assert activities


@pytest.mark.parametrize("party", sorted(Queue))
def test_a_worker_finds_nothing_else_where_it_runs(settings: Settings, party: str) -> None:
    write_stack_env(settings, split=True)
    environment = own_environment(children_environment(settings, split=True), party)
    command = parts.worker(settings, environment, Queue(party)).command
    argv = [command.argv[0], "-c", READ]
    ran = subprocess.run(argv, env=command.env, cwd=command.cwd, check=True, capture_output=True, text=True)  # noqa: S603
    read = {name.upper() for name, value in json.loads(ran.stdout).items() if value}
    assert read & ALL_KEYS == KEYS[party]


def test_commands_beside_a_split_stack_work_by_the_parties_roles(settings: Settings) -> None:
    found = own_settings(settings, split=True)
    users = {party: str(found[f"database_url_{party}"]).partition("://")[2].partition(":")[0] for party in Queue}
    assert users == {party: f"party_{party}" for party in Queue}
    passwords = {str(found[f"database_url_{party}"]).partition("@")[0].rpartition(":")[2] for party in Queue}
    assert len(passwords) == len(Queue)


async def test_a_split_stack_on_somebodys_database_needs_their_roles(settings: Settings) -> None:
    theirs = settings.model_copy(
        update={"database_url": "postgresql://us@db/shop", "database_url_orders": "postgresql://o@db/shop"}
    )
    with pytest.raises(StackError, match="needs its own role: set DATABASE_URL_INVENTORY, DATABASE_URL_LOYALTY, "):
        await Stack(theirs, split=True).start()
