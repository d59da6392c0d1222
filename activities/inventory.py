"""Inventory: a basket is reserved, and the reservation ends as released or sold.

Idempotent here means one transaction an effect: the stamp in `order_steps`, the reservations, the stock and its
movements are written together, under the effect's lock.
"""

from temporalio import activity

from adapters import stock
from adapters.database import Database
from adapters.steps import enter, enter_forward, stamp
from domain.errors import ContradictionError, InventoryUnavailable, StepFenced
from domain.keys import EffectKey, Step
from domain.messages import Reservation, StepInput
from domain.order import StepState


class InventoryActivities:
    """The steps of the inventory party, on its database role."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @activity.defn
    async def reserve_stock(self, step: StepInput) -> Reservation:
        """Sets the whole basket aside, or nothing of it.

        Idempotent by the stamp of `reserve_stock`: a repeated call gets the first one's answer, a refusal too.
        Raises InventoryUnavailable when the stock does not suffice, StepFenced when it was already released.
        """
        key = EffectKey(step.order_id, Step.RESERVE_STOCK, revision=step.revision)
        async with self._database.begin() as connection:
            stamps = await enter_forward(connection, key)
            if stamps.done:
                return Reservation(warehouses=await stock.reserved_warehouses(connection, step.order_id))
            warehouses = [] if StepState.REFUSED in stamps.states else await stock.reserve(connection, key)
            state = StepState.DONE if warehouses else StepState.REFUSED
            await stamp(connection, key, state, attempt=activity.info().attempt)
        if not warehouses:
            raise InventoryUnavailable(str(key))
        return Reservation(warehouses=warehouses)

    @activity.defn
    async def release_stock(self, step: StepInput) -> None:
        """Gives the reservation back and leaves the tombstone that a late `reserve_stock` runs into.

        Idempotent by the reservations' own state: released ones are not released again. Harmless when there are none.
        Raises StepFenced when the stock has been sold: a confirmed order is not undone here.
        """
        forward = EffectKey(step.order_id, Step.RESERVE_STOCK, revision=step.revision)
        sale = EffectKey(step.order_id, Step.COMMIT_STOCK)
        async with self._database.begin() as connection:
            await enter(connection, forward)
            if (await enter(connection, sale)).done:
                raise StepFenced(str(forward))
            await stock.release(connection, EffectKey(step.order_id, Step.RELEASE_STOCK, revision=step.revision))
            await stamp(connection, forward, StepState.UNDONE, attempt=activity.info().attempt)

    @activity.defn
    async def commit_stock(self, step: StepInput) -> None:
        """Turns the reservation into a sale: the pieces leave the shelf.

        Idempotent by the reservations' own state: sold ones are not sold again. Raises StepFenced when the reservation
        was released, ContradictionError when there never was one.
        """
        key = EffectKey(step.order_id, Step.COMMIT_STOCK, revision=step.revision)
        async with self._database.begin() as connection:
            # The reservation's lock: a release is before it or after it.
            reserved = await enter_forward(connection, EffectKey(step.order_id, Step.RESERVE_STOCK))
            if not reserved.done:
                raise ContradictionError(str(key))
            await stock.sell(connection, key)
            await stamp(connection, key, StepState.DONE, attempt=activity.info().attempt)
