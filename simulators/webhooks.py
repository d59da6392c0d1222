"""Webhooks: each event is kept until its endpoint has answered 2xx, signed anew for each attempt as Stripe signs.

At least once and unordered. An endpoint that is down is tried again for three days; one that answers anything but 2xx
fifty times in a row is disabled, and events for it are lost until it is enabled again.
"""

import asyncio
import hashlib
import hmac
import itertools
import json
import logging
import time
from collections import deque
from dataclasses import dataclass, field
from typing import Any

import aiohttp

from simulators.clock import Clock
from simulators.faults import Fault, FaultTable
from simulators.ids import new_id
from simulators.store import Store

#: INTERFACES of the shop and Stripe's practice: an endpoint that only fails is switched off.
DISABLED_AFTER = 50
#: Stripe tries for up to three days.
GIVE_UP_SECONDS = 3 * 24 * 3600
_API_VERSION = "2026-10-28.endive"
_REORDER_LIMIT_SECONDS = 2.0

_log = logging.getLogger("simulators.webhooks")


@dataclass
class Endpoint:
    """Where a provider's events go. Without a URL there is no endpoint and events are lost."""

    header: str
    url: str | None = None
    secret: str = "whsec_simulator"
    enabled: bool = True
    failures_in_a_row: int = 0


@dataclass
class Pace:
    """Waits between attempts: the first, doubled each time up to the longest; and how long one attempt may take."""

    first_seconds: float = 0.5
    longest_seconds: float = 15.0
    timeout_seconds: float = 10.0


@dataclass
class Delivery:
    """An event on its way, numbered as published. `answered`: tried once; `overtaken`: a later one has passed."""

    event: dict[str, Any]
    order_id: str | None
    state: str = "pending"
    attempts: int = 0
    last_status: int | None = None
    number: int = field(default_factory=itertools.count().__next__)
    answered: asyncio.Event = field(default_factory=asyncio.Event)
    overtaken: asyncio.Event = field(default_factory=asyncio.Event)

    def view(self) -> dict[str, Any]:
        """One line about the event, without its object."""
        about = self.event["data"]["object"]
        return {
            "id": self.event["id"],
            "type": self.event["type"],
            "object": about.get("id"),
            "order_id": self.order_id,
            "state": self.state,
            "attempts": self.attempts,
            "last_status": self.last_status,
        }


def signature(body: bytes, secret: str, at: int) -> str:
    """Stripe's scheme: `t=…,v1=…`, HMAC-SHA256 over `t.body`."""
    digest = hmac.new(secret.encode(), f"{at}.".encode() + body, hashlib.sha256).hexdigest()
    return f"t={at},v1={digest}"


