"""What the providers have, written down for a run: each party's worker reads the provider whose secrets it has.

Questions only. Idempotent by the provider's own ids: what was written stands, and a try goes on after the page where
the one before stopped.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from typing import TypeVar

from temporalio import activity

from adapters.courier import Courier, Shipment
from adapters.database import Database
from adapters.payment_gateway import PaymentGateway
from adapters.reconciliation import staged
from adapters.stripe_answers import Intent, IntentStatus, Refund
from domain.errors import CourierUnavailable, NotServed, PaymentServiceUnavailable, TransientError
from domain.keys import shipment_reference
from domain.reconciliation import BegunRun, PartRead

#: Rows that are written at once; a heartbeat goes with them.
PAGE = 500
#: Questions about single orders that run side by side.
SIDE_BY_SIDE = 8
#: An order that was closed in a run's time was mostly paid in the hour before. What the list misses is asked for alone.
BEFORE = timedelta(hours=1)

INTENTS, REFUNDS = "intents", "refunds"

Key = TypeVar("Key")
Told = TypeVar("Told")


class GatewayBooksActivities:
    """Served on the queue `payments`."""

    def __init__(self, database: Database, gateway: PaymentGateway) -> None:
        self._database = database
        self._gateway = gateway

    @activity.defn
    async def read_gateway_books(self, run: BegunRun) -> PartRead:
        """Keeps every intent and refund since the run's beginning, and those of the orders that it compares.

        Raises PaymentServiceUnavailable or GatewayProtocolError.
        """
        since = run.since - BEFORE
        list_name, after = _progress(INTENTS)
        with _one_silence(PaymentServiceUnavailable):
            if list_name == INTENTS:
                async for intents in _pages(self._gateway.list_intents(since=since, after=after)):
                    async with self._database.begin() as connection:
                        await staged.write_intents(connection, run.run_id, intents)
                    activity.heartbeat(INTENTS, intents[-1].id)
                after = None
            async for refunds in _pages(self._gateway.list_all_refunds(since=since, after=after)):
                async with self._database.begin() as connection:
                    await staged.write_refunds(connection, run.run_id, refunds)
                after = refunds[-1].id
                activity.heartbeat(REFUNDS, after)
            await self._read_others(run.run_id, after)
        return PartRead()

    async def _read_others(self, run_id: str, last_refund: str | None) -> None:
        """Intents of the run's orders that are older than the list."""
        after = ""
        while True:
            async with self._database.begin() as connection:
                others = await staged.intents_not_listed(connection, run_id, after, PAGE)
            if not others:
                return
            told = await _side_by_side(others, self._read)
            async with self._database.begin() as connection:
                await staged.write_intents(connection, run_id, [intent for intent, _ in told])
                await staged.write_refunds(connection, run_id, [refund for _, refunds in told for refund in refunds])
            after = others[-1][0]
            activity.heartbeat(REFUNDS, last_refund)

    async def _read(self, order: tuple[str, str]) -> tuple[Intent, Sequence[Refund]]:
        order_id, intent_id = order
        intent = replace(await self._gateway.read_intent(intent_id), order_id=order_id)
        captured = intent.status is IntentStatus.SUCCEEDED
        return intent, await self._gateway.list_refunds(intent_id) if captured else ()


class CourierBooksActivities:
    """Served on the queue `shipping`."""

    def __init__(self, database: Database, courier: Courier) -> None:
        self._database = database
        self._courier = courier

    @activity.defn
    async def read_courier_books(self, run: BegunRun) -> PartRead:
        """Keeps every parcel that was booked since the run's beginning, and those of the orders that it compares.

        Returns the newest parcel. Raises CourierUnavailable or GatewayProtocolError.
        """
        _, after = _progress("parcels")
        newest = after or run.parcels_after
        with _one_silence(CourierUnavailable):
            async for parcels in _pages(self._courier.list_shipments(after=newest)):
                async with self._database.begin() as connection:
                    await staged.write_parcels(connection, run.run_id, parcels)
                newest = parcels[-1].id
                activity.heartbeat("parcels", newest)
            await self._find_others(run.run_id, newest)
        return PartRead(cursor=newest)

    async def _find_others(self, run_id: str, newest: str | None) -> None:
        after = ("", "")
        while True:
            async with self._database.begin() as connection:
                others = await staged.bookings_not_listed(connection, run_id, after, PAGE)
            if not others:
                return
            found = await _side_by_side(others, self._find)
            async with self._database.begin() as connection:
                await staged.write_parcels(connection, run_id, [parcel for parcel in found if parcel])
            after = others[-1]
            activity.heartbeat("parcels", newest)

    async def _find(self, booking: tuple[str, str]) -> Shipment | None:
        return await self._courier.find(shipment_reference(*booking))


def _progress(first: str) -> tuple[str, str | None]:
    """Which list the try before was reading, and the last that it has written of it."""
    details = activity.info().heartbeat_details
    return (details[0], details[1]) if details else (first, None)


@contextmanager
def _one_silence(unavailable: type[TransientError]) -> Iterator[None]:
    """A question has no effect, so *not now* is no other answer than none: both are tried again where they stopped."""
    try:
        yield
    except NotServed as error:
        raise unavailable(str(error)) from None


async def _pages(told: AsyncIterator[Told]) -> AsyncIterator[list[Told]]:
    page: list[Told] = []
    async for one in told:
        page.append(one)
        if len(page) == PAGE:
            yield page
            page = []
    if page:
        yield page


async def _side_by_side(keys: Sequence[Key], ask: Callable[[Key], Awaitable[Told]]) -> list[Told]:
    limit = asyncio.Semaphore(SIDE_BY_SIDE)

    async def one(key: Key) -> Told:
        async with limit:
            return await ask(key)

    return list(await asyncio.gather(*map(one, keys)))
