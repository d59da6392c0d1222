"""The outbox: events are written in the transaction that made them true. `OrderSubmitted` waits for the relay.

The other facts are there for consumers that keep their own place. At least once, in order of `sequence` as far as
nothing fails: a failing event steps aside for its back-off and does not hold up the others. Any number of relays may
claim side by side.
"""

from collections.abc import Collection
from dataclasses import dataclass, fields
from typing import Any

from sqlalchemy import and_, func, literal_column, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.tables import outbox
from adapters.tracing import in_trace_of, span
from domain.events import EventType, OrderEvent, event_id

#: Where a relay listens (a speed-up over polling). The payload is the order's id.
CHANNEL = "outbox"

FIRST_WAIT_SECONDS = 1
#: After an outage of the server the relay is back within a minute.
LONGEST_WAIT_SECONDS = 60


@dataclass(frozen=True)
class OutboxRow:
    """One claimed `OrderSubmitted`. `attempts` counts the failures so far."""

    sequence: int
    event_id: str
    order_id: str
    data: dict[str, Any]
    correlation_id: str
    attempts: int


async def append_event(connection: AsyncConnection, event: OrderEvent, *, correlation_id: str) -> None:
    """Writes the event in the caller's transaction and, for a new order, wakes the relays at its commit.

    Idempotent by the event's id: the fact that is already there stays as it was told.
    """
    with in_trace_of(event.subject), span(f"event {event.type}", order_id=event.subject):
        await _append(connection, event, correlation_id)


async def _append(connection: AsyncConnection, event: OrderEvent, correlation_id: str) -> None:
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


#: Accepted orders that the relay has not started: in SQL's own words, as the index has it, so that even a prepared
#: statement reads these rows and not the events of all orders there ever were.
_UNPUBLISHED = and_(
    outbox.c.published_at.is_(None), outbox.c.type == literal_column(f"'{EventType.ORDER_SUBMITTED.value}'")
)


async def claim_submitted(connection: AsyncConnection, limit: int, *, order_id: str | None = None) -> list[OutboxRow]:
    """The oldest `OrderSubmitted` that are due, of one order or of all; those that another relay holds are left.

    They stay locked until the caller's transaction ends. Publish, mark and commit in that order: a crash in between
    publishes again.
    """
    columns = (outbox.c[field.name] for field in fields(OutboxRow))
    due = select(*columns).where(_UNPUBLISHED, outbox.c.next_attempt_at <= func.statement_timestamp())
    if order_id is not None:
        due = due.where(outbox.c.event_id == event_id(order_id, EventType.ORDER_SUBMITTED))
    rows = await connection.execute(due.order_by(outbox.c.sequence).limit(limit).with_for_update(skip_locked=True))
    return [OutboxRow(**row) for row in rows.mappings()]


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


async def oldest_submitted_seconds(connection: AsyncConnection) -> float:
    """How long the first of the accepted orders without a saga has waited, 0 when there is none: for an alert."""
    age = func.extract("epoch", func.clock_timestamp() - outbox.c.created_at)
    return float(await connection.scalar(select(age).where(_UNPUBLISHED).order_by(outbox.c.sequence).limit(1)) or 0)
