"""The webhook inbox: events of providers under their own id, kept before anything is answered.

At least once in, at least once out: an event seen before is not stored again, a claimed one comes back when its
delivery was cut off. Ids and types only; a body never gets here.
"""

from collections.abc import Collection
from dataclasses import asdict, dataclass
from datetime import timedelta

from sqlalchemy import (
    ColumnElement,
    RowMapping,
    Select,
    and_,
    false,
    func,
    literal_column,
    or_,
    select,
    text,
    tuple_,
    update,
)
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.payments import UNSETTLED
from adapters.tables import orders, payments, shipments, webhook_inbox
from domain.order import OrderStatus, ShipmentStatus

#: Where a delivery listens (a speed-up over polling).
CHANNEL = "webhook_inbox"

FIRST_WAIT_SECONDS = 1
LONGEST_WAIT_SECONDS = 30
#: Events are kept this long, for people to look at; providers redeliver for three days at most.
KEPT = timedelta(days=30)
#: Of nobody's events no more than this: anybody may send them.
SET_ASIDE_MOST = 100_000

#: What a shipment may be before it becomes this: never back, never out of CANCELLED.
_BEFORE = {
    ShipmentStatus.DISPATCHED: [ShipmentStatus.BOOKED],
    ShipmentStatus.DELIVERED: [ShipmentStatus.BOOKED, ShipmentStatus.DISPATCHED],
}

EventKey = tuple[str, str]


@dataclass(frozen=True)
class IncomingEvent:
    """What is kept of an event: ids and its type, nothing of its body. `order_id` is the order that it names."""

    source: str
    event_id: str
    type: str
    object_id: str | None
    order_id: str | None


@dataclass(frozen=True)
class WaitingEvent:
    """One claimed event, and what our own records say about it.

    `order_id` is the order that it names, or else the one whose stored intent it names, if there is such an order;
    `status` and `own_intent` are that order's. `owner` is the order whose stored intent this is. `settled` says that
    the order is confirmed and its whole amount captured.
    """

    source: str
    event_id: str
    type: str
    object_id: str | None
    names_order: bool
    attempts: int
    age_seconds: float
    order_id: str | None
    status: OrderStatus | None
    own_intent: str | None
    owner: str | None
    settled: bool

    @property
    def key(self) -> EventKey:
        """The event's key in the inbox."""
        return self.source, self.event_id


async def store_event(connection: AsyncConnection, event: IncomingEvent) -> bool:
    """Keeps the event in the caller's transaction and wakes delivery at its commit. False: it was seen before."""
    row = insert(webhook_inbox).values(**asdict(event))
    stored = await connection.execute(
        row.on_conflict_do_nothing(index_elements=["source", "event_id"]).returning(webhook_inbox.c.event_id)
    )
    if stored.first() is None:
        return False
    await connection.execute(select(func.pg_notify(CHANNEL, event.event_id)))
    return True


async def claim_waiting(connection: AsyncConnection, limit: int) -> list[WaitingEvent]:
    """The oldest events that are due. They stay locked until the caller's transaction ends.

    Deliver, settle and commit in that order: a crash in between delivers again.
    """
    inbox, owner, own = webhook_inbox, payments.alias("owner"), payments.alias("own")
    query = (
        select(
            inbox.c.source,
            inbox.c.event_id,
            inbox.c.type,
            inbox.c.object_id,
            inbox.c.order_id.is_not(None).label("names_order"),
            inbox.c.attempts,
            func.extract("epoch", func.clock_timestamp() - inbox.c.received_at).label("age_seconds"),
            orders.c.order_id,
            orders.c.status,
            own.c.intent_id.label("own_intent"),
            owner.c.order_id.label("owner"),
            func.coalesce(
                and_(
                    orders.c.status == OrderStatus.CONFIRMED,
                    own.c.captured == own.c.amount,
                    own.c.status.not_in(UNSETTLED),
                ),
                false(),
            ).label("settled"),
        )
        .select_from(inbox)
        .outerjoin(owner, owner.c.intent_id == inbox.c.object_id)
        .outerjoin(orders, orders.c.order_id == func.coalesce(inbox.c.order_id, owner.c.order_id))
        .outerjoin(own, own.c.order_id == orders.c.order_id)
        # Not the clock of the moment, which no index can be asked for.
        .where(_is_waiting(), inbox.c.next_attempt_at <= func.statement_timestamp())
        .order_by(inbox.c.next_attempt_at)
        .limit(limit)
        .with_for_update(of=inbox, skip_locked=True)
    )
    return [_waiting(row) for row in (await connection.execute(query)).mappings()]


