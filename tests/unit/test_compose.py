"""docker-compose.yml is right as far as one can tell without an engine."""

import subprocess
import sys
from pathlib import Path

import pytest

from runtime.settings import Settings
from runtime.split import OWN_SETTINGS
from tests.composed import FILE, services, variables_used
from tests.imports import ROOT
from workflows.names import Queue

#: What has to be set, made up.
NEEDED = {name: f"made-up-{name}" for name, default in variables_used().items() if default is None}
ALL = services(NEEDED)
OURS = {name: service for name, service in ALL.items() if service.ours}
LONG_RUNNING = {name: service for name, service in ALL.items() if service.raw["restart"] == "unless-stopped"}
#: What no container is told: who may call is not chosen yet, and ports are chosen where they are published.
ALIKE_IN_EVERY_CONTAINER = {"auth_mode", "http_port", "ops_port"}


def check(path: Path) -> subprocess.CompletedProcess[str]:
    """The file against the compose specification."""
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", str(path)]
    return subprocess.run(command, check=False, capture_output=True, text=True)  # noqa: S603


def test_the_file_follows_the_compose_specification() -> None:
    assert check(FILE).returncode == 0, check(FILE).stdout


def test_the_specification_would_find_a_misspelt_key(tmp_path: Path) -> None:
    broken = tmp_path / "docker-compose.yml"
    broken.write_text(FILE.read_text().replace("depends_on:", "depend_on:"))
    assert "depend_on" in check(broken).stdout


def test_no_secret_has_a_default() -> None:
    secret = {name for name in variables_used() if name.endswith(("PASSWORD", "KEY", "SECRETS"))}
    assert secret == {
        "POSTGRES_PASSWORD",
        "TEMPORAL_POSTGRES_PASSWORD",
        *(f"{party.name}_POSTGRES_PASSWORD" for party in Queue),
        "STRIPE_API_KEY",
        "STRIPE_WEBHOOK_SECRETS",
        "COURIER_WEBHOOK_SECRETS",
    }
    assert secret <= NEEDED.keys()


@pytest.mark.parametrize("name", sorted(set(OURS) - {"simulators"}))
def test_every_variable_of_our_services_is_a_setting(name: str) -> None:
    assert {key.lower() for key in OURS[name].environment} <= set(Settings.model_fields)


@pytest.mark.parametrize("party", list(Queue))
def test_a_partys_worker_serves_its_queue_and_is_told_its_own_settings_only(party: Queue) -> None:
    worker = OURS[f"worker-{party}"]
    assert worker.command[1:] == ["worker.py", "--wait", "--queues", party]
    assert {name.lower() for name in worker.environment} <= OWN_SETTINGS[party]


@pytest.mark.parametrize("process", [*Queue, "api"])
def test_no_setting_of_a_process_is_forgotten(process: str) -> None:
    service = OURS["api" if process == "api" else f"worker-{process}"]
    assert OWN_SETTINGS[process] - {name.lower() for name in service.environment} <= ALIKE_IN_EVERY_CONTAINER


def test_each_party_has_a_database_role_and_a_password_of_its_own_that_are_made_with_the_schema() -> None:
    made = Settings(_env_file=None, **{name.lower(): value for name, value in OURS["migrate"].environment.items()})  # type: ignore[arg-type]
    used = {party.value: OURS[f"worker-{party}"].environment[f"DATABASE_URL_{party.name}"] for party in Queue}
    assert made.party_urls() == used
    logins = [url.removeprefix("postgresql://").partition("@")[0] for url in (*used.values(), str(made.database_url))]
    assert logins == [
        *(f"party_{party}:made-up-{party.name}_POSTGRES_PASSWORD" for party in Queue),
        "orders:made-up-POSTGRES_PASSWORD",
    ]


def test_the_api_is_told_its_own_settings_only() -> None:
    assert {name.lower() for name in OURS["api"].environment} <= OWN_SETTINGS["api"]


@pytest.mark.parametrize("name", sorted(ALL))
def test_every_port_is_open_to_this_machine_only(name: str) -> None:
    assert all(port.startswith("127.0.0.1:") for port in ALL[name].raw.get("ports", []))


def test_the_open_api_is_allowed_on_every_address_of_its_container_because_its_ports_are_on_this_machine_only() -> None:
    api = OURS["api"]
    settings = Settings(
        _env_file=None,
        bind_host=api.environment["BIND_HOST"],
        open_beyond_loopback=api.environment["OPEN_BEYOND_LOOPBACK"] == "true",
    )
    assert settings.host_to_bind() == "0.0.0.0"  # noqa: S104 (compared)
    assert all(port.startswith("127.0.0.1:") for port in api.raw["ports"])


@pytest.mark.parametrize("name", sorted(set(ALL) - set(OURS)))
def test_every_foreign_image_has_a_full_version(name: str) -> None:
    version = ALL[name].raw["image"].partition(":")[2].removeprefix("v")
    assert version.replace(".", "").isdigit()
    assert "." in version


@pytest.mark.parametrize("name", sorted(ALL))
def test_every_service_says_when_it_is_restarted(name: str) -> None:
    by_hand = ALL[name].raw.get("profiles") == ["operator"]
    assert ALL[name].raw["restart"] in ({"no"} if by_hand else {"unless-stopped", "on-failure:5"})


@pytest.mark.parametrize("name", sorted(ALL))
def test_who_is_waited_for_says_when_it_is_ready(name: str) -> None:
    for other, wait in ALL[name].raw.get("depends_on", {}).items():
        if wait["condition"] == "service_healthy":
            assert "healthcheck" in ALL[other].raw
        else:
            assert wait["condition"] == "service_completed_successfully"
            assert other not in LONG_RUNNING


@pytest.mark.parametrize("name", sorted(OURS))
def test_our_containers_have_no_rights_and_write_nowhere_but_in_their_volume(name: str) -> None:
    raw = OURS[name].raw
    assert raw["read_only"] is True
    assert raw["cap_drop"] == ["ALL"]
    assert raw["security_opt"] == ["no-new-privileges:true"]
    assert "user" not in raw
    assert "privileged" not in raw


def test_the_image_runs_as_an_ordinary_user() -> None:
    lines = (ROOT / "Dockerfile").read_text().splitlines()
    assert [line for line in lines if line.startswith("USER ")] == ["USER 10001:10001"]
