"""Step 2: the fraud scorer's word, and a person's where it matters."""

from datetime import timedelta

from temporalio import workflow

from workflows.calls import Contradicted, RunOut
from workflows.steps import Steps

with workflow.unsafe.imports_passed_through():
    from domain.keys import Step
    from domain.messages import DecideReview, OpenedOrder, ReviewDecided
    from domain.order import CancelReason


class Review:
    """One order's screening. A scorer that is down never lets an order pass by itself."""

    def __init__(self, steps: Steps) -> None:
        self._steps = steps
        self._score: int | None = None
        self._decision: DecideReview | None = None
        self._waiting = False

    def decide(self, decision: DecideReview) -> None:
        """A reviewer's word; the first one counts (the validator refuses later ones)."""
        self._decision = decision

    @property
    def undecided(self) -> bool:
        """Whether a reviewer's word is waited for."""
        return self._waiting and self._decision is None

    async def screen(self, order: OpenedOrder) -> bool:
        """Asks the scorer. Returns whether the order may go on without a person."""
        await self._ask_scorer()
        return self._is_good() and not self._is_large(order)

    async def wait(self, order: OpenedOrder) -> CancelReason | None:
        """Waits for a person, or for a good score where only that was missing. Returns why not, or None.

        Returns early, with None, when a cancel waits: the caller looks.
        """
        policy = self._steps.policy
        deadline = workflow.now() + timedelta(seconds=policy.review_deadline_seconds)
        self._waiting = True
        while not self._is_over() and workflow.now() < deadline:
            left = (deadline - workflow.now()).total_seconds()
            ask_again = self._score is None and not self._is_large(order)
            pause = min(policy.rescore_every_seconds, left) if ask_again else left
            woken = await self._steps.sleep(self._is_over, pause, waiting_for="a reviewer", until=deadline)
            if ask_again and not woken:
                await self._ask_scorer()
                if self._decision is None and self._is_good():
                    self._waiting = False
                    return None
        self._waiting = False
        if self._decision is not None:
            await self._steps.write(Step.RECORD_DECISION, self._decided(order, self._decision))
            return None if self._decision.approve else CancelReason.REVIEW_REJECTED
        return None if self._steps.is_cancelled() else CancelReason.REVIEW_TIMED_OUT

    @staticmethod
    def _decided(order: OpenedOrder, decision: DecideReview) -> ReviewDecided:
        return ReviewDecided(
            order_id=order.order_id, approve=decision.approve, actor=decision.actor, reason=decision.reason
        )

    def _is_over(self) -> bool:
        return self._decision is not None or self._steps.is_cancelled()

    def _is_good(self) -> bool:
        return self._score is not None and self._score <= self._steps.policy.review_score

    def _is_large(self, order: OpenedOrder) -> bool:
        limit = self._steps.policy.review_limit_minor
        return limit is None or order.total > limit

    async def _ask_scorer(self) -> None:
        """No answer is no score."""
        try:
            self._score = (await self._steps.do(Step.SCREEN_ORDER)).score
        except (RunOut, Contradicted):
            self._score = None
