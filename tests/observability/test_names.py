"""What is documented, asked by the dashboard, and asked by the alerts is what a shop really tells."""

import json
import re
from collections.abc import Iterator
from typing import Any

import promql_parser as ast
import pytest
import pytest_asyncio

from tests.imports import ROOT
from tests.observability.conftest import Grounds
from tests.observability.everything import everything
from tests.observability.promql import Scrape, evaluate
from tests.observability.replay import alerts

DASHBOARD: dict[str, Any] = json.loads((ROOT / "compose" / "grafana" / "orders.json").read_text(encoding="utf-8"))
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
QUERIES = {f"{panel['title']} {target['refId']}": target for panel in PANELS for target in panel["targets"]}
EXPRESSIONS = {name: target["expr"] for name, target in QUERIES.items()}
EXPRESSIONS |= {name: alert.expression for name, alert in alerts().items()}

#: What the scrape itself, or a histogram, adds.
ADDED = {"job", "instance", "le"}
PARTS = ("_bucket", "_count", "_sum", "_created")


@pytest_asyncio.fixture(scope="module")
async def scrapes(grounds: Grounds) -> list[Scrape]:
    """All that can be told, twice."""
    return await everything(grounds)


@pytest.fixture
def told(scrapes: list[Scrape]) -> dict[str, set[str]]:
    """Labels by metric."""
    found: dict[str, set[str]] = {}
    for name, samples in scrapes[-1].samples.items():
        found.setdefault(name, set()).update(*(sample.labels for sample in samples))
    return found


def documented() -> dict[str, set[str]]:
    """Labels by metric, as docs/metrics.md has them."""
    text = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| ([^|]+) \|", text, re.MULTILINE)
    assert len(rows) == len({name for name, _ in rows})
    return {name: set(re.findall(r"`(\w+)`", labels)) for name, labels in rows}


def family(name: str, told: dict[str, set[str]]) -> str:
    """A histogram's own name for one of its parts."""
    for part in PARTS:
        if name.endswith(part) and (part != "_sum" or f"{name.removesuffix(part)}_count" in told):
            return name.removesuffix(part)
    return name


def test_each_metric_of_ours_is_documented_with_its_labels_and_no_other_is(told: dict[str, set[str]]) -> None:
    ours: dict[str, set[str]] = {}
    for name, labels in told.items():
        if name.startswith("orders_") and not name.endswith("_created"):
            ours.setdefault(family(name, told), set()).update(labels - ADDED)
    assert {name: labels for name, labels in documented().items() if name.startswith("orders_")} == ours


def test_temporals_metrics_that_are_documented_are_told_with_these_labels(told: dict[str, set[str]]) -> None:
    theirs = {name: labels for name, labels in documented().items() if name.startswith("temporal_")}
    names = {family(name, told): labels for name, labels in told.items()}
    assert theirs
    assert {name: labels - names.get(name, set()) for name, labels in theirs.items()} == {
        name: set() for name in theirs
    }


@pytest.mark.parametrize("name", sorted(EXPRESSIONS))
def test_alerts_and_panels_ask_for_documented_names_and_labels_that_are_told(
    told: dict[str, set[str]], name: str
) -> None:
    tree = ast.parse(EXPRESSIONS[name])
    selectors = list(_selectors(tree))
    assert selectors
    known = {"up": {"job", "instance"}, **documented()}
    for selector in selectors:
        assert selector.name in told
        assert family(selector.name or "", told) in known
        asked = {matcher.name for matcher in selector.matchers.matchers}
        assert asked <= told[selector.name or ""]
    grouped = {label for one in _nodes(tree) if isinstance(one, ast.AggregateExpr) for label in _labels(one)}
    assert grouped <= {label for selector in selectors for label in told[selector.name or ""]}


@pytest.mark.parametrize("name", sorted(QUERIES))
def test_a_panel_shows_something_and_names_it_by_labels_that_are_there(scrapes: list[Scrape], name: str) -> None:
    found = evaluate(QUERIES[name]["expr"], scrapes, scrapes[-1].at)
    assert found
    used = set(re.findall(r"\{\{(\w+)\}\}", QUERIES[name]["legendFormat"]))
    for labels in found:
        assert used <= dict(labels).keys()


def test_the_dashboard_reads_the_prometheus_that_is_set_up_for_it() -> None:
    source = (ROOT / "compose/grafana/provisioning/datasources/prometheus.yml").read_text(encoding="utf-8")
    (uid,) = {target["datasource"]["uid"] for target in QUERIES.values()}
    assert f"uid: {uid}," in source
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])


def _labels(node: ast.AggregateExpr) -> list[str]:
    return list(node.modifier.labels) if node.modifier else []


def _selectors(tree: ast.Expr) -> Iterator[ast.VectorSelector]:
    return (node for node in _nodes(tree) if isinstance(node, ast.VectorSelector))


def _nodes(node: ast.Expr) -> Iterator[ast.Expr]:
    yield node
    match node:
        case ast.MatrixSelector():
            yield from _nodes(node.vector_selector)
        case ast.AggregateExpr() | ast.ParenExpr():
            yield from _nodes(node.expr)
        case ast.BinaryExpr():
            yield from _nodes(node.lhs)
            yield from _nodes(node.rhs)
        case ast.Call():
            for argument in node.args:
                yield from _nodes(argument)
