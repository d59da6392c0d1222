"""The stamps of effects in `order_steps`, and the fence that they make.

An effect and its undo take the same lock before they look at the stamps, in the transaction of the effect itself.
So a late attempt finds the tombstone of its undo, or the undo finds the effect: never neither.
"""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import func, select, text
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.tables import order_steps
from domain.errors import StepFenced
from domain.keys import EffectKey, Step
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
        return StepState.INTENDED in self.states and not answers & self.states


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
    references = [row.provider_reference for row in rows if row.provider_reference]
    return Stamps(
        states=frozenset(StepState(row.state) for row in rows),
        provider_reference=references[-1] if references else None,
        intended_at=intended[-1].last_at if intended else None,
        seconds_since_intended=float(intended[-1].age) if intended else None,
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
) -> None:
    """Writes one stamp. Writing it again keeps the first time and renews attempt, reference and `last_at`."""
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
    await connection.execute(
        row.on_conflict_do_update(
            index_elements=["order_id", "step", "item", "revision", "state"],
            set_={
                "attempt": func.greatest(order_steps.c.attempt, row.excluded.attempt),
                "provider_reference": func.coalesce(row.excluded.provider_reference, order_steps.c.provider_reference),
                "last_at": func.clock_timestamp(),
            },
        )
    )


#: The forward steps whose effects have an undo.
COMPENSATABLE = (
    Step.RESERVE_STOCK,
    Step.BURN_POINTS,
    Step.APPLY_STORE_CREDIT,
    Step.AUTHORIZE_PAYMENT,
    Step.BOOK_SHIPMENT,
)


async def begun_effects(connection: AsyncConnection, order_id: str) -> list[BegunEffect]:
    """The compensatable steps of the order that have any stamp, in the order in which they began.

    A step whose attempts left none has had no effect: the stamp is written with it, or before a provider is called.
    """
    began = func.min(order_steps.c.at)
    query = (
        select(order_steps.c.step, order_steps.c.item)
        .where(order_steps.c.order_id == order_id, order_steps.c.step.in_(COMPENSATABLE))
        .group_by(order_steps.c.step, order_steps.c.item)
        .order_by(began, order_steps.c.step, order_steps.c.item)
    )
    return [BegunEffect(step=Step(row.step), item=row.item) for row in await connection.execute(query)]
