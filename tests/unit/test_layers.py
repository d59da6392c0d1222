"""The layers stay honest: domain knows nothing, workflows decide, activities do, adapters know how, api listens,
runtime starts."""

import sys
from collections.abc import Iterable, Mapping

import pytest

from tests.imports import ROOT, Import, all_imports, imports_of, modules

#: What a module may import of ours, by the longest prefix of its name that stands here. Its own folder is always its.
MAY_IMPORT: dict[str, frozenset[str]] = {
    "domain": frozenset(),
    "simulators": frozenset(),
    "workflows": frozenset({"domain"}),
    "adapters": frozenset({"domain"}),
    "activities": frozenset({"domain", "adapters"}),
    "migrations": frozenset({"domain.errors", "adapters.database"}),
    "migrations.__main__": frozenset({"domain.errors", "runtime.settings"}),
    "events": frozenset({"domain", "adapters", "workflows.names"}),
    "api": frozenset(
        {"domain", "adapters", "workflows.names", "events.refunds", "events.relay", "events.requests"}
        | {"runtime.entry", "runtime.links", "runtime.logs", "runtime.settings", "runtime.temporal", "runtime.tracing"}
    ),
    "terminal": frozenset({"domain", "adapters", "workflows.names", "runtime"})
    | {"events.refunds", "events.relay", "events.requests"},
    # What every process does at its start.
    "runtime": frozenset({"domain", "workflows.names"}),
    # Where a process is put together.
    "runtime.parties": frozenset({"domain", "adapters", "activities", "events.runs", "workflows.names"}),
    "runtime.workers": frozenset(
        {"domain", "adapters", "activities.boundary", "activities.measured", "events", "workflows"}
    ),
    "runtime.stack": frozenset({"migrations", "workflows.names"}),
    "runtime.seed": frozenset({"adapters"}),
    "runtime.tracing": frozenset({"adapters.trace_marks", "adapters.tracing"}),
    "runtime.proof": frozenset({"domain", "adapters", "events.runs", "workflows.names"}),
}

#: Commands and tests put everything together.
MAY_IMPORT_ALL = frozenset({"worker", "starter", "ops", "demo", "drill", "tests", "benchmarks"})

#: Layers whose foreign imports are listed: the deterministic ones, and the one that does everything through adapters.
MAY_USE: dict[str, frozenset[str]] = {
    "domain": frozenset({"base64", "collections", "dataclasses", "datetime", "enum", "hashlib", "json"})
    | {"pydantic", "re", "typing", "unicodedata"},
    "workflows": frozenset({"asyncio", "collections", "dataclasses", "datetime", "enum", "typing"})
    | {"pydantic", "temporalio"},
    "activities": frozenset({"asyncio", "collections", "contextlib", "dataclasses", "datetime", "time", "typing"})
    | {"sqlalchemy", "structlog", "temporalio"},
}

#: Names that say nothing of what is in them.
VAGUE = frozenset({"utils", "util", "helpers", "helper", "common", "shared", "misc", "lib"})

ALL = all_imports()
OURS = frozenset(module.partition(".")[0] for module in modules())


def crossings(imports: Iterable[Import], ours: frozenset[str] = OURS) -> list[str]:
    """The imports of ours that no layer allows."""
    return [
        f"{found.module} imports {found.target}"
        for found in imports
        if found.target.startswith(".") or (found.top in ours and not _may_import(found))
    ]


def _may_import(found: Import) -> bool:
    layer = found.module.partition(".")[0]
    if layer in MAY_IMPORT_ALL or found.top == layer:
        return True
    allowed = MAY_IMPORT[max((name for name in MAY_IMPORT if _within(found.module, name)), key=len)]
    return any(_within(found.target, name) for name in allowed)


def _within(name: str, prefix: str) -> bool:
    return name == prefix or name.startswith(f"{prefix}.")


def strangers(imports: Iterable[Import], may_use: Mapping[str, frozenset[str]] = MAY_USE) -> list[str]:
    """The foreign imports of the listed layers that are not on their list."""
    return [
        f"{found.module} imports {found.target}"
        for found in imports
        if (layer := found.module.partition(".")[0]) in may_use and found.top not in may_use[layer] | OURS
    ]


def test_no_layer_imports_one_that_it_must_not_know() -> None:
    assert crossings(ALL) == []


def test_domain_workflows_and_activities_use_only_what_is_listed_for_them() -> None:
    assert strangers(ALL) == []


def test_every_folder_has_a_layer() -> None:
    assert {name for name in OURS if name not in MAY_IMPORT_ALL} == {name for name in MAY_IMPORT if "." not in name}


def test_no_module_at_the_top_hides_one_of_the_standard_library() -> None:
    assert OURS & frozenset(sys.stdlib_module_names) == frozenset()


def test_no_module_has_a_name_that_says_nothing() -> None:
    assert [module for module in modules() if VAGUE & set(module.split("."))] == []


def test_tests_are_packages_so_that_they_hide_none_of_ours() -> None:
    folders = {path.parent for path in (ROOT / "tests").rglob("*.py")}
    assert [folder for folder in folders if not (folder / "__init__.py").is_file()] == []


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("domain.order", "from adapters.tables import orders"),
        ("domain.order", "import workflows.names"),
        ("workflows.order", "from adapters import stock"),
        ("workflows.order", "from runtime.settings import Settings"),
        ("workflows.order", "def late():\n    from activities.orders import OrdersActivities"),
        ("activities.orders", "from runtime.settings import Settings"),
        ("activities.orders", "from api.app import build_apps"),
        ("adapters.stock", "from workflows.names import Queue"),
        ("api.orders", "from workflows.order import OrderWorkflow"),
        ("api.orders", "from activities.orders import OrdersActivities"),
        ("runtime.settings", "from adapters.database import Database"),
        ("runtime.logs", "from events.relay import Relay"),
        ("api.orders", "from runtime.workers import running_workers"),
        ("simulators.courier", "from domain.order import OrderStatus"),
        ("domain.order", "from .keys import Step"),
    ],
)
def test_a_crossing_is_found(module: str, line: str) -> None:
    assert len(crossings(imports_of(module, line))) == 1


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("workflows.order", "import os"),
        ("workflows.order", "from time import monotonic"),
        ("workflows.order", "def pick():\n    import random"),
        ("workflows.order", "import sqlalchemy"),
        ("domain.order", "from temporalio import workflow"),
        ("domain.order", "import uuid"),
        ("activities.payments", "import stripe"),
        ("activities.shipping", "import aiohttp"),
    ],
)
def test_a_stranger_is_found(module: str, line: str) -> None:
    assert len(strangers(imports_of(module, line))) == 1


def test_what_is_allowed_is_not_reported() -> None:
    lines = (
        "from domain.order import OrderStatus\nfrom workflows.names import Queue\nfrom events.relay import start_order"
    )
    assert crossings(imports_of("api.orders", lines)) == []
    assert strangers(imports_of("workflows.order", "import asyncio\nfrom domain.keys import Step")) == []
