"""Temporal as the guard sees it: which orders run, how runs ended, and the messages that start what is missing."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from datetime import datetime, timedelta

from temporalio.client import Client, WorkflowExecution, WorkflowExecutionStatus
from temporalio.common import WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.service import RPCError, RPCStatusCode

from adapters.temporal import answering_within
from domain.messages import BegunEffect, MoneyInput, OrderInput, PaymentUpdated
from domain.order import OrderStatus
from domain.reconciliation import LeftoversInput, RunState, SeenRun
from events.relay import start_order
from workflows.names import ORDER_STATUS, Queue, leftovers_workflow_id, money_workflow_id, order_workflow_id

CALL_SECONDS = 10
PAGE = 1000
#: Look-ups that run side by side.
SIDE_BY_SIDE = 16

_ORDER_PREFIX = order_workflow_id("")


class Runs:
    """Looks at runs, and starts them. Raises TemporalUnavailable when there is no answer."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def running(self) -> set[str]:
        """Ids of the orders whose saga runs. The list lags behind by a second or so."""
        query = "WorkflowType = 'OrderWorkflow' AND ExecutionStatus = 'Running'"
        return {run.order_id async for page in self._pages(query) for run in page}

    async def since(self, since: datetime) -> AsyncIterator[Sequence[SeenRun]]:
        """Runs that began or ended since then, or run, page by page."""
        at = f"{since:%Y-%m-%dT%H:%M:%SZ}"
        ours = "WorkflowType = 'OrderWorkflow'"
        async for page in self._pages(
            f"{ours} AND (ExecutionStatus = 'Running' OR StartTime > '{at}' OR CloseTime > '{at}')"
        ):
            yield page

    async def newest(self, order_ids: Sequence[str]) -> list[SeenRun]:
        """The newest run of each of these orders, as it is now."""
        limit = asyncio.Semaphore(SIDE_BY_SIDE)

        async def one(order_id: str) -> SeenRun:
            async with limit:
                return await self._newest(order_id)

        return list(await asyncio.gather(*map(one, order_ids)))

    async def start(self, order_id: str, customer_id: str, total: int, currency: str) -> str:
        """Starts an order that never ran, as the relay does."""
        await start_order(self._client, order_id, customer_id=customer_id, total=total, currency=currency)
        return "started"

    async def start_again(
        self, dead: OrderInput, customer_id: str, total: int, currency: str, *, completed: bool
    ) -> str:
        """Starts a run that parks first. A run that somebody else has started meanwhile is left alone.

        `completed`: also after a run that ended well, whose end our books do not have.
        """
        policy = WorkflowIDReusePolicy
        await start_order(
            self._client,
            dead.order_id,
            customer_id=customer_id,
            total=total,
            currency=currency,
            found_dead=dead,
            reuse=policy.ALLOW_DUPLICATE if completed else policy.ALLOW_DUPLICATE_FAILED_ONLY,
        )
        return "started again, parks at open_order"

    async def settle_money(self, order_id: str, intent_id: str) -> str:
        """Has the order's late money settled; whoever is at it already looks again."""
        workflow_id = money_workflow_id(intent_id)
        money = MoneyInput(order_id=order_id, intent_id=intent_id)
        news = PaymentUpdated(event_id="", type="", intent_id=intent_id)
        return await self._start("MoneyWorkflow", money, workflow_id, f"Late money of order {order_id}", news)

    async def give_back(self, order_id: str, undos: list[BegunEffect]) -> str:
        """Has undos of an undone order run again."""
        leftovers = LeftoversInput(order_id=order_id, undos=undos)
        workflow_id = leftovers_workflow_id(order_id)
        return await self._start("LeftoversWorkflow", leftovers, workflow_id, f"Leftovers of order {order_id}")

    async def _start(
        self,
        workflow: str,
        argument: MoneyInput | LeftoversInput,
        workflow_id: str,
        summary: str,
        news: PaymentUpdated | None = None,
    ) -> str:
        async with answering_within(CALL_SECONDS):
            await self._client.start_workflow(
                workflow,
                argument,
                id=workflow_id,
                task_queue=Queue.ORDERS,
                id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
                id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
                start_signal="payment_updated" if news else None,
                start_signal_args=[news] if news else [],
                static_summary=summary,
                rpc_timeout=timedelta(seconds=CALL_SECONDS),
            )
        return f"{workflow_id} works on it"

    async def _newest(self, order_id: str) -> SeenRun:
        async with answering_within(CALL_SECONDS):
            try:
                handle = self._client.get_workflow_handle(order_workflow_id(order_id))
                return _seen(await handle.describe(rpc_timeout=timedelta(seconds=CALL_SECONDS)))
            except RPCError as error:
                if error.status is RPCStatusCode.NOT_FOUND:
                    return SeenRun(order_id, RunState.MISSING)
                raise

    async def _pages(self, query: str) -> AsyncIterator[list[SeenRun]]:
        listing = self._client.list_workflows(query, page_size=PAGE, rpc_timeout=timedelta(seconds=CALL_SECONDS))
        while True:
            async with answering_within(CALL_SECONDS):
                await listing.fetch_next_page()
            yield [_seen(run) for run in listing.current_page or []]
            if not listing.next_page_token:
                return


def _seen(run: WorkflowExecution) -> SeenRun:
    told = run.typed_search_attributes.get(ORDER_STATUS)
    state, ended = RunState.DEAD, run.status.name if run.status else "closed"
    if run.status is WorkflowExecutionStatus.RUNNING:
        state = RunState.RUNNING
    elif run.status is WorkflowExecutionStatus.COMPLETED:
        state = RunState.COMPLETED
    status = OrderStatus(told) if told in set(OrderStatus) else None
    return SeenRun(run.id.removeprefix(_ORDER_PREFIX), state, status, ended)
