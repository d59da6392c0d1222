"""Carries out the steps of one workflow: calls them, keeps their timeline, parks what cannot go on."""

import asyncio
from collections.abc import Callable, Coroutine
from datetime import datetime, timedelta
from typing import Any

from temporalio import workflow

from workflows.calls import Contradicted, Interrupted, Refused, RunOut, StepEnded, call, sleep_unless
from workflows.details import summarize
from workflows.options import SHORT_PATIENCE_SECONDS
from workflows.parking import Parking

with workflow.unsafe.imports_passed_through():
    from pydantic import BaseModel

    from domain.errors import OrderNotFound
    from domain.keys import Step
    from domain.messages import MoneyInput, OpenedOrder, ParkClosed, ParkedStep, StepInput, TimelineEntry
    from domain.order import CancelReason, ParkKind, RedriveAction
    from domain.policy import OrderPolicy


#: What an undo is called with: its revision grows with each operator's retry.
Revised = StepInput | MoneyInput


class Stopped(Exception):
    """The saga goes no further: the order is undone for this reason."""

    def __init__(self, reason: CancelReason) -> None:
        self.reason = reason


def _never() -> bool:
    return False


class News:
    """Whether something has happened outside since it was last looked at."""

    def __init__(self) -> None:
        self.unread = False

    def is_there(self) -> bool:
        """Whether it is time to look."""
        return self.unread


