"""The shop's own part of an order: opening it, scoring it, its status, its parked steps.

Idempotent here means: the order's row is locked, the stage only moves forward, a stamp or a review item that is there
is kept. Each activity is one short transaction of the `orders` role.
"""

from collections.abc import Mapping
from typing import Protocol

from sqlalchemy import RowMapping, select
from sqlalchemy.ext.asyncio import AsyncConnection
from temporalio import activity

from adapters.database import Database
from adapters.outbox import append_event
from adapters.payments import is_refunded
from adapters.reviews import change_stage, close_review, close_reviews_of_dead_run, lock_order, open_review
from adapters.steps import begun_effects, enter, stamp
from adapters.tables import order_lines, orders
from adapters.trace_marks import keep_trace
from domain.errors import ContradictionError, OrderNotFound, UnknownSku
from domain.events import RefundFacts, refund_event
from domain.keys import EffectKey, Step
from domain.messages import (
    OpenedOrder,
    OrderInput,
    ParkClosed,
    ParkedStep,
    RefundRecorded,
    ReviewDecided,
    Screening,
    StatusChange,
    StatusRecorded,
    StepInput,
)
from domain.order import SOLD_STATUSES, UNDONE_STATUSES, OrderStatus, StepState
from domain.policy import OrderPolicy


class Scorer(Protocol):
    """Whoever scores an order: 0 (good) to 100 (bad). Raises FraudServiceUnavailable or NotServed."""

    async def score(self, order_id: str, customer_id: str, amount: int, currency: str) -> int: ...


class Deadlines(Protocol):
    """The part of the settings that reaches an order's policy."""

    @property
    def payment_deadline_seconds(self) -> float: ...
    @property
    def review_deadline_seconds(self) -> float: ...
    @property
    def review_limits(self) -> Mapping[str, int]: ...


