"""A wait of a workflow, and what ends it."""

import pytest
from temporalio import workflow

from workflows.calls import sleep_unless


async def test_what_happens_in_the_moment_in_which_a_wait_ends_has_woken_it(monkeypatch: pytest.MonkeyPatch) -> None:
    async def time_is_over(*_: object, **__: object) -> None:
        raise TimeoutError

    monkeypatch.setattr(workflow, "wait_condition", time_is_over)
    assert await sleep_unless(lambda: True, 1, summary="a test")
    assert not await sleep_unless(lambda: False, 1, summary="a test")