class Steps:
    """The steps of one order, under its policy.

    `cancelled`: the reason of an accepted cancel; it wakes the waits of steps that can still be undone.
    `changed` is called whenever there is something new to show. `order` is what it was opened as.
    """

    def __init__(
        self, order_id: str, cancelled: Callable[[], CancelReason | None], changed: Callable[[], None]
    ) -> None:
        self.order_id = order_id
        self.order: OpenedOrder | None = None
        self.policy = OrderPolicy()
        self._cancelled = cancelled
        self._changed = changed
        self.parking = Parking(order_id, self._announce)
        self.timeline: list[TimelineEntry] = []
        self._sleeping: str | None = None
        self._not_served: list[tuple[Step, str, str]] = []

    def is_stuck(self, step: Step, item: str) -> bool:
        """Whether the step is parked, or waits for a provider that does not serve it."""
        return self.parking.is_parked(step, item) or (step, item) in [waits[:2] for waits in self._not_served]

    @property
    def waiting(self) -> list[str]:
        """What the order waits for, in words, and until when where that is known."""
        why = [why for _, _, why in self._not_served]
        return ([self._sleeping] if self._sleeping else []) + list(dict.fromkeys(why))

    def is_cancelled(self) -> bool:
        """Whether a cancel was accepted and the order can still be undone."""
        return self._cancelled() is not None

    def stop_if_cancelled(self) -> None:
        """Raises Stopped when a cancel was accepted."""
        reason = self._cancelled()
        if reason is not None:
            raise Stopped(reason)

    async def do(
        self,
        step: Step,
        *,
        item: str = "",
        revision: int = 1,
        argument: BaseModel | None = None,
        interruptible: bool = True,
    ) -> Any:
        """One series of tries of a step. Raises how it ended when not well (`workflows.calls.StepEnded`).

        A cancel that wakes one of its waits raises Stopped.
        """
        self._note(step, item, "begun")
        try:
            result = await call(
                step,
                argument or self._input(item, revision),
                self.policy,
                summary=summarize(step, item, self.order),
                interrupted=self.is_cancelled if interruptible else _never,
                not_served=lambda why: self._mark_not_served(step, item, why),
                patience_seconds=SHORT_PATIENCE_SECONDS if self.parking.is_parked(step, item) else None,
            )
        except Interrupted:
            self.stop_if_cancelled()
            raise
        except StepEnded as ending:
            self._note(step, item, ending.error)
            raise
        self._note(step, item, "done")
        return result

    async def insist(
        self,
        step: Step,
        *,
        item: str = "",
        argument: Revised | None = None,
        keep_trying: bool = False,
        news: News | None = None,
    ) -> Any:
        """A step with no way back: tried, parked and tried again until it is done. A skipped one gives None.

        An operator's *retry* of what was contradicted is the next revision of the effect: a refund that failed is
        asked for anew only by a person. `keep_trying`: its review item is only a sign, tries go on at the pace of its
        policy. `news` end a park's wait: the step looks again, under the same key.
        """
        argument = argument or self._input(item)
        pause = self.policy.longest_wait_seconds if keep_trying else None
        interrupted = news.is_there if news else _never
        while True:
            if news:
                news.unread = False
            try:
                result = await self.do(step, item=item, argument=argument, interruptible=False)
            except (Refused, Contradicted) as ending:
                kind = ParkKind.DECISION
                self.parking.open(step, item, kind, ending.error)
            except RunOut as ending:
                kind = ParkKind.TECHNICAL
                self.parking.open(step, item, kind, ending.error)
            else:
                await self.parking.close(step, item)
                return result
            decision = await self.parking.wait(step, item, self.policy, interrupted, pause)
            if decision and decision.action is RedriveAction.SKIP:
                await self.parking.close(step, item)
                return None
            if decision and kind is ParkKind.DECISION:
                argument = argument.model_copy(update={"revision": argument.revision + 1})

    async def sleep(self, woken: Callable[[], bool], seconds: float, *, waiting_for: str, until: datetime) -> bool:
        """`sleep_unless`, told to whoever looks at the order meanwhile: what for, and `until` when at the latest."""
        self._sleeping = f"for {waiting_for}, until {until:%Y-%m-%d %H:%M:%S} UTC at the latest"
        self._changed()
        try:
            return await sleep_unless(woken, seconds, summary=f"waiting for {waiting_for}")
        finally:
            self._sleeping = None

    async def take(
        self, step: Step, item: str = "", *, run_out: CancelReason = CancelReason.SERVICE_UNAVAILABLE
    ) -> Any:
        """A compensatable step until it has answered or run out. Raises Stopped when it did not take.

        `run_out`: the order's reason when tries ran out.
        """
        while True:
            try:
                result = await self.do(step, item=item)
            except Refused as refusal:
                raise Stopped(refusal.reason) from None
            except RunOut:
                raise Stopped(run_out) from None
            except Contradicted as ending:
                await self.park(step, ParkKind.DECISION, ending.error, item=item)
            else:
                await self.parking.close(step, item)
                return result

    async def park(self, step: Step, kind: ParkKind, error: str, *, item: str = "") -> None:
        """Parks a step that can still be undone and waits until it should be tried again.

        Raises Stopped when an operator says *compensate*, or a cancel ends the wait.
        """
        self.parking.open(step, item, kind, error)
        decision = await self.parking.wait(step, item, self.policy, self.is_cancelled)
        self.stop_if_cancelled()
        if decision and decision.action is RedriveAction.COMPENSATE:
            await self.parking.close(step, item)
            raise Stopped(CancelReason.CANCELLED_BY_OPERATOR)

    def _input(self, item: str, revision: int = 1) -> StepInput:
        correlation_id = self.order.correlation_id if self.order else ""
        return StepInput(order_id=self.order_id, revision=revision, item=item, correlation_id=correlation_id)

    def _mark_not_served(self, step: Step, item: str, why: str | None) -> None:
        if why:
            self._not_served.append((step, item, why))
        else:
            self._not_served.remove(next(waits for waits in self._not_served if waits[:2] == (step, item)))
        self._changed()

    def _announce(self, notice: ParkedStep | ParkClosed, after: asyncio.Task[None] | None) -> asyncio.Task[None]:
        self._changed()
        step = Step.PARK_STEP if isinstance(notice, ParkedStep) else Step.CLOSE_PARK

        async def announce() -> None:
            if after is not None:
                await after
            await self.write(step, notice)

        return asyncio.create_task(announce())

    async def write(self, step: Step, argument: BaseModel) -> Any:
        """A write of our own books that has no park, since parks are written there: tried until it is done.

        Gives up, with None, only on an order that the books do not know: then there is nothing to write on.
        """
        pause = self.policy.longest_wait_seconds
        while True:
            try:
                return await call(step, argument, self.policy, summary=summarize(step, _told(argument), self.order))
            except StepEnded as ending:
                workflow.logger.error("write_failed", extra={"step": step.value, "error": ending.error})
                if ending.error == OrderNotFound.__name__:
                    return None
            await workflow.sleep(timedelta(seconds=pause), summary=f"{step} failed, waiting")
            pause = min(2 * pause, self.policy.park_longest_wait_seconds)

    def _note(self, step: Step, item: str, state: str) -> None:
        label = f"{step.value}:{item}" if item else step.value
        self.timeline.append(TimelineEntry(at=workflow.now().isoformat(), step=label, state=state))
        self._changed()


def _told(argument: BaseModel) -> str:
    """What a write of our own books is about: a status or a step."""
    return str(getattr(argument, "status", None) or getattr(argument, "step", ""))


async def settle_together(members: list[Coroutine[Any, Any, Any]]) -> list[Any]:
    """Waits until every member has answered or run out; the first that failed, in table order, is raised."""
    results = await asyncio.gather(*members, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return results
