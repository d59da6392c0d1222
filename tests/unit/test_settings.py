"""What people write as settings, and what the embedded stack adds to it."""

from pathlib import Path

import pytest

from runtime.links import web_ui_link
from runtime.settings import Settings, SettingsError, load_settings
from runtime.stack_env import (
    as_environment,
    children_environment,
    isolated_settings,
    own_servers,
    own_settings,
    write_stack_env,
)

ROOT = Path(__file__).resolve().parents[2]
ALL = {"postgres", "temporal", "gateway", "courier", "fraud", "mail"}


@pytest.fixture(autouse=True)
def _nothing_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [*Settings.model_fields, "temporal_profile", "temporal_config_file"]:
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.chdir(tmp_path)


def _example() -> dict[str, str]:
    lines = (ROOT / ".env.example").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


def test_the_example_lists_every_setting_with_its_default() -> None:
    assert set(_example()) == {name.upper() for name in Settings.model_fields}
    fields = {name: field.get_default(call_default_factory=True) for name, field in Settings.model_fields.items()}
    defaults = as_environment(fields)
    assert {name: value for name, value in _example().items() if value} == defaults


def test_the_example_can_be_used_as_it_is(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text((ROOT / ".env.example").read_text())
    assert load_settings() == Settings()


def test_settings_written_as_an_environment_read_back_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings(stripe_webhook_secrets=("new", "old"), review_limits={"EUR": 1, "JPY": 2}, http_port=9)
    for name, value in as_environment(dict(settings)).items():
        monkeypatch.setenv(name, value)
    assert Settings() == settings


def test_the_environment_wins_over_the_file_and_the_file_over_the_stack(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / ".local").mkdir()
    (tmp_path / ".local" / "stack.env").write_text("HTTP_PORT=1\nOPS_PORT=1\nPOSTGRES_PORT=1\n")
    (tmp_path / ".env").write_text("HTTP_PORT=2\nOPS_PORT=2\n")
    monkeypatch.setenv("HTTP_PORT", "3")
    settings = load_settings()
    assert (settings.http_port, settings.ops_port, settings.postgres_port) == (3, 2, 1)
    assert load_settings(from_stack=False).postgres_port == 5433


@pytest.mark.parametrize(
    ("name", "value"),
    [("HTTP_PORT", "70000"), ("HTTP_PORT", "web"), ("POINTS_CURRENCY", "XXX"), ("REVIEW_LIMITS", "EUR")],
)
def test_a_wrong_setting_is_told_by_its_name(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(SettingsError, match=f"^{name} is wrong: .+") as caught:
        load_settings()
    assert "\n" not in str(caught.value)


def test_a_server_that_is_named_is_not_started() -> None:
    assert own_servers(Settings()) == ALL
    named = Settings(
        database_url="postgresql://x", temporal_address="t:1", stripe_api_key="sk", courier_api_base="http://c"
    )
    assert own_servers(named) == {"fraud", "mail"}


def test_a_key_without_a_base_means_the_real_gateway(tmp_path: Path) -> None:
    environment = children_environment(Settings(orders_home=tmp_path, stripe_api_key="sk_test_mine"))
    assert environment["STRIPE_API_KEY"] == "sk_test_mine"
    assert "STRIPE_API_BASE" not in environment


def test_secrets_stay_the_same_over_restarts_and_differ_between_homes(tmp_path: Path) -> None:
    first = own_settings(Settings(orders_home=tmp_path / "one"))
    again = own_settings(Settings(orders_home=tmp_path / "one"))
    other = own_settings(Settings(orders_home=tmp_path / "two"))
    assert first == again
    secret = ("database_url", "stripe_api_key", "stripe_webhook_secrets", "courier_webhook_secrets")
    assert all(first[name] != other[name] for name in secret)


def test_commands_beside_the_stack_find_it_and_secrets_of_people_are_not_copied(tmp_path: Path) -> None:
    write_stack_env(Settings(orders_home=tmp_path / ".local", courier_api_base="http://c", smtp_url="smtp://u:pw@m"))
    file = tmp_path / ".local" / "stack.env"
    assert file.stat().st_mode & 0o777 == 0o600
    assert "pw" not in file.read_text()
    assert "courier" not in file.read_text().lower().replace("sim_courier_port", "")
    beside = load_settings()
    assert beside.temporal_address == "127.0.0.1:7233"
    assert beside.database_url
    assert beside.stripe_api_base == "http://127.0.0.1:12111"


def test_an_isolated_stack_takes_nothing_from_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://the-real-one")
    monkeypatch.setenv("STRIPE_API_KEY", "sk_live")
    monkeypatch.setenv("TEMPORAL_PROFILE", "production")
    settings = isolated_settings(tmp_path, payment_deadline_seconds=3)
    assert own_servers(settings) == ALL
    assert settings.payment_deadline_seconds == 3
    ports = [value for name, value in dict(settings).items() if name.endswith("_port")]
    assert len(set(ports)) == len(ports)
    environment = children_environment(settings)
    assert "TEMPORAL_PROFILE" not in environment
    assert "the-real-one" not in environment["DATABASE_URL"]
    assert environment["STRIPE_API_KEY"] != "sk_live"


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "localhost"])
def test_an_api_that_lets_anybody_in_may_bind_to_this_machine(host: str) -> None:
    assert Settings(bind_host=host).host_to_bind() == host


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "shop.example.com"])  # noqa: S104 (refused)
def test_an_api_that_lets_anybody_in_is_not_opened_to_others_unless_that_is_asked_for(host: str) -> None:
    with pytest.raises(SettingsError, match=f"^BIND_HOST {host} .* OPEN_BEYOND_LOOPBACK=true"):
        Settings(bind_host=host).host_to_bind()
    assert Settings(bind_host=host, open_beyond_loopback=True).host_to_bind() == host


@pytest.mark.parametrize(
    ("name", "value"),
    [("PROVIDER_TIMEOUT_SECONDS", "5.1"), ("PROVIDER_TIMEOUT_SECONDS", "nan"), ("TEMPORAL_UI_URL", "temporal:8233")],
)
def test_a_setting_that_cannot_work_is_refused_by_name(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(SettingsError, match=f"^{name} is wrong"):
        load_settings()


def test_the_link_to_an_orders_page_is_one_that_a_browser_can_open() -> None:
    page = "/namespaces/default/workflows/order-o1"
    anywhere = Settings(bind_host="0.0.0.0", open_beyond_loopback=True)  # noqa: S104 (not bound to)
    assert web_ui_link(anywhere, "o1") == f"http://127.0.0.1:8233{page}"
    elsewhere = Settings(temporal_ui_url="https://temporal.example.com/")
    assert web_ui_link(elsewhere, "o1") == f"https://temporal.example.com{page}"
