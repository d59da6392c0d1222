"""Scrapes, as samples by their name."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from prometheus_client.parser import text_string_to_metric_families

#: By metric's name.
Samples = Mapping[str, Sequence["Sample"]]


@dataclass(frozen=True)
class Sample:
    """One line of a scrape."""

    name: str
    labels: Mapping[str, str]
    value: float
    series: frozenset[tuple[str, str]] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "series", frozenset({("__name__", self.name), *self.labels.items()}))


def parse(instances: Mapping[str, str | None]) -> Samples:
    """What these addresses told, with what Prometheus adds: whose it is, and `up`. None: no answer."""
    found: dict[str, list[Sample]] = defaultdict(list)
    for instance, text in instances.items():
        own = {"job": "orders", "instance": instance}
        found["up"].append(Sample("up", own, float(text is not None)))
        for family in text_string_to_metric_families(text or ""):
            for sample in family.samples:
                found[sample.name].append(Sample(sample.name, {**sample.labels, **own}, sample.value))
    return found
