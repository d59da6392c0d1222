"""docs/runbook.md: an entry for whatever calls or parks, and each line that it says to type is one that is taken."""

import importlib
import json
import re
import shlex
from collections.abc import Mapping
from functools import cache
from typing import Any

import pytest
import typer
from ruamel.yaml import YAML
from typer.core import TyperGroup

import ops
from domain.errors import ContradictionError, NotServed, OnHold, TransientError, names_under
from domain.intake import OrderRequest
from domain.keys import PARKING, Step, actions_at
from domain.order import DEAD_RUN
from domain.reconciliation import FindingKind
from domain.words import ERROR_WORDS
from runtime.schedules import schedules
from runtime.settings import Settings
from simulators.faults import FaultTable
from tests.imports import ROOT
from workflows.names import Queue, order_workflow_id
from workflows.order import OrderWorkflow

TEXT = (ROOT / "docs" / "runbook.md").read_text(encoding="utf-8")
RULES = ROOT / "compose" / "prometheus" / "alerts.yml"
LABELS = ("Look", "Type", "Over", "Practise")
#: What is typed: blocks, and code in sentences.
BLOCKS = re.findall(r"^```\n(.*?)^```", TEXT, re.DOTALL | re.MULTILINE)
TYPED = [
    line.strip()
    for source in (*BLOCKS, *re.findall(r"`([^`]+)`", re.sub(r"^```.*?^```", "", TEXT, flags=re.DOTALL | re.MULTILINE)))
    for line in source.replace("\\\n", " ").splitlines()
]
APPS = {"ops.py": "ops", "starter.py": "starter", "worker.py": "worker"}
TARGET_APPS = {"up": "runtime.up", "drill": "drill.__main__", "bench": "benchmarks.__main__"}
OURS = [line for line in TYPED if re.search(r"\.venv/bin/python (ops|starter|worker)\.py\b", line)]
MADE = [line for line in TYPED if re.search(r"\bmake [a-z]", line)]
POSTED = re.findall(r"curl -s \$(GATEWAY|COURIER)(/[^\s'`]*) (?:-H '[^']*' )*-d '([^']+)'", TEXT)


