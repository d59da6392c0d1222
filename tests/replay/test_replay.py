"""Orders are under way when the code changes: today's workflows repeat every history that was recorded."""

import asyncio
import json
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from domain.order import SOLD_STATUSES, UNDONE_STATUSES, CancelReason
from runtime.workers import WORKFLOWS
from tests.builders import an_order_document
from tests.imports import ROOT
from tests.markers import told
from tests.replay.histories import HISTORIES, OF_THE_MACHINE, failures, files, name_of, payloads, versions
from tests.replay.scenes import SCENES

NEWEST = str(max(versions()))


def documents(version: str | None = None) -> dict[str, Any]:
    """Each file's document."""
    return {name_of(file): json.loads(file.read_text()) for file in files(version)}


def results(version: str) -> list[Any]:
    """What the recorded orders ended with."""
    completed = [
        event["workflowExecutionCompletedEventAttributes"]
        for document in documents(version).values()
        for event in document["events"]
        if event["eventType"] == "EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED"
    ]
    return [json.loads(text) for result in completed for text in payloads(result)]


def markers(version: str) -> set[str]:
    """The patch markers in a version's histories."""
    found = [
        event["markerRecordedEventAttributes"]
        for document in documents(version).values()
        for event in document["events"]
        if event["eventType"] == "EVENT_TYPE_MARKER_RECORDED"
    ]
    assert {marker["markerName"] for marker in found} <= {"core_patch"}
    return {json.loads(text)["id"] for marker in found for text in payloads(marker)}


def keys_of(value: Any) -> set[str]:
    """All keys of a document, at whatever depth."""
    if isinstance(value, list):
        return set().union(*map(keys_of, value))
    return set(value).union(*map(keys_of, value.values())) if isinstance(value, dict) else set()


async def replay_in(tree: Path) -> tuple[int, str]:
    """`python -m tests.replay` in a tree of its own: its exit code, and what it complains of."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.replay", cwd=tree, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    _, complaint = await process.communicate()
    assert process.returncode is not None
    return process.returncode, complaint.decode()


async def test_every_recorded_history_is_repeated() -> None:
    """S73: of every released version."""
    failed = await failures(files())
    assert failed == {}, "docs/changing-workflows.md tells what to do"


def test_every_scene_is_recorded_in_the_newest_version() -> None:
    assert {file.stem for file in files(NEWEST)} == SCENES.keys()


def test_every_ending_is_recorded() -> None:
    endings = [result for result in results(NEWEST) if "reason" in result and "order_id" in result]
    assert {ending["reason"] for ending in endings} == {None, *CancelReason}
    assert {ending["status"] for ending in endings} == (SOLD_STATUSES | UNDONE_STATUSES) - {"REFUNDED"}


def test_every_workflow_is_recorded() -> None:
    begun = [
        document["events"][0]["workflowExecutionStartedEventAttributes"] for document in documents(NEWEST).values()
    ]
    assert {attributes["workflowType"]["name"] for attributes in begun} == {one.__name__ for one in WORKFLOWS}


def test_what_each_marker_changed_is_recorded_since_the_version_that_the_guide_tells() -> None:
    since = {version: {marker for marker, first in told().items() if first <= version} for version in versions()}
    assert {version: markers(str(version)) for version in versions()} == since


@pytest.mark.parametrize("version", [str(version) for version in versions()])
def test_histories_tell_nothing_of_shoppers_and_machines(version: str) -> None:
    document = an_order_document()
    private = [document["email"], *document["shipping_address"].values(), str(Path.home()), str(ROOT), "Traceback"]
    private = [text for text in private if len(text) > len("GB")]
    for name, recorded in documents(version).items():
        text = json.dumps(recorded) + "".join(payloads(recorded))
        assert [word for word in private if word in text] == [], name
        assert keys_of(recorded) & OF_THE_MACHINE == set(), name


def changed(tree: Path, file: str, before: str, after: str, scenes: Iterable[str]) -> None:
    """A copy of the project in which one file reads otherwise, with these scenes' histories only."""
    shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns(".*", "__pycache__", "benchmarks", "docs"))
    text = (tree / file).read_text()
    assert before in text
    (tree / file).write_text(text.replace(before, after))
    shutil.rmtree(tree / HISTORIES.relative_to(ROOT))
    for name in scenes:
        recorded = HISTORIES / NEWEST / f"{name}.json"
        copy = tree / recorded.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(recorded, copy)


async def test_two_steps_that_change_places_without_a_marker_are_noticed(tmp_path: Path) -> None:
    steps = ["            await self._ship(warehouses)\n", "            await self._capture(order)\n"]
    exchanged = "".join(steps), "".join(reversed(steps))
    changed(tmp_path / "tree", "workflows/order.py", *exchanged, ("confirmed", "card-declined"))
    code, complaint = await replay_in(tmp_path / "tree")
    assert code == 1
    assert f"{NEWEST}/confirmed.json" in complaint
    assert "Nondeterminism" in complaint
    # A declined card never came to the steps that changed places.
    assert "card-declined" not in complaint


async def test_a_timer_that_is_gone_without_a_marker_is_noticed(tmp_path: Path) -> None:
    """In another workflow than the order's, of which one history ends at that timer."""
    wait = 'self._news.is_there, timeout=LOOK_AGAIN, timeout_summary="a refund is on its way: ask again"'
    scenes = "refund-full", "refund-waits-for-bank", "refund-arrived"
    changed(tmp_path / "tree", "workflows/money.py", wait, "self._news.is_there", scenes)
    code, complaint = await replay_in(tmp_path / "tree")
    assert code == 1
    assert [name for name in scenes if f"{NEWEST}/{name}.json" in complaint] == list(scenes[1:])
    assert "Nondeterminism" in complaint
