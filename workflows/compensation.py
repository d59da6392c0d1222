"""The compensation stack: what has to be undone, newest first, and how it is unwound."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta

from temporalio import workflow

from workflows.steps import Steps

with workflow.unsafe.imports_passed_through():
    from domain.keys import Step
    from domain.messages import ShipmentCancelled


@dataclass(frozen=True)
class Undo:
    """One undo that waits on the stack."""

    step: Step
    item: str = ""


class CompensationStack:
    """Undos in the order in which their steps were begun.

    The undo is pushed *before* its step is called: a step whose answer was lost may have happened. Each undo is
    harmless when there is nothing to undo, and one that cannot go on parks without stopping the others.
    """

    def __init__(self, steps: Steps, release_payment: Callable[[], Awaitable[None]]) -> None:
        self._steps = steps
        self._release_payment = release_payment
        self._undos: list[Undo] = []
        self._looking_again: list[Undo] = []

    def push(self, step: Step, item: str = "") -> None:
        """Registers an undo. The same one again changes nothing."""
        undo = Undo(step, item)
        if undo not in self._undos:
            self._undos.append(undo)

    def __bool__(self) -> bool:
        return bool(self._undos)

    async def unwind(self) -> None:
        """Runs all undos, newest first; returns when every one of them is done or was waived by an operator."""
        tasks: list[asyncio.Task[None]] = []
        for undo in reversed(self._undos):
            task = asyncio.create_task(self._run(undo))
            await workflow.wait_condition(lambda task=task, undo=undo: task.done() or self._is_set_aside(undo))  # type: ignore[misc]
            tasks.append(task)
        await asyncio.gather(*tasks)

    async def _run(self, undo: Undo) -> None:
        if undo.step is Step.RELEASE_PAYMENT:
            await self._release_payment()
            return
        answer = await self._steps.insist(undo.step, item=undo.item)
        if isinstance(answer, ShipmentCancelled) and answer.look_again_after_seconds is not None:
            self._looking_again.append(undo)
            pause = timedelta(seconds=answer.look_again_after_seconds)
            await workflow.sleep(pause, summary="a booking without an answer may still land")
            await self._steps.insist(undo.step, item=undo.item)

    def _is_set_aside(self, undo: Undo) -> bool:
        """Whether it goes on by itself, so that the next one may begin."""
        return undo in self._looking_again or self._steps.is_stuck(undo.step, undo.item)
