"""Records the histories anew: `make record`, or `python -m tests.replay.record [VERSION]`.

Plays every scene of `tests/replay/scenes.py` in shops of its own, on a real PostgreSQL and a Temporal server that
skips time, and writes each history to `tests/replay/histories/VERSION/SCENE.json`. Without VERSION: the newest one that
is there. `docs/changing-workflows.md` says when a new one is due.
"""

import asyncio
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from temporalio.client import WorkflowExecutionStatus, WorkflowHandle, WorkflowHistory

from adapters.database import Database
from migrations import migrate
from runtime.entry import leave
from runtime.logs import configure_logs
from runtime.ports import free_port
from runtime.postgres import PostgresServer
from tests.polling import eventually
from tests.replay.histories import HISTORIES, files, versions, write
from tests.replay.scene import Scene
from tests.replay.scenes import SHOPS
from tests.shop import QUICK, open_shop
from tests.workflows.skipping import overlapping, start_environment
from tests.workflows.till import Till


async def record(version: int) -> None:
    """Plays all scenes, and then writes their histories in place of those that this version has."""
    histories: dict[str, WorkflowHistory] = {}
    for scenes in SHOPS:
        async with _open_till() as till:
            for name, scene in scenes.items():
                histories[name] = await _history(till, name, scene)
                print(name)  # noqa: T201 (read by a person)
    for old in files(str(version)):
        old.unlink()
    for name, history in histories.items():
        write(HISTORIES / str(version) / f"{name}.json", history)


async def _history(till: Till, name: str, scene: Scene) -> WorkflowHistory:
    handle = await scene.stage(till, name)
    await _until_quiet(handle)
    history = await handle.fetch_history()
    if (await handle.describe()).status is WorkflowExecutionStatus.RUNNING:
        await handle.terminate("its history is recorded")
    return history


@asynccontextmanager
async def _open_till() -> AsyncIterator[Till]:
    async with AsyncExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        postgres = await stack.enter_async_context(PostgresServer(home, free_port(), durable=False))
        url = await postgres.create_database()
        await asyncio.to_thread(migrate, url)
        database = Database(url, application="record")
        stack.push_async_callback(database.close)
        environment = await stack.enter_async_context(await start_environment())
        still = overlapping(environment.with_time_skipping_disabled)
        shop = await stack.enter_async_context(open_shop(environment.client, database, url, QUICK, still))
        yield Till(shop, environment)


async def _until_quiet(handle: WorkflowHandle[object, object]) -> None:
    """Until nothing is under way: the order has ended, or only waits."""

    async def look() -> bool:
        found = (await handle.describe()).raw_description
        return not found.pending_activities and not found.HasField("pending_workflow_task")

    await eventually(look)


def main() -> int:
    """The version is the first argument."""
    configure_logs("CRITICAL")  # scenes break on purpose
    version = int(sys.argv[1]) if len(sys.argv) > 1 else max(versions(), default=1)
    asyncio.run(record(version))
    return 0


if __name__ == "__main__":
    leave(main())
