"""Replays of scrapes, and the alerts that fire in them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import promql_parser
from ruamel.yaml import YAML

from tests.imports import ROOT
from tests.observability.promql import Labels, Scrape, evaluate
from tests.observability.scraping import Samples

RULES = ROOT / "compose" / "prometheus" / "alerts.yml"
#: Seconds between two scrapes of a replay, and between two looks at the rules.
EVERY = 60


@dataclass(frozen=True)
class Alert:
    """One rule."""

    name: str
    expression: str
    holds_seconds: float
    severity: str
    summary: str


def alerts() -> dict[str, Alert]:
    """All rules of the file, by name."""
    document: Mapping[str, Any] = YAML(typ="safe").load(RULES.read_text(encoding="utf-8"))
    rules = [rule for group in document["groups"] for rule in group["rules"]]
    found = {rule["alert"]: _alert(rule) for rule in rules}
    assert len(found) == len(rules), "two alerts have one name"
    return found


def _alert(rule: Mapping[str, Any]) -> Alert:
    held = promql_parser.parse_duration(rule["for"]) if "for" in rule else timedelta()
    return Alert(
        rule["alert"],
        rule["expr"],
        held.total_seconds(),
        rule["labels"]["severity"],
        rule["annotations"]["summary"],
    )


@dataclass
class Replay:
    """Scrapes of a real shop on a clock of its own: each stays what is told until the next one."""

    scrapes: list[Scrape] = field(default_factory=list)

    def hold(self, samples: Samples, seconds: float) -> None:
        """So much time goes by in which every scrape tells this."""
        begin = self.scrapes[-1].at + EVERY if self.scrapes else 0.0
        self.scrapes += [Scrape(begin + number * EVERY, samples) for number in range(int(seconds // EVERY) or 1)]

    def fires(self, alert: Alert) -> list[float]:
        """When the alert fires: at each look at which its expression has held for long enough."""
        since: dict[Labels, float] = {}
        firing = []
        for number, scrape in enumerate(self.scrapes, 1):
            active = evaluate(alert.expression, self.scrapes[:number], scrape.at)
            since = {labels: since.get(labels, scrape.at) for labels in active}
            if any(scrape.at - begun >= alert.holds_seconds for begun in since.values()):
                firing.append(scrape.at)
        return firing
