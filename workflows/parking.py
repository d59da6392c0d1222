"""Steps that cannot go on by themselves, and what people decide about them.

A park is a row in `review_items` and an element of the search attribute `ParkedStep`. TECHNICAL: retried by itself,
at growing intervals, at once on a payment event or an operator's word. DECISION: nothing moves until an operator acts.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from temporalio import workflow
from temporalio.exceptions import ApplicationError

from workflows.calls import sleep_unless

with workflow.unsafe.imports_passed_through():
    from domain.keys import Step, actions_at
    from domain.messages import ParkClosed, ParkedStep, Redriven, RedriveStep, ReviewItem
    from domain.order import ParkKind, RedriveAction
    from domain.policy import OrderPolicy

Announce = Callable[[ParkedStep | ParkClosed, "asyncio.Task[None] | None"], "asyncio.Task[None]"]


@dataclass
class _Parked:
    notice: ParkedStep
    decision: RedriveStep | None = None
    decided: RedriveStep | None = None
    untold: RedriveStep | None = None
    redrives: int = 0
    waiting: bool = False
    poked: bool = False
    waits: int = 0
    written: asyncio.Task[None] | None = None


class Parking:
    """All parked steps of one workflow, by step and item.

    `announce` tells the outside world of a park that opened or closed, in a task of its own (after the one before): a
    park must be able to move while the database that would show it is down.
    """

    def __init__(self, order_id: str, announce: Announce) -> None:
        self._order_id = order_id
        self._announce = announce
        self._parked: dict[tuple[Step, str], _Parked] = {}

    def open(self, step: Step, item: str, kind: ParkKind, error: str) -> None:
        """Parks a step, or renews the error of one that is parked already. Does not wait.

        One that comes back after an operator's word is told again, also with the same error: whoever said it waits to
        see what came of it.
        """
        parked = self._parked.get((step, item))
        since = parked.notice.since if parked else workflow.now()
        redriven = _take_untold(parked) if parked else None
        notice = ParkedStep(
            order_id=self._order_id, step=step, item=item, kind=kind, error=error, since=since, redriven=redriven
        )
        if parked is None:
            parked = self._parked[step, item] = _Parked(notice)
        elif redriven is None and (parked.notice.kind, parked.notice.error) == (kind, error):
            return
        parked.notice = notice
        parked.written = self._announce(notice, parked.written)

    async def wait(
        self,
        step: Step,
        item: str,
        policy: OrderPolicy,
        interrupted: Callable[[], bool],
        pause_seconds: float | None = None,
    ) -> RedriveStep | None:
        """Waits until the parked step should move: returns the operator's decision, or None to look again.

        Returns early, with None, when `interrupted`; the caller asks why. A decision is taken once. `pause_seconds`
        takes the place of the growing intervals of a technical park.
        """
        parked = self._parked[step, item]
        parked.poked, parked.waiting = False, True

        def woken() -> bool:
            may_poke = parked.notice.kind is ParkKind.TECHNICAL and parked.poked
            return parked.decision is not None or may_poke or interrupted()

        if parked.notice.kind is ParkKind.DECISION:
            await workflow.wait_condition(woken)
        else:
            growing = min(policy.park_first_wait_seconds * 2**parked.waits, policy.park_longest_wait_seconds)
            parked.waits += 1
            await sleep_unless(woken, pause_seconds or growing, summary=f"{step} is parked, next look")
        decision, parked.decision, parked.waiting = parked.decision, None, False
        parked.decided = decision or parked.decided
        parked.untold = decision
        return decision

    async def close(self, step: Step, item: str) -> None:
        """The step went on: closes its review item, if there is one, in the name of the last operator who decided."""
        parked = self._parked.pop((step, item), None)
        if parked is None:
            return
        decision = parked.decision or parked.decided
        closed = ParkClosed(
            order_id=self._order_id,
            step=step,
            item=item,
            actor=decision.actor if decision else "system",
            action=decision.action if decision else RedriveAction.RETRY,
            since=parked.notice.since,
            reason=decision.reason if decision else None,
        )
        await self._announce(closed, parked.written)

    async def close_all(self) -> None:
        """The order is undone: what was parked on the way forward is no question any more."""
        for step, item in list(self._parked):
            await self.close(step, item)

    def poke(self) -> None:
        """A payment event: technical parks look again at once."""
        for parked in self._parked.values():
            parked.poked = True

    def refuse_unless_allowed(self, message: RedriveStep) -> None:
        """The validator of `redrive_step`. Raises ApplicationError NoSuchWait, NotAllowed or AlreadyDecided."""
        parked = self._find(message)
        if not parked:
            raise ApplicationError(f"{message.step} is not parked", type="NoSuchWait")
        for one in parked:
            if message.action not in (allowed := actions_at(message.step)):
                choices = ", ".join(sorted(allowed))
                raise ApplicationError(f"{message.step} can only: {choices}", type="NotAllowed")
            if one.decision is not None or not one.waiting:
                raise ApplicationError(f"{message.step} is moving already", type="AlreadyDecided")

    def decide(self, message: RedriveStep) -> None:
        """Hands an operator's decision to the parked steps that it names."""
        for parked in self._find(message):
            parked.decision = message

    def _find(self, message: RedriveStep) -> list[_Parked]:
        return [
            parked
            for (step, item), parked in self._parked.items()
            if step is message.step and message.item in {None, item}
        ]

    def is_parked(self, step: Step, item: str) -> bool:
        """Whether this step stands in review."""
        return (step, item) in self._parked

    def items(self) -> list[ReviewItem]:
        """The parked steps as the query `status` tells them."""
        return [
            ReviewItem(
                step=_label(parked.notice),
                kind=parked.notice.kind,
                error=parked.notice.error,
                since=parked.notice.since,
            )
            for parked in self._parked.values()
        ]

    def labels(self) -> list[str]:
        """The parked steps as the search attribute `ParkedStep` tells them."""
        return sorted(_label(parked.notice) for parked in self._parked.values())

    def __bool__(self) -> bool:
        return bool(self._parked)


def _take_untold(parked: _Parked) -> Redriven | None:
    word, parked.untold = parked.untold, None
    if word is None or not workflow.patched("tell-what-came-back"):
        return None
    parked.redrives += 1
    return Redriven(number=parked.redrives, actor=word.actor, action=word.action, reason=word.reason)


def _label(notice: ParkedStep) -> str:
    return f"{notice.step.value}:{notice.item}" if notice.item else notice.step.value
