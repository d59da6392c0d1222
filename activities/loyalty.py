"""Loyalty: an order's points and store credit are taken, and given back when the order does not happen.

Idempotent here means one transaction an effect: the stamp in `order_steps`, the balance and its movement are written
together, under the effect's lock.
"""

from temporalio import activity

from adapters.database import Database
from adapters.loyalty import CREDIT, POINTS, Ledger, give_back, spend
from adapters.steps import enter, enter_forward, stamp
from domain.errors import InsufficientCredit, InsufficientPoints, Refusal
from domain.keys import EffectKey, Step
from domain.messages import StepInput
from domain.order import StepState


class LoyaltyActivities:
    """The steps of the loyalty party, on its database role."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @activity.defn
    async def burn_points(self, step: StepInput) -> None:
        """Takes the points that the order spends.

        Idempotent by the stamp of `burn_points`: a repeated call gets the first one's answer, a refusal too.
        Raises InsufficientPoints, or StepFenced when they were already restored.
        """
        await self._spend(POINTS, step, Step.BURN_POINTS, InsufficientPoints)

    @activity.defn
    async def restore_points(self, step: StepInput) -> None:
        """Gives the burned points back and leaves the tombstone that a late `burn_points` runs into.

        Idempotent by that tombstone. Harmless when nothing was burned.
        """
        await self._give_back(POINTS, step, Step.BURN_POINTS, Step.RESTORE_POINTS)

    @activity.defn
    async def apply_store_credit(self, step: StepInput) -> None:
        """Takes the store credit that the order spends, in the order's currency.

        Idempotent by the stamp of `apply_store_credit`: a repeated call gets the first one's answer, a refusal too.
        Raises InsufficientCredit, or StepFenced when it was already refunded.
        """
        await self._spend(CREDIT, step, Step.APPLY_STORE_CREDIT, InsufficientCredit)

    @activity.defn
    async def refund_store_credit(self, step: StepInput) -> None:
        """Gives the applied credit back and leaves the tombstone that a late `apply_store_credit` runs into.

        Idempotent by that tombstone. Harmless when nothing was applied.
        """
        await self._give_back(CREDIT, step, Step.APPLY_STORE_CREDIT, Step.REFUND_STORE_CREDIT)

    async def _spend(self, ledger: Ledger, step: StepInput, name: Step, refusal: type[Refusal]) -> None:
        key = EffectKey(step.order_id, name, revision=step.revision)
        async with self._database.begin() as connection:
            stamps = await enter_forward(connection, key)
            if stamps.done:
                return
            enough = StepState.REFUSED not in stamps.states and await spend(connection, ledger, key)
            state = StepState.DONE if enough else StepState.REFUSED
            await stamp(connection, key, state, attempt=activity.info().attempt)
        if not enough:
            raise refusal(str(key))

    async def _give_back(self, ledger: Ledger, step: StepInput, name: Step, undo: Step) -> None:
        forward = EffectKey(step.order_id, name, revision=step.revision)
        async with self._database.begin() as connection:
            stamps = await enter(connection, forward)
            if not stamps.undone:
                await give_back(connection, ledger, EffectKey(step.order_id, undo, revision=step.revision))
            await stamp(connection, forward, StepState.UNDONE, attempt=activity.info().attempt)