class OrdersActivities:
    """Served on the queue `orders`. `policy` holds the numbers that are no settings."""

    def __init__(
        self, database: Database, scorer: Scorer, settings: Deadlines, policy: OrderPolicy | None = None
    ) -> None:
        self._database = database
        self._scorer = scorer
        self._settings = settings
        self._policy = policy or OrderPolicy()

    @activity.defn
    async def open_order(self, order: OrderInput) -> OpenedOrder:
        """Takes the accepted order for this run: its frozen amounts, and the policy that it runs under from here on.

        Says what earlier runs of the order have begun, so that this one undoes it if it ends that way. What a dead run
        had parked is no question any more: this one asks its own. Idempotent by its stamp. Raises UnknownSku when the
        catalogue had no price for a line, OrderNotFound when there is no such order.
        """
        async with self._database.begin() as connection:
            row = await lock_order(connection, order.order_id)
            closed = await _is_closed(connection, row)
            begun = await begun_effects(connection, order.order_id, ran=order.found_dead)
            if order.found_dead:
                await close_reviews_of_dead_run(connection, order.order_id)
            known = closed or await _all_priced(connection, order.order_id)
            await stamp(
                connection,
                EffectKey(order.order_id, Step.OPEN_ORDER),
                StepState.DONE if known else StepState.REFUSED,
                attempt=activity.info().attempt,
                reason=None if known else UnknownSku.reason,
            )
        if not known:
            raise UnknownSku(order.order_id)
        policy = self._policy_for(row["currency"])
        return OpenedOrder.model_validate(
            {**row, "status": row["stage"], "closed": closed, "policy": policy, "begun": begun}
        )

    def _policy_for(self, currency: str) -> OrderPolicy:
        return self._policy.model_copy(
            update={
                "payment_deadline_seconds": self._settings.payment_deadline_seconds,
                "review_deadline_seconds": self._settings.review_deadline_seconds,
                "review_limit_minor": self._settings.review_limits.get(currency),
            }
        )

    @activity.defn
    async def screen_order(self, step: StepInput) -> Screening:
        """Asks the fraud scorer about the order's total.

        Idempotent by nature: a question. Raises FraudServiceUnavailable, NotServed or OrderNotFound.
        """
        async with self._database.begin() as connection:
            query = select(orders.c.customer_id, orders.c.total, orders.c.currency)
            row = (await connection.execute(query.where(orders.c.order_id == step.order_id))).one_or_none()
        if row is None:
            raise OrderNotFound(step.order_id)
        score = await self._scorer.score(step.order_id, row.customer_id, row.total, row.currency)
        async with self._database.begin() as connection:
            await stamp(
                connection,
                EffectKey(step.order_id, Step.SCREEN_ORDER, revision=step.revision),
                StepState.DONE,
                attempt=activity.info().attempt,
                reason=f"score {score}",
            )
        return Screening(score=score)

    @activity.defn
    async def record_status(self, change: StatusChange) -> StatusRecorded:
        """Moves the order's stage forward, with its event and a stamp that says who wanted it.

        Idempotent by the stage: a repeated or backward move returns what stands. Raises OrderNotFound.
        """
        async with self._database.begin() as connection:
            recorded = await change_stage(connection, change)
            if change.status is OrderStatus.COMPENSATING:
                await keep_trace(connection, change.order_id)
            if recorded.status is change.status:
                await stamp(
                    connection,
                    EffectKey(change.order_id, Step.RECORD_STATUS, item=change.status.value),
                    StepState.DONE,
                    attempt=activity.info().attempt,
                    actor=change.actor,
                    reason=": ".join(word for word in (recorded.reason, change.note) if word) or None,
                )
        return recorded

    @activity.defn
    async def record_decision(self, decided: ReviewDecided) -> None:
        """Keeps a reviewer's word in the timeline, beside the screening that asked for it. Idempotent by its stamp."""
        async with self._database.begin() as connection:
            await stamp(
                connection,
                EffectKey(decided.order_id, Step.SCREEN_ORDER, item="review"),
                StepState.DONE if decided.approve else StepState.REFUSED,
                actor=decided.actor,
                reason=decided.reason,
            )

    @activity.defn
    async def confirm_order(self, step: StepInput) -> StatusRecorded:
        """CONFIRMED, with `OrderConfirmed` and the step's stamp. The money is captured or there was none to pay.

        Idempotent by the stage. Raises ContradictionError when the order is being undone or did not happen: its money
        is taken and its status says otherwise. Raises OrderNotFound.
        """
        key = EffectKey(step.order_id, Step.CONFIRM_ORDER, revision=step.revision)
        async with self._database.begin() as connection:
            change = StatusChange(order_id=step.order_id, status=OrderStatus.CONFIRMED)
            recorded = await change_stage(connection, change)
            if recorded.status not in SOLD_STATUSES:
                raise ContradictionError(str(key))
            await stamp(connection, key, StepState.DONE, attempt=activity.info().attempt)
        return recorded

    @activity.defn
    async def record_refund(self, refund: RefundRecorded) -> StatusRecorded:
        """`PaymentRefunded`, and with the last of the money REFUNDED with `OrderRefunded`.

        Idempotent by the events' ids and by the stage. Raises OrderNotFound.
        """
        async with self._database.begin() as connection:
            row = await lock_order(connection, refund.order_id)
            facts = RefundFacts.model_validate({**row, **refund.model_dump()})
            await append_event(connection, refund_event(facts), correlation_id=row["correlation_id"])
            if not await is_refunded(connection, refund.order_id):
                return StatusRecorded(status=OrderStatus(row["stage"]))
            change = StatusChange(order_id=refund.order_id, status=OrderStatus.REFUNDED, actor=refund.actor)
            return await change_stage(connection, change)

    @activity.defn
    async def park_step(self, parked: ParkedStep) -> None:
        """Opens the review item of a step that cannot go on by itself, or renews its error.

        Idempotent by order, step and item: one open row. Raises OrderNotFound.
        """
        async with self._database.begin() as connection:
            await open_review(connection, parked)

    @activity.defn
    async def close_park(self, closed: ParkClosed) -> None:
        """Closes the step's review item with who decided what. A skipped step is stamped *waived*, for the books.

        Idempotent: harmless when none is open. Raises OrderNotFound.
        """
        async with self._database.begin() as connection:
            await close_review(connection, closed)


async def _is_closed(connection: AsyncConnection, row: RowMapping) -> bool:
    """Nothing is left to do for the order: undone, refunded, or confirmed with its stock sold."""
    stage = OrderStatus(row["stage"])
    if stage is OrderStatus.CONFIRMED:
        return (await enter(connection, EffectKey(row["order_id"], Step.COMMIT_STOCK))).done
    return stage in UNDONE_STATUSES or stage is OrderStatus.REFUNDED


async def _all_priced(connection: AsyncConnection, order_id: str) -> bool:
    unpriced = select(order_lines.c.line_no).where(
        order_lines.c.order_id == order_id, order_lines.c.unit_price.is_(None)
    )
    return not (await connection.execute(select(unpriced.exists()))).scalar_one()