class Webhooks:
    """One provider's events. `publish` is called inside the transaction of what it tells about."""

    def __init__(
        self, party: str, store: Store, clock: Clock, *, faults: FaultTable, endpoint: Endpoint, pace: Pace
    ) -> None:
        self.endpoint = endpoint
        self._party = party
        self._store = store
        self._clock = clock
        self._faults = faults
        self._pace = pace
        self._pending: dict[str, Delivery] = {}
        self._held: list[Delivery] = []
        self._past: deque[Delivery] = deque(maxlen=1000)
        self._tasks: set[asyncio.Task[None]] = set()
        self._slots = asyncio.Semaphore(20)
        # What was on its way when the endpoint was switched off is lost, also when it is on again before the next try.
        self._times_disabled = 0
        self._session: aiohttp.ClientSession | None = None

    async def start(self) -> None:
        """Takes up what an earlier process had not delivered."""
        self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=self._pace.timeout_seconds))
        self.endpoint.enabled = self._store.recall(self._switch) != "off"
        for doc in self._store.docs("SELECT doc FROM events WHERE party = ? ORDER BY seq", self._party):
            delivery = Delivery(doc["event"], doc["order_id"])
            self._pending[delivery.event["id"]] = delivery
            self._spawn(delivery, None)

    async def stop(self) -> None:
        """Stops trying; what is pending stays kept."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._session is not None:
            await self._session.close()

    def publish(
        self, event_type: str, about: dict[str, Any], order_id: str | None, event_id: str | None = None
    ) -> Delivery:
        """Queues an event about an object; a webhook fault of its order may lose, double, delay or reorder it."""
        event = self.event(event_type, about, event_id)
        delivery = Delivery(event, order_id)
        fault = self._faults.take(self._party, "webhook", order_id)
        if self.endpoint.url is None or not self.endpoint.enabled or (fault and fault.mode == "lose"):
            self._settle(delivery, "lost")
            return delivery
        self._pending[event["id"]] = delivery
        self._store.write(
            "INSERT OR REPLACE INTO events (id, party, doc) VALUES (?, ?, ?)",
            *(event["id"], self._party, json.dumps({"event": event, "order_id": order_id})),
        )
        self._spawn(delivery, fault)
        if fault and fault.mode == "duplicate":
            self._spawn(delivery, None)
        return delivery

    def event(self, event_type: str, about: dict[str, Any], event_id: str | None = None) -> dict[str, Any]:
        """An event in Stripe's shape."""
        return {
            "id": event_id or new_id("evt"),
            "object": "event",
            "api_version": _API_VERSION,
            "created": int(self._clock.now()),
            "data": {"object": about},
            "livemode": False,
            "pending_webhooks": 1,
            "request": {"id": None, "idempotency_key": None},
            "type": event_type,
        }

    async def send(self, event: dict[str, Any], secret: str, offset_seconds: int) -> int | None:
        """One attempt, signed with this secret at this distance from now: the HTTP status; None without answer."""
        assert self._session is not None
        body = json.dumps(event).encode()
        headers = {
            "Content-Type": "application/json; charset=utf-8",
            self.endpoint.header: signature(body, secret, int(time.time()) + offset_seconds),
        }
        try:
            async with self._slots, self._session.post(self.endpoint.url or "", data=body, headers=headers) as answer:
                return answer.status
        except (aiohttp.ClientError, TimeoutError):
            return None

    def enable(self, enabled: bool) -> None:
        """Switches the endpoint; it stays so over a restart."""
        self.endpoint.enabled = enabled
        self.endpoint.failures_in_a_row = 0
        self._times_disabled += not enabled
        self._store.remember(self._switch, "on" if enabled else "off")

    def view(self) -> dict[str, Any]:
        """The endpoint's state."""
        return {
            "url": self.endpoint.url,
            "enabled": self.endpoint.enabled,
            "failures_in_a_row": self.endpoint.failures_in_a_row,
            "pending": len(self._pending),
        }

    def events(self) -> list[dict[str, Any]]:
        """The last thousand events that are settled, then those on their way."""
        return [delivery.view() for delivery in [*self._past, *self._pending.values()]]

    @property
    def _switch(self) -> str:
        return f"{self._party}_endpoint"

    def _spawn(self, delivery: Delivery, fault: Fault | None) -> None:
        task = asyncio.create_task(self._deliver(delivery, fault))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _deliver(self, delivery: Delivery, fault: Fault | None) -> None:
        if fault and fault.mode == "delay":
            await asyncio.sleep(fault.delay_ms / 1000)
        elif fault and fault.mode == "reorder":
            await self._let_one_pass(delivery, fault.delay_ms / 1000 or _REORDER_LIMIT_SECONDS)
        begun, times_disabled = time.monotonic(), self._times_disabled
        wait_seconds = self._pace.first_seconds
        while self._may_try(times_disabled) and time.monotonic() - begun < GIVE_UP_SECONDS:
            delivery.attempts += 1
            delivery.last_status = await self.send(delivery.event, self.endpoint.secret, 0)
            delivery.answered.set()
            if delivery.last_status is not None and 200 <= delivery.last_status < 300:
                self.endpoint.failures_in_a_row = 0
                self._settle(delivery, "delivered")
                return
            if delivery.last_status is not None:
                self._failed()
            await asyncio.sleep(wait_seconds)
            wait_seconds = min(wait_seconds * 2, self._pace.longest_seconds)
        self._settle(delivery, "lost")

    def _may_try(self, times_disabled: int) -> bool:
        return self.endpoint.enabled and self._times_disabled == times_disabled

    async def _let_one_pass(self, held: Delivery, limit_seconds: float) -> None:
        self._held.append(held)
        try:
            await asyncio.wait_for(held.overtaken.wait(), limit_seconds)
        except TimeoutError:
            _log.info("%s: no later event of its order overtook %s", self._party, held.event["id"])
        finally:
            self._held.remove(held)

    def _settle(self, delivery: Delivery, state: str) -> None:
        if delivery.state != "pending":
            return
        delivery.state = state
        self._pending.pop(delivery.event["id"], None)
        self._store.write("DELETE FROM events WHERE id = ?", delivery.event["id"])
        self._past.append(delivery)
        delivery.answered.set()
        for held in self._held:
            if held.order_id == delivery.order_id and held.number < delivery.number:
                held.overtaken.set()

    def _failed(self) -> None:
        self.endpoint.failures_in_a_row += 1
        if self.endpoint.failures_in_a_row == DISABLED_AFTER:
            self.enable(False)
            _log.warning("%s: the webhook endpoint is disabled after %d failures in a row", self._party, DISABLED_AFTER)
