"""Recorded histories as files: one directory a version of the workflows' sequence of commands, one file a scene."""

import base64
import json
import re
import uuid
from collections.abc import AsyncIterator, Callable, Iterable
from pathlib import Path
from typing import Any

from temporalio.client import WorkflowHistory
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.worker import Replayer

from runtime.workers import WORKFLOWS, workflow_runner

HISTORIES = Path(__file__).with_name("histories")

#: Who did it, on which machine, in which file of it: nothing that a replay reads.
OF_THE_MACHINE = frozenset({"historySizeBytes", "identity", "requestId", "stackTrace", "taskId", "workerVersion"})

#: Ids that are different each time: Temporal's own, and those in the providers' style.
_UUID = re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")
_PROVIDER_ID = re.compile(r"\b([a-z]{2,5})_[0-9a-f]{24}\b")


def files(version: str | None = None) -> list[Path]:
    """All recorded histories, or those of one version."""
    return sorted(HISTORIES.glob(f"{version or '*'}/*.json"))


def versions() -> list[int]:
    """The recorded versions, the oldest first."""
    return sorted(int(directory.name) for directory in HISTORIES.glob("*"))


def name_of(file: Path) -> str:
    """`1/confirmed.json`."""
    return f"{file.parent.name}/{file.name}"


def read(file: Path) -> WorkflowHistory:
    """The history in a file."""
    return WorkflowHistory.from_json(name_of(file), file.read_text())


def write(file: Path, history: WorkflowHistory) -> None:
    """Writes a history without what belongs to this machine and this minute: one line an event."""
    ids = _Ids(name_of(file))
    events = [_clean(event, ids) for event in history.to_json_dict()["events"]]
    lines = ",\n".join(json.dumps(event, separators=(",", ":")) for event in events)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f'{{"events":[\n{lines}\n]}}\n')


def payloads(value: Any) -> Iterable[str]:
    """The text of each payload in a history's document."""
    if isinstance(value, list):
        for one in value:
            yield from payloads(one)
    elif isinstance(value, dict):
        if _is_payload(value):
            yield base64.b64decode(value["data"]).decode()
        for one in value.values():
            yield from payloads(one)


async def failures(paths: Iterable[Path]) -> dict[str, str]:
    """What today's workflows would do otherwise than recorded: by file, the reason. Empty: all replay."""
    histories = {name_of(path): read(path) for path in paths}
    names = {history.run_id: name for name, history in histories.items()}

    async def one_by_one() -> AsyncIterator[WorkflowHistory]:
        for history in histories.values():
            yield history

    replayer = Replayer(workflows=WORKFLOWS, data_converter=pydantic_data_converter, workflow_runner=workflow_runner())
    results = await replayer.replay_workflows(one_by_one(), raise_on_replay_failure=False)
    return {names[run_id]: str(error) for run_id, error in results.replay_failures.items()}


class _Ids:
    """The n-th id of a history is always the same one."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._known: dict[str, str] = {}

    def settle(self, text: str) -> str:
        """The text with its ids exchanged."""
        text = _UUID.sub(lambda found: self._instead(found[0], self._uuid), text)
        return _PROVIDER_ID.sub(lambda found: self._instead(found[0], lambda n: f"{found[1]}_{n:024x}"), text)

    def _uuid(self, number: int) -> str:
        return str(uuid.uuid5(uuid.NAMESPACE_URL, f"{self._name}#{number}"))

    def _instead(self, found: str, make: Callable[[int], str]) -> str:
        return self._known.setdefault(found, make(len(self._known) + 1))


def _clean(value: Any, ids: _Ids) -> Any:
    if isinstance(value, str):
        return ids.settle(value)
    if isinstance(value, list):
        return [_clean(one, ids) for one in value]
    if not isinstance(value, dict):
        return value
    if _is_payload(value):
        text = ids.settle(base64.b64decode(value["data"]).decode())
        return value | {"data": base64.b64encode(text.encode()).decode()}
    return {key: _clean(one, ids) for key, one in value.items() if key not in OF_THE_MACHINE}


def _is_payload(value: dict[str, Any]) -> bool:
    return "data" in value and "metadata" in value
