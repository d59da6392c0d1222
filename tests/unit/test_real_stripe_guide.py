"""docs/real-stripe.md names what is there."""

import re

from adapters.payment_gateway import API_VERSION
from api.webhooks import OPERATIONS
from runtime.settings import Settings
from simulators.intents import AUTHENTICATION, AUTHORIZED, BLOCKED, DECLINED, NEVER, SILENT
from tests.imports import ROOT

TEXT = (ROOT / "docs" / "real-stripe.md").read_text(encoding="utf-8")


def test_the_version_the_route_and_the_settings_are_those_of_the_code() -> None:
    assert f"`{API_VERSION}`" in TEXT
    assert set(re.findall(r"localhost:8080(/\S+)", TEXT)) == {one.path for one in OPERATIONS if "stripe" in one.path}
    settings = set(re.findall(r"\bSTRIPE_[A-Z_]+", TEXT))
    assert settings == {name.upper() for name in Settings.model_fields if name.startswith("stripe_")}


def test_each_payment_method_of_the_simulator_is_told_and_its_own_are_told_apart() -> None:
    rows = set(re.findall(r"^\| `(pm_\w+)`", TEXT, re.MULTILINE))
    assert {AUTHORIZED, DECLINED, BLOCKED, AUTHENTICATION} <= rows
    assert f"`{SILENT}` and `{NEVER}` are the simulator's own" in TEXT