def _waiting(row: RowMapping) -> WaitingEvent:
    status = None if row["status"] is None else OrderStatus(row["status"])
    return WaitingEvent(**{**row, "status": status, "age_seconds": float(row["age_seconds"])})


async def settle(connection: AsyncConnection, keys: Collection[EventKey], state: str) -> None:
    """These events are done with: `state` is 'delivered', 'ignored' or 'set_aside'."""
    if not keys:
        return
    await connection.execute(
        update(webhook_inbox)
        .where(tuple_(webhook_inbox.c.source, webhook_inbox.c.event_id).in_(list(keys)))
        .values(state=state, settled_at=func.clock_timestamp(), last_error=None)
    )


async def keep_waiting(connection: AsyncConnection, key: EventKey, why: str) -> None:
    """This event cannot be delivered yet: it is due again after 1 s, doubled each time up to half a minute.

    `why` is a class name or a fixed word.
    """
    wait_seconds = func.least(
        FIRST_WAIT_SECONDS * func.power(2, func.least(webhook_inbox.c.attempts, 10)), LONGEST_WAIT_SECONDS
    )
    await connection.execute(
        update(webhook_inbox)
        .where(webhook_inbox.c.source == key[0], webhook_inbox.c.event_id == key[1])
        .values(
            attempts=webhook_inbox.c.attempts + 1,
            next_attempt_at=func.clock_timestamp() + func.make_interval(0, 0, 0, 0, 0, 0, wait_seconds),
            last_error=why,
        )
    )


async def move_shipment(connection: AsyncConnection, shipment_id: str, status: ShipmentStatus) -> bool | None:
    """Moves the courier's shipment forward to `status`. False: it is there or further already; None: not ours.

    Idempotent: a status only ever moves forward, and a cancelled shipment stays cancelled.
    """
    moved = await connection.execute(
        update(shipments)
        .where(shipments.c.shipment_id == shipment_id, shipments.c.status.in_(_BEFORE[status]))
        .values(status=status.value, updated_at=func.clock_timestamp())
    )
    if moved.rowcount:
        return True
    known = await connection.execute(select(shipments.c.status).where(shipments.c.shipment_id == shipment_id))
    return None if known.first() is None else False


#: Found by its place in the table: a join with a batch of keys would look through all of it.
_PRUNE = "DELETE FROM webhook_inbox WHERE ctid = ANY(ARRAY(SELECT ctid FROM webhook_inbox WHERE {old} LIMIT :limit))"
#: GREATEST passes over the null of an inbox that does not hold too many.
_OLD_SET_ASIDE = """
    state = 'set_aside' AND received_at <= greatest(statement_timestamp() - CAST(:kept AS interval), (
        SELECT received_at FROM webhook_inbox WHERE state = 'set_aside'
        ORDER BY received_at DESC OFFSET CAST(:most AS bigint) LIMIT 1))
"""
_OLD_SETTLED = """
    state IN ('delivered', 'ignored') AND settled_at < statement_timestamp() - CAST(:kept AS interval)
"""


async def prune_inbox(connection: AsyncConnection, limit: int) -> int:
    """Forgets up to `limit` events that nobody will look at again, and returns how many.

    Those are delivered and ignored ones, and nobody's, after their time; and nobody's when there are too many.
    """
    terms = {"kept": KEPT, "most": SET_ASIDE_MOST, "limit": limit}
    aside = await connection.execute(text(_PRUNE.format(old=_OLD_SET_ASIDE)), terms)
    terms = {"kept": KEPT, "limit": limit - aside.rowcount}
    settled = await connection.execute(text(_PRUNE.format(old=_OLD_SETTLED)), terms)
    return aside.rowcount + settled.rowcount


def count_unsettled() -> Select[tuple[str, str, int]]:
    """A query: source, state and how many events wait or are set aside."""
    source, state = webhook_inbox.c.source, webhook_inbox.c.state
    unsettled = or_(_is_waiting(), state == literal_column("'set_aside'"))
    return select(source, state, func.count()).where(unsettled).group_by(source, state)


async def oldest_waiting_seconds(connection: AsyncConnection) -> float:
    """The age of the oldest event that waits for delivery, 0 when there is none: what an alert watches."""
    age = func.extract("epoch", func.clock_timestamp() - func.min(webhook_inbox.c.received_at))
    query = select(func.coalesce(age, 0)).where(_is_waiting())
    return float((await connection.execute(query)).scalar_one())


def _is_waiting() -> ColumnElement[bool]:
    """In SQL's own words, as the partial index has it: even a prepared statement fits it."""
    return webhook_inbox.c.state == literal_column("'waiting'")
