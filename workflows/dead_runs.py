"""A run that follows one which somebody ended before its order was closed."""

from temporalio import workflow

from workflows.steps import Steps, Stopped

with workflow.unsafe.imports_passed_through():
    from domain.keys import Step
    from domain.messages import OpenedOrder
    from domain.order import DEAD_RUN, SOLD_STATUSES, OrderStatus, ParkKind


async def ask_what_to_do(steps: Steps, order: OpenedOrder) -> None:
    """Whether the order goes on or back, a person decides. Raises Stopped when it goes back.

    One that is sold goes on without a question, one that is being undone is undone whatever is said.
    """
    if order.closed or order.status in SOLD_STATUSES:
        return
    try:
        await steps.park(Step.OPEN_ORDER, ParkKind.DECISION, DEAD_RUN)
    except Stopped:
        if order.status is not OrderStatus.COMPENSATING:
            raise
    await steps.parking.close(Step.OPEN_ORDER, "")
