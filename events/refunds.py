"""An operator's refund on its way to the workflow that carries it out: one message, by HTTP and command line alike."""

from datetime import timedelta
from typing import Any

from temporalio.client import Client, WithStartWorkflowOperation
from temporalio.common import WorkflowIDConflictPolicy, WorkflowIDReusePolicy

from adapters.temporal import answering_within
from adapters.updates import UPDATE_SECONDS, UpdateRefused
from domain.messages import MoneyInput, RefundAsked, RefundOpened
from domain.order import RefundRefusal
from workflows.names import Queue, refund_workflow_id

KEY_REUSED = "key-reused"

_WORDS = {
    RefundRefusal.NOT_CONFIRMED: "only a confirmed order has money that can be refunded",
    RefundRefusal.DISPUTED: "the shopper's bank disputes the payment: what it decides, counts",
    RefundRefusal.CONTRADICTED: "the gateway does not know of the captured money any more: clear that up first",
    RefundRefusal.REFUND_OPEN: "another refund of this order is not decided yet",
    RefundRefusal.ABOVE_REST: "this is more than the {left} that are left of the payment",
}


async def request_refund(client: Client, order_id: str, intent_id: str | None, asked: RefundAsked) -> RefundOpened:
    """Takes the refund. Idempotent by its name within the order, whose row keeps the first answer.

    Raises UpdateRefused (`not-confirmed`, `disputed`, `capture-contradicted`, `refund-open`, `above-rest`, and
    `key-reused` for another refund under this name), or TemporalUnavailable: then it may be carried out later, and the
    same name asks for the same.
    """
    start: WithStartWorkflowOperation[Any, Any] = WithStartWorkflowOperation(
        "MoneyWorkflow",
        MoneyInput(order_id=order_id, intent_id=intent_id or "", refund=asked),
        id=refund_workflow_id(order_id, asked.refund_id),
        task_queue=Queue.ORDERS,
        # A refused refund may be asked for again, and one that was taken finds its row.
        id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
        id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
        static_summary=f"Refund of order {order_id}",
    )
    async with answering_within(UPDATE_SECONDS):
        opened: RefundOpened = await client.execute_update_with_start_workflow(
            "request_refund",
            start_workflow_operation=start,
            result_type=RefundOpened,
            rpc_timeout=timedelta(seconds=UPDATE_SECONDS),
        )
    if opened.refusal:
        raise UpdateRefused(opened.refusal.value, _WORDS[opened.refusal].format(left=opened.left))
    first = opened.asked
    if first and (first.amount, first.reason) != (asked.amount, asked.reason):
        raise UpdateRefused(KEY_REUSED, "this key was used for another refund")
    return opened
