"""How a worker process ends."""

import asyncio

import pytest
from temporalio.client import Client

from adapters.database import Database
from runtime import workers as module
from runtime.settings import Settings
from runtime.workers import running_workers
from workflows.names import Queue


class Stopping:
    """Stands for the SDK's worker; its end takes until every one of the process has been told to end."""

    everybody: asyncio.Barrier

    def __init__(self, *_: object, **__: object) -> None:
        self._stopped = False

    async def __aenter__(self) -> "Stopping":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.shutdown()

    async def shutdown(self) -> None:
        """As the SDK's: safe to repeat."""
        if not self._stopped:
            await self.everybody.wait()
        self._stopped = True


async def test_the_workers_of_one_process_stop_together(
    monkeypatch: pytest.MonkeyPatch, database: Database, no_temporal: Client
) -> None:
    Stopping.everybody = asyncio.Barrier(len(Queue))
    monkeypatch.setattr(module, "Worker", Stopping)
    nowhere = "http://127.0.0.1:1"
    settings = Settings(
        _env_file=None,
        database_url=database.url,
        stripe_api_key="sk_test_of_the_tests",
        stripe_api_base=nowhere,
        courier_api_base=nowhere,
        fraud_api_base=nowhere,
        worker_build_id=None,
    )
    async with asyncio.timeout(20):
        async with running_workers(no_temporal, settings, list(Queue)):
            pass
