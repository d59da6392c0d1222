"""The outbox: events wait here, in the transaction that made them true, until somebody has published them.

At least once, in order of `sequence` as far as nothing fails: a failing event steps aside for its back-off and does
not hold up the others. Any number of relays may claim side by side.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Select, func, literal, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.tables import outbox
from domain.events import EventType, OrderEvent

#: Where a relay listens (a speed-up over polling). The payload is the order's id.
CHANNEL = "outbox"

FIRST_WAIT_SECONDS = 1
#: After an outage of the server the relay is back within a minute.
LONGEST_WAIT_SECONDS = 60


@dataclass(frozen=True)
class OutboxRow:
    """One claimed event. `attempts` counts the failures so far."""

    sequence: int
    event_id: str
    order_id: str
    type: EventType
    data: dict[str, Any]
    correlation_id: str
    attempts: int


async def append_event(connection: AsyncConnection, event: OrderEvent, *, correlation_id: str) -> None:
    """Writes the event in the caller's transaction and, for a new order, wakes the relays at its commit.

    Idempotent by the event's id: the fact that is already there stays as it was told.
    """
    row = insert(outbox).values(
        event_id=event.id,
        order_id=event.subject,
        type=event.type.value,
        data=event.data.model_dump(mode="json"),
        correlation_id=correlation_id,
    )
    await connection.execute(row.on_conflict_do_nothing(index_elements=["event_id"]))
    if event.type is EventType.ORDER_SUBMITTED:
        await connection.execute(select(func.pg_notify(CHANNEL, event.subject)))


def _unpublished(*columns: Any, types: Collection[EventType]) -> Select[Any]:
    return select(*columns).where(outbox.c.published_at.is_(None), outbox.c.type.in_([kind.value for kind in types]))


async def claim_unpublished(
    connection: AsyncConnection, types: Collection[EventType], limit: int, *, order_id: str | None = None
) -> list[OutboxRow]:
    """The oldest events of these types that are due, of one order or of all; those that another relay holds are left.

    They stay locked until the caller's transaction ends.

    Publish, mark and commit in that order: a crash in between publishes again.
    """
    columns = (
        outbox.c.sequence,
        outbox.c.event_id,
        outbox.c.order_id,
        outbox.c.type,
        outbox.c.data,
        outbox.c.correlation_id,
        outbox.c.attempts,
    )
    due = _unpublished(*columns, types=types).where(outbox.c.next_attempt_at <= func.clock_timestamp())
    if order_id is not None:
        due = due.where(outbox.c.order_id == order_id)
    rows = await connection.execute(due.order_by(outbox.c.sequence).limit(limit).with_for_update(skip_locked=True))
    return [OutboxRow(**{**row, "type": EventType(row["type"])}) for row in rows.mappings()]


async def mark_published(connection: AsyncConnection, sequences: Collection[int]) -> None:
    """These events are out."""
    await connection.execute(
        update(outbox)
        .where(outbox.c.sequence.in_(sequences), outbox.c.published_at.is_(None))
        .values(published_at=func.clock_timestamp(), last_error=None)
    )


async def mark_failed(connection: AsyncConnection, sequence: int, error: str) -> None:
    """This event could not be published: it is due again after 1 s, doubled each time up to a minute.

    `error` is a class name, never a provider's text.
    """
    wait_seconds = func.least(
        FIRST_WAIT_SECONDS * func.power(2, func.least(outbox.c.attempts, 10)), LONGEST_WAIT_SECONDS
    )
    await connection.execute(
        update(outbox)
        .where(outbox.c.sequence == sequence)
        .values(
            attempts=outbox.c.attempts + 1,
            next_attempt_at=func.clock_timestamp() + func.make_interval(0, 0, 0, 0, 0, 0, wait_seconds),
            last_error=error,
        )
    )


async def oldest_unpublished_seconds(connection: AsyncConnection, types: Collection[EventType]) -> float:
    """The age of the oldest event of these types that is not out, 0 when there is none: what an alert watches."""
    age = func.extract("epoch", func.clock_timestamp() - func.min(outbox.c.created_at))
    return float((await connection.execute(_unpublished(func.coalesce(age, literal(0)), types=types))).scalar_one())