def entries(section: str) -> dict[str, str]:
    """What stands under each heading of a section."""
    body = re.search(rf"^## {section}\n(.*?)(?=^## |\Z)", TEXT, re.DOTALL | re.MULTILINE)
    assert body is not None
    parts = re.split(r"^### (.+)\n", body[1], flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def anchor(heading: str) -> str:
    """Where a link to it leads, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


@cache
def alerts() -> Mapping[str, Mapping[str, Any]]:
    """The rules, by name."""
    groups = YAML(typ="safe").load(RULES.read_text(encoding="utf-8"))["groups"]
    return {rule["alert"]: rule for group in groups for rule in group["rules"]}


def parks() -> dict[Step, str]:
    """The entry of each step; several may share one."""
    return {
        Step(step): body
        for heading, body in entries("What is parked").items()
        for step in re.findall(r"`(\w+)`", heading)
    }


def explained(body: str) -> set[str]:
    """The errors that have a row in an entry."""
    first = [line.split("|")[1] for line in body.splitlines() if line.startswith("|")]
    return {name for cell in first for name in re.findall(r"`(\w+)`", cell)}


EVERYWHERE = explained(entries("What is parked")["Errors of every step"])


def test_each_alert_has_its_entry_in_the_order_of_the_file_and_leads_to_it() -> None:
    assert list(entries("Alerts")) == list(alerts())
    for name, rule in alerts().items():
        assert rule["annotations"]["runbook_url"] == f"docs/runbook.md#{anchor(name)}"


@pytest.mark.parametrize("name", list(alerts()))
def test_an_entry_of_an_alert_says_whom_it_hurts_where_to_look_what_to_type_and_how_to_practise_it(name: str) -> None:
    body = entries("Alerts")[name]
    assert body.lstrip().startswith(alerts()[name]["labels"]["severity"] + ", ")
    assert re.findall(r"^- \*\*(\w+):\*\*", body, re.MULTILINE) == list(LABELS)


def test_every_step_that_can_be_parked_has_its_entry_with_each_word_a_line_to_type_and_a_way_to_practise() -> None:
    assert set(parks()) == set(PARKING)
    for step, body in parks().items():
        assert set(re.findall(r"^- \*(\w+)\* ", body, re.MULTILINE)) == actions_at(step), step
        assert f"--step {step} " in body, step
        assert "**Practise:**" in body, step
        assert re.search(r"[Mm]oney", body), step


def kinds_of_parks() -> list[tuple[Step, str]]:
    """Each step and error of docs/parks.md."""
    rows = re.findall(r"^\| `(\w+)` \| \w+ \| (.+?) \|", (ROOT / "docs" / "parks.md").read_text(), re.MULTILINE)
    return [(Step(step), error) for step, cell in rows for error in re.findall(r"`(\w+)`", cell)]


def test_every_park_that_is_known_to_happen_is_explained_where_its_step_is_or_for_every_step() -> None:
    assert kinds_of_parks()
    assert [park for park in kinds_of_parks() if park[1] not in explained(parks()[park[0]]) | EVERYWHERE] == []


def test_every_error_that_can_park_an_order_is_explained() -> None:
    parking = names_under(ContradictionError) | names_under(TransientError) | {NotServed.__name__, DEAD_RUN}
    everything = EVERYWHERE.union(*map(explained, parks().values()))
    assert (parking | set(ERROR_WORDS)) - {"TransientError", OnHold.__name__} - everything == set()


def test_a_failure_without_an_alert_has_a_way_to_practise_it() -> None:
    assert [heading for heading, body in entries("Without an alert").items() if "**Practise:**" not in body] == []


def _parse(module: str, words: list[str]) -> None:
    """Raises TyperException for what the command would not take. Runs nothing."""
    command = typer.main.get_command(importlib.import_module(module).app)
    if isinstance(command, TyperGroup):
        context = command.make_context(module, words)
        name, found, rest = command.resolve_command(context, words)
        assert found is not None
        found.make_context(name, rest, parent=context)
    else:
        command.make_context(module, words)


@pytest.mark.parametrize("line", sorted(set(OURS)))
def test_every_command_is_one_that_is_taken(line: str) -> None:
    words = shlex.split(line, comments=True)
    at = next(number for number, word in enumerate(words) if word in APPS)
    _parse(APPS[words[at]], words[at + 1 :])


def test_a_command_that_is_only_named_is_there() -> None:
    named = set(re.findall(r"`ops\.py (\w+)", TEXT))
    assert named
    assert named <= {
        command.name or getattr(command.callback, "__name__", "") for command in ops.app.registered_commands
    }


@pytest.mark.parametrize(
    "words", ["redrive --stepp open_order", "hold gateway", "review ORDER maybe --reason R", "dance"]
)
def test_what_a_command_would_not_take_would_be_noticed(words: str) -> None:
    with pytest.raises(typer.TyperException):
        _parse("ops", words.split())


@pytest.mark.parametrize("line", sorted(set(MADE)))
def test_every_target_is_there_and_takes_its_arguments(line: str) -> None:
    words = shlex.split(line, comments=True)
    at = words.index("make")
    target = words[at + 1]
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE)
    arguments = [shlex.split(word.removeprefix("ARGS=")) for word in words[at + 2 :] if word.startswith("ARGS=")]
    for given in arguments:
        _parse("ops" if target == "prove" else TARGET_APPS[target], ["prove", *given] if target == "prove" else given)
    assert {word.partition("=")[0].lower() for word in words[:at]} <= set(Settings.model_fields)


def test_every_fault_that_it_posts_is_one_that_the_simulators_take() -> None:
    faults = [(party.lower(), body) for party, route, body in POSTED if route == "/_sim/faults"]
    assert len(faults) == TEXT.count("/_sim/faults -d")
    for party, body in faults:
        FaultTable().add(json.loads(body), posted_to=party)


def test_everything_else_that_it_sends_to_the_simulators_goes_to_a_route_of_theirs() -> None:
    sources = "".join(path.read_text() for path in (ROOT / "simulators").glob("*.py"))
    known = [re.sub(r"\{\w+\}", "[^/]+", route) for route in re.findall(r'"(?:POST", ")?(/[\w/{}]+)"', sources)]
    assert [route for _, route, body in POSTED if not any(re.fullmatch(one, route) for one in known)] == []
    assert all(isinstance(json.loads(body), dict) for _, _, body in POSTED)


def test_the_order_that_it_sends_by_http_is_taken() -> None:
    (body,) = re.findall(r"curl -s \$API/orders .*?-d '(\{.*?\})'", TEXT, re.DOTALL)
    OrderRequest.model_validate(json.loads(body))


def test_runs_and_schedules_have_the_names_that_they_have() -> None:
    assert (
        f"--workflow-id {order_workflow_id('ORDER')} --type {OrderWorkflow.__name__} --task-queue {Queue.ORDERS} "
        in TEXT
    )
    assert set(re.findall(r"--schedule-id (\S+)", TEXT)) <= set(schedules(Settings(_env_file=None)))
    assert set(
        re.findall(r"`(\w+_\w+)`", entries("Without an alert")["The database was restored to an older copy"])
    ) & set(FindingKind) == {
        FindingKind.LAGGING_ORDER,
        FindingKind.RUN_WITHOUT_ORDER,
        FindingKind.UNKNOWN_PAYMENT,
        FindingKind.UNKNOWN_PARCEL,
    }


def test_every_link_leads_somewhere() -> None:
    for path, fragment in re.findall(r"\]\(([^)#\s]*)#?([^)\s]*)\)", TEXT):
        file = (ROOT / "docs" / path) if path else ROOT / "docs" / "runbook.md"
        assert file.exists(), path
        if fragment:
            found = {anchor(heading) for heading in re.findall(r"^#+ (.+)$", file.read_text(), re.MULTILINE)}
            assert fragment in found, fragment
