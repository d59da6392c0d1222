"""What an undone order still has, given back after its saga has ended."""

import asyncio

from temporalio import workflow

from workflows.names import PARKED_STEP
from workflows.steps import Steps

with workflow.unsafe.imports_passed_through():
    from domain.messages import RedriveStep
    from domain.reconciliation import LeftoversInput


def _never() -> None:
    """An order that is closed has nobody who could cancel it."""


@workflow.defn
class LeftoversWorkflow:
    """Runs undos of an undone order again: a booking that landed late is cancelled, stock is put back.

    Started by the guard under the order's id. Update `redrive_step`. Each undo has the key that the saga's own had, so
    what was given back is not given back twice. Ends when every undo is done or waived; the order is never reopened.
    """

    @workflow.init
    def __init__(self, leftovers: LeftoversInput) -> None:
        self._parked: list[str] = []
        self._steps = Steps(leftovers.order_id, _never, self._show)

    @workflow.run
    async def run(self, leftovers: LeftoversInput) -> None:
        """All undos side by side: they belong to different parties."""
        await asyncio.gather(*(self._steps.insist(undo.step, item=undo.item) for undo in leftovers.undos))
        await workflow.wait_condition(workflow.all_handlers_finished)

    def _show(self) -> None:
        if self._parked != self._steps.parking.labels():
            self._parked = self._steps.parking.labels()
            workflow.upsert_search_attributes([PARKED_STEP.value_set(self._parked)])

    @workflow.update(description="Retry or skip a parked undo.")
    def redrive_step(self, message: RedriveStep) -> None:
        """Hands an operator's decision to the parked undo."""
        self._steps.parking.decide(message)

    @redrive_step.validator
    def _refuse_pointless_redrive(self, message: RedriveStep) -> None:
        self._steps.parking.refuse_unless_allowed(message)
