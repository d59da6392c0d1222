"""The stamps of effects in `order_steps`, and the fence that they make.

An effect and its undo take the same lock before they look at the stamps, in the transaction of the effect itself.
So a late attempt finds the tombstone of its undo, or the undo finds the effect: never neither.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import func, select, text
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.database import Database
from adapters.tables import order_steps, reservations
from domain.errors import DatabaseUnavailable, StepFenced, TransientError
from domain.keys import UNDO_OF, EffectKey, Step
from domain.messages import BegunEffect
from domain.order import StepState


@dataclass(frozen=True)
class Stamps:
    """What was known of one effect when its lock was taken, over all revisions of its key."""

    states: frozenset[StepState]
    provider_reference: str | None = None
    #: When the newest attempt at a provider began, and how long ago that is by the database's clock.
    intended_at: datetime | None = None
    seconds_since_intended: float | None = None
    #: All attempts so far were told "not now": certainly no effect.
    never_served: bool = False

    @property
    def done(self) -> bool:
        """The effect is there (and may since have been undone)."""
        return StepState.DONE in self.states

    @property
    def undone(self) -> bool:
        """The tombstone stands: no forward attempt may take effect any more."""
        return StepState.UNDONE in self.states

    @property
    def unanswered(self) -> bool:
        """A provider was called and never answered: the effect may still land."""
        answers = {StepState.DONE, StepState.REFUSED}
        return StepState.INTENDED in self.states and not self.never_served and not answers & self.states


async def enter(connection: AsyncConnection, key: EffectKey) -> Stamps:
    """Takes the effect's lock until the transaction ends and reads its stamps.

    The lock is on order, step and item: all revisions of a key are one effect.
    """
    await connection.execute(
        text("SELECT pg_advisory_xact_lock(hashtextextended(:effect, 0))"),
        {"effect": f"{key.order_id}:{key.step}:{key.item}"},
    )
    rows = (
        await connection.execute(
            select(
                order_steps.c.state,
                order_steps.c.provider_reference,
                order_steps.c.last_at,
                func.extract("epoch", func.clock_timestamp() - order_steps.c.last_at).label("age"),
            )
            .where(
                order_steps.c.order_id == key.order_id,
                order_steps.c.step == key.step,
                order_steps.c.item == key.item,
            )
            .order_by(order_steps.c.last_at)
        )
    ).all()
    intended = [row for row in rows if row.state == StepState.INTENDED]
    not_served = [row for row in rows if row.state == StepState.NOT_SERVED]
    references = [row.provider_reference for row in rows if row.provider_reference]
    return Stamps(
        states=frozenset(StepState(row.state) for row in rows),
        provider_reference=references[-1] if references else None,
        intended_at=intended[-1].last_at if intended else None,
        seconds_since_intended=float(intended[-1].age) if intended else None,
        never_served=bool(intended and not_served) and not_served[-1].last_at > intended[-1].last_at,
    )


async def enter_forward(connection: AsyncConnection, key: EffectKey) -> Stamps:
    """`enter` for a forward attempt. Raises StepFenced when the undo has already been here."""
    stamps = await enter(connection, key)
    if stamps.undone:
        raise StepFenced(str(key))
    return stamps


async def stamp(
    connection: AsyncConnection,
    key: EffectKey,
    state: StepState,
    *,
    attempt: int = 1,
    provider_reference: str | None = None,
    actor: str = "system",
    reason: str | None = None,
) -> datetime:
    """Writes one stamp. Writing it again keeps the first time and renews attempt, reference and `last_at`, returned."""
    row = insert(order_steps).values(
        order_id=key.order_id,
        step=key.step.value,
        item=key.item,
        revision=key.revision,
        state=state.value,
        attempt=attempt,
        provider_reference=provider_reference,
        actor=actor,
        reason=reason,
    )
    written = await connection.execute(
        row.on_conflict_do_update(
            index_elements=["order_id", "step", "item", "revision", "state"],
            set_={
                "attempt": func.greatest(order_steps.c.attempt, row.excluded.attempt),
                "provider_reference": func.coalesce(row.excluded.provider_reference, order_steps.c.provider_reference),
                "last_at": func.clock_timestamp(),
            },
        ).returning(order_steps.c.last_at)
    )
    last_at: datetime = written.scalar_one()
    return last_at


@asynccontextmanager
async def asking(database: Database, key: EffectKey, attempt: int) -> AsyncIterator[None]:
    """Around calls of a provider: one that ends without an answer is stamped *unknown*, for the timeline.

    The error goes on. Nothing is decided by the stamp: `unanswered` knows the same from what is missing.
    """
    try:
        yield
    except DatabaseUnavailable:
        raise
    except TransientError as error:
        with suppress(DatabaseUnavailable):
            async with database.begin() as connection:
                await stamp(connection, key, StepState.UNKNOWN, attempt=attempt, reason=type(error).__name__)
        raise


async def stamp_not_served(connection: AsyncConnection, key: EffectKey, before: Stamps, began: datetime) -> None:
    """The attempt that was stamped *intended* at `began` had certainly no effect.

    Nothing is said where that does not make all attempts certain: one was unanswered `before`, or another one has
    begun meanwhile.
    """
    if not before.unanswered and (await enter(connection, key)).intended_at == began:
        await stamp(connection, key, StepState.NOT_SERVED)


async def begun_effects(connection: AsyncConnection, order_id: str, *, ran: bool = False) -> list[BegunEffect]:
    """What an earlier run of the order has begun or may have on its way, as the saga orders it; empty in the first run.

    `ran`: there was one, though our books may know nothing of it (they were restored to an older time). An attempt that
    left no stamp yet may still land. So once there was any run, each compensatable step counts, and a booking for each
    warehouse with a reservation.
    """
    stamped = select(order_steps.c.step).where(order_steps.c.order_id == order_id).limit(1)
    if not ran and (await connection.execute(stamped)).first() is None:
        return []
    reserved = select(reservations.c.warehouse).where(reservations.c.order_id == order_id).distinct()
    begun = [BegunEffect(step=step) for step in UNDO_OF if step is not Step.BOOK_SHIPMENT]
    warehouses = sorted(await connection.scalars(reserved))
    return begun + [BegunEffect(step=Step.BOOK_SHIPMENT, item=warehouse) for warehouse in warehouses]
