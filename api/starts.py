"""Direct starts: an accepted order is started after its answer, without waiting for the relay's turn.

Only a speed-up. When Temporal or this process is busy or gone, the order's outbox row is still there and the relay
starts it.
"""

import asyncio

import structlog
from temporalio.client import Client

from adapters.database import Database
from api.metrics import Metrics
from domain.errors import DatabaseUnavailable
from events.relay import publish_submitted

#: Each holds a connection of the pool while it waits for Temporal: most of the pool is for requests.
MOST_IN_FLIGHT = 8

log = structlog.get_logger(__name__)


class DirectStarts:
    """A bounded set of background tasks, one an order."""

    def __init__(self, database: Database, client: Client, metrics: Metrics) -> None:
        self._database = database
        self._client = client
        self._metrics = metrics
        self._running: set[asyncio.Task[None]] = set()

    def offer(self, order_id: str) -> None:
        """Starts the order's saga in the background, or leaves it to the relay when enough starts are under way."""
        if len(self._running) >= MOST_IN_FLIGHT:
            self._metrics.direct_starts.labels("dropped").inc()
            return
        task = asyncio.create_task(self._start(order_id), name=f"start-{order_id}")
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _start(self, order_id: str) -> None:
        try:
            published = await publish_submitted(self._database, self._client, order_id=order_id)
            outcome = "started" if published.started else "failed" if published.failed else "relayed"
        except DatabaseUnavailable:
            outcome = "failed"
        except Exception:
            outcome = "failed"
            log.exception("direct_start_failed", order_id=order_id)
        self._metrics.direct_starts.labels(outcome).inc()

    async def close(self) -> None:
        """Waits for the starts under way."""
        await asyncio.gather(*self._running, return_exceptions=True)
