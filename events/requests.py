"""What people ask of an order's workflow, by HTTP and from the command line alike: one way for both."""

from collections.abc import Sequence

from temporalio.client import Client

from adapters.database import Database
from adapters.orders import read_order, read_results
from adapters.temporal import TemporalUnavailable, answering_within
from adapters.updates import UPDATE_SECONDS, NotRunning, UpdateRefused, send_update
from domain.keys import Step
from domain.messages import CancelAnswer, CancelOrder, DecideReview, RedriveStep
from domain.order import SOLD_STATUSES, UNDONE_STATUSES
from events.relay import start_order
from workflows.names import leftovers_workflow_id, money_workflow_id, order_workflow_id, refund_workflow_id


class NoSuchOrder(Exception):
    """There is no order with this id."""


async def cancel(
    database: Database, client: Client, order_id: str, message: CancelOrder, *, key: str | None = None
) -> CancelAnswer:
    """Asks the order's saga to cancel; starts one that has not begun. An order already undone is answered as it is.

    Raises NoSuchOrder, UpdateRefused (`too-late`), or TemporalUnavailable: then it may be carried out later, and the
    same `key` asks for the same.
    """
    try:
        # All of it in the time that one answer may take.
        async with answering_within(UPDATE_SECONDS):
            if closed := await _closed(database, order_id):
                return closed
            try:
                return await _ask(client, order_id, message, key)
            except NotRunning:
                # Ended in this moment, or not started yet.
                if closed := await _closed(database, order_id):
                    return closed
            await _start(database, client, order_id)
            return await _ask(client, order_id, message, key)
    except NotRunning:
        if closed := await _closed(database, order_id):
            return closed
        raise TemporalUnavailable("the saga has just ended") from None


async def _ask(client: Client, order_id: str, message: CancelOrder, key: str | None) -> CancelAnswer:
    workflow_id = order_workflow_id(order_id)
    return await send_update(client, workflow_id, "cancel_order", message, key=key, result_type=CancelAnswer)


async def _closed(database: Database, order_id: str) -> CancelAnswer | None:
    """The answer for an order that its row tells closed, None for an open one."""
    order = (await read_results(database, [order_id])).get(order_id)
    if order is None:
        raise NoSuchOrder(order_id)
    if order.status in SOLD_STATUSES:
        raise UpdateRefused("too-late", "the order is confirmed and cannot be cancelled any more")
    return CancelAnswer(order_id=order_id, status=order.status) if order.status in UNDONE_STATUSES else None


async def _start(database: Database, client: Client, order_id: str) -> None:
    view = await read_order(database, order_id)
    assert view is not None, "orders are never deleted"
    await start_order(client, order_id, customer_id=view.customer_id, total=view.total, currency=view.currency)


async def decide_review(client: Client, order_id: str, message: DecideReview, *, key: str | None = None) -> None:
    """Hands a reviewer's decision to the saga that waits for it.

    Raises UpdateRefused (also where no saga runs) or TemporalUnavailable.
    """
    await _decide(client, [order_workflow_id(order_id)], "decide_review", message, key)


async def redrive(
    client: Client, order_id: str, intent_id: str | None, message: RedriveStep, *, key: str | None = None
) -> None:
    """Hands an operator's decision to a parked step: of the saga, of late money on `intent_id`, of the refund that is
    the message's item, or of what the guard found left over.

    Raises UpdateRefused (also where no workflow runs) or TemporalUnavailable.
    """
    workflow_id = order_workflow_id(order_id)
    if message.step is Step.SETTLE_LATE_MONEY and intent_id:
        workflow_id = money_workflow_id(intent_id)
    elif message.step is Step.REFUND_PAYMENT:
        workflow_id = refund_workflow_id(order_id, message.item or "")
    await _decide(client, [workflow_id, leftovers_workflow_id(order_id)], "redrive_step", message, key)


async def _decide(
    client: Client, workflow_ids: Sequence[str], name: str, message: DecideReview | RedriveStep, key: str | None
) -> None:
    """Hands the message to the first of these workflows that runs."""
    for workflow_id in workflow_ids:
        try:
            await send_update(client, workflow_id, name, message, key=key)
            return
        except NotRunning:
            continue
    raise UpdateRefused("no-such-wait", "nothing of this order waits for a decision")
