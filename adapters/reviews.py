"""The order's stage and its open review items, which only the `orders` queue writes.

The status that people see is the stage, or NEEDS_REVIEW while a parked step covers it. All three writers lock the
order's row first, so status, items and events always fit together.
"""

from typing import Any

from sqlalchemy import RowMapping, func, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.outbox import append_event
from adapters.steps import stamp
from adapters.tables import orders, redrives, review_items
from domain.errors import OrderNotFound
from domain.events import STAGE_EVENTS, OrderFacts, order_event
from domain.keys import EffectKey, Step
from domain.messages import ParkClosed, ParkedStep, Redriven, StatusChange, StatusRecorded
from domain.order import FORWARD, PARKABLE, CancelReason, OrderStatus, RedriveAction, StepState


async def lock_order(connection: AsyncConnection, order_id: str) -> RowMapping:
    """The order's row, locked until the transaction ends. Raises OrderNotFound."""
    # FOR NO KEY UPDATE: rows that refer to the order can be written meanwhile.
    query = select(orders).where(orders.c.order_id == order_id).with_for_update(key_share=True)
    row = (await connection.execute(query)).mappings().one_or_none()
    if row is None:
        raise OrderNotFound(order_id)
    return row


async def change_stage(connection: AsyncConnection, change: StatusChange) -> StatusRecorded:
    """Moves the order's stage forward, with the event that announces it, and returns the stage that stands.

    Idempotent by the table of forward moves: a repeated, backward or impossible move changes nothing and returns what
    was there. Raises OrderNotFound.
    """
    row = await lock_order(connection, change.order_id)
    stage = OrderStatus(row["stage"])
    if change.status not in FORWARD.get(stage, frozenset()):
        return StatusRecorded(status=stage, reason=row["reason"])
    reason = change.reason or (CancelReason(row["reason"]) if row["reason"] else None)
    covered = change.status in PARKABLE and await _has_open_items(connection, change.order_id)
    await _update_order(
        connection,
        change.order_id,
        stage=change.status.value,
        status=(OrderStatus.NEEDS_REVIEW if covered else change.status).value,
        reason=reason.value if reason else None,
    )
    if event := STAGE_EVENTS.get(change.status):
        facts = OrderFacts.model_validate({**row, "reason": reason})
        await append_event(connection, order_event(event, facts), correlation_id=row["correlation_id"])
    return StatusRecorded(status=change.status, reason=reason)


async def open_review(connection: AsyncConnection, parked: ParkedStep) -> None:
    """Opens the step's review item, or renews kind and error of the one that is open. Raises OrderNotFound.

    An operator's word that brought it back is kept, for the timeline and for whoever waits to see what came of it.
    The status becomes NEEDS_REVIEW where the stage can be parked; a confirmed or undone order keeps its own. An
    attempt that arrives after this very park was closed changes nothing.
    """
    row = await lock_order(connection, parked.order_id)
    if await _was_closed(connection, parked):
        return
    item = insert(review_items).values(
        order_id=parked.order_id,
        step=parked.step.value,
        item=parked.item,
        kind=parked.kind.value,
        error=parked.error,
        opened_at=parked.since,
    )
    await connection.execute(
        item.on_conflict_do_update(
            index_elements=["order_id", "step", "item"],
            index_where=review_items.c.closed_at.is_(None),
            set_={"kind": item.excluded.kind, "error": item.excluded.error},
        )
    )
    if parked.redriven:
        await _keep_redrive(connection, parked, parked.redriven)
    if row["stage"] in PARKABLE and row["status"] != OrderStatus.NEEDS_REVIEW:
        await _update_order(connection, parked.order_id, status=OrderStatus.NEEDS_REVIEW.value)


async def close_review(connection: AsyncConnection, closed: ParkClosed) -> None:
    """Closes the step's open review item with who decided what; harmless when none is open. Raises OrderNotFound.

    With the last one the status returns to the stage that it covered. A later park of the same step stays open, and
    a skipped step is stamped as waived: the books list it.
    """
    row = await lock_order(connection, closed.order_id)
    await connection.execute(
        update(review_items)
        .where(
            review_items.c.order_id == closed.order_id,
            review_items.c.step == closed.step.value,
            review_items.c.item == closed.item,
            review_items.c.closed_at.is_(None),
            review_items.c.opened_at <= closed.since,
        )
        .values(
            closed_at=func.clock_timestamp(), closed_by=closed.actor, action=closed.action.value, reason=closed.reason
        )
    )
    if closed.action is RedriveAction.SKIP:
        key = EffectKey(closed.order_id, closed.step, closed.item)
        await stamp(connection, key, StepState.WAIVED, actor=closed.actor, reason=closed.reason)
    if row["status"] == OrderStatus.NEEDS_REVIEW and not await _has_open_items(connection, closed.order_id):
        await _update_order(connection, closed.order_id, status=row["stage"])


async def close_reviews_of_dead_run(connection: AsyncConnection, order_id: str) -> None:
    """Closes what an ended run had parked, in whose name nobody can act any more; the next run parks anew.

    A park at `open_order` stays: it is the next run's own first question. Raises OrderNotFound.
    """
    row = await lock_order(connection, order_id)
    await connection.execute(
        update(review_items)
        .where(
            review_items.c.order_id == order_id,
            review_items.c.step != Step.OPEN_ORDER.value,
            review_items.c.closed_at.is_(None),
        )
        .values(
            closed_at=func.clock_timestamp(),
            closed_by="guard",
            action=RedriveAction.RETRY.value,
            reason="its run had ended",
        )
    )
    if row["status"] == OrderStatus.NEEDS_REVIEW and not await _has_open_items(connection, order_id):
        await _update_order(connection, order_id, status=row["stage"])


async def _keep_redrive(connection: AsyncConnection, parked: ParkedStep, word: Redriven) -> None:
    row = insert(redrives).values(
        order_id=parked.order_id,
        step=parked.step.value,
        item=parked.item,
        parked_at=parked.since,
        number=word.number,
        actor=word.actor,
        action=word.action.value,
        reason=word.reason,
        error=parked.error,
    )
    await connection.execute(row.on_conflict_do_nothing())


async def _was_closed(connection: AsyncConnection, parked: ParkedStep) -> bool:
    found = select(review_items.c.review_id).where(
        review_items.c.order_id == parked.order_id,
        review_items.c.step == parked.step.value,
        review_items.c.item == parked.item,
        review_items.c.opened_at == parked.since,
        review_items.c.closed_at.is_not(None),
    )
    return bool((await connection.execute(select(found.exists()))).scalar_one())


async def _has_open_items(connection: AsyncConnection, order_id: str) -> bool:
    found = select(review_items.c.review_id).where(
        review_items.c.order_id == order_id, review_items.c.closed_at.is_(None)
    )
    return bool((await connection.execute(select(found.exists()))).scalar_one())


async def _update_order(connection: AsyncConnection, order_id: str, **values: Any) -> None:
    await connection.execute(
        update(orders).where(orders.c.order_id == order_id).values(updated_at=func.clock_timestamp(), **values)
    )
