"""Holds: who holds what and why, and the look that every effect at a provider takes before it is sent."""

import asyncio
import time
from collections.abc import Awaitable, Callable

from sqlalchemy import exists, func, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.database import Database
from adapters.tables import holds
from domain.errors import OnHold
from domain.holds import Held, Hold

#: What is placed or released is seen by every worker after this long.
STALE_SECONDS = 1.0

#: Called before an effect is sent. Raises OnHold when it must not be.
BeforeEffect = Callable[[], Awaitable[None]]

_OPEN = holds.c.released_at.is_(None)
INTAKE_IS_HELD = exists().where(holds.c.party == Held.INTAKE.value, _OPEN)


async def let_pass() -> None:
    """For clients that only read, and for those that nobody holds."""


class Holding:
    """What is held, as one process sees it: read anew when it is older than STALE_SECONDS, whoever asks."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._held: frozenset[Held] = frozenset()
        self._read_at: float | None = None
        self._reading = asyncio.Lock()

    def before(self, party: Held) -> BeforeEffect:
        """The look before an effect at this party. Raises OnHold, or DatabaseUnavailable."""

        async def look() -> None:
            if party in await self._current():
                raise OnHold(party.value)

        return look

    async def _current(self) -> frozenset[Held]:
        async with self._reading:
            if self._read_at is None or time.monotonic() - self._read_at >= STALE_SECONDS:
                # Before the query: what is placed while it runs must not be missed for longer.
                read_at = time.monotonic()
                async with self._database.begin() as connection:
                    self._held = await held_parties(connection)
                self._read_at = read_at
        return self._held


async def held_parties(connection: AsyncConnection) -> frozenset[Held]:
    """What is held now."""
    return frozenset(map(Held, await connection.scalars(select(holds.c.party).where(_OPEN))))


async def read_holds(database: Database) -> list[Hold]:
    """The holds that stand, the oldest first."""
    query = select(holds.c.party, holds.c.actor, holds.c.reason, holds.c.at).where(_OPEN).order_by(holds.c.at)
    async with database.begin() as connection:
        return [Hold(Held(row.party), row.actor, row.reason, row.at) for row in await connection.execute(query)]


async def place_hold(database: Database, party: Held, actor: str, reason: str) -> bool:
    """Holds the party. False: it is held already, and nothing changes.

    Returns when every worker sees it: what is sent to the party afterwards was under way before.
    """
    row = insert(holds).values(party=party.value, actor=actor, reason=reason)
    once = row.on_conflict_do_nothing(index_elements=["party"], index_where=_OPEN).returning(holds.c.hold_id)
    async with database.begin() as connection:
        placed = await connection.scalar(once) is not None
    await _seen(party, placed)
    return placed


async def release_hold(database: Database, party: Held, actor: str, reason: str) -> bool:
    """Ends the party's hold. False: it is not held. Returns when every worker sees it."""
    ended = (
        update(holds)
        .where(holds.c.party == party.value, _OPEN)
        .values(released_at=func.clock_timestamp(), released_by=actor, release_reason=reason)
        .returning(holds.c.hold_id)
    )
    async with database.begin() as connection:
        released = await connection.scalar(ended) is not None
    await _seen(party, released)
    return released


async def _seen(party: Held, changed: bool) -> None:
    """Until no worker goes by what was before. The intake is looked up afresh for each order."""
    if changed and party is not Held.INTAKE:
        await asyncio.sleep(STALE_SECONDS)
