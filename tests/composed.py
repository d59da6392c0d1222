"""docker-compose.yml and the Dockerfile as tests read them: without an engine."""

import re
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from tests.imports import ROOT

FILE = ROOT / "docker-compose.yml"

#: `${NAME}`, `${NAME:-default}`, `${NAME:?message}`.
_VARIABLE = re.compile(r"\$\{(?P<name>\w+)(?::(?P<kind>[-?])(?P<rest>[^}]*))?\}")


@dataclass(frozen=True)
class Service:
    """One service, its variables put in. `command` runs with this interpreter."""

    name: str
    command: list[str]
    environment: dict[str, str]
    healthcheck: list[str]
    raw: Mapping[str, Any]

    @property
    def ours(self) -> bool:
        """Whether it runs our own image."""
        return "build" in self.raw


def services(variables: Mapping[str, str]) -> dict[str, Service]:
    """All services under these variables. Raises KeyError for one that is needed and missing."""
    document = YAML(typ="safe").load(FILE.read_text())
    return {name: _service(name, _put_in(raw, variables)) for name, raw in document["services"].items()}


def variables_used() -> dict[str, str | None]:
    """Every variable of the file with its default; None: it has to be set."""
    return {
        found["name"]: found["rest"] if found["kind"] == "-" else None for found in _VARIABLE.finditer(FILE.read_text())
    }


def unpack_image(target: Path) -> Path:
    """Copies into `target` what the Dockerfile copies into /app."""
    sources = [
        word
        for line in (ROOT / "Dockerfile").read_text().rpartition("WORKDIR /app")[2].splitlines()
        if line.startswith("COPY ")
        for word in line.split()[1:-1]
    ]
    for source in sources:
        path = ROOT / source
        if path.is_dir():
            shutil.copytree(path, target / source, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(path, target / source)
    return target


def _service(name: str, raw: Mapping[str, Any]) -> Service:
    return Service(
        name=name,
        command=_interpreted(raw.get("command", [])),
        environment={key: str(value) for key, value in raw.get("environment", {}).items()},
        healthcheck=_interpreted(raw.get("healthcheck", {}).get("test", [])[1:]),
        raw=raw,
    )


def _interpreted(command: list[str]) -> list[str]:
    return [sys.executable if word == "python" else word for word in command]


def _put_in(value: Any, variables: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {key: _put_in(item, variables) for key, item in value.items()}
    if isinstance(value, list):
        return [_put_in(item, variables) for item in value]
    return _VARIABLE.sub(lambda found: _value(found, variables), value) if isinstance(value, str) else value


def _value(found: re.Match[str], variables: Mapping[str, str]) -> str:
    if found["kind"] == "-":
        return variables.get(found["name"]) or found["rest"]
    return variables[found["name"]]
