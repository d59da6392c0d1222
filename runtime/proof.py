"""Proves the books: our own at one instant, closed orders against the providers, open orders against Temporal."""

import asyncio
from contextlib import AsyncExitStack

from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.service import RPCError, RPCStatusCode

from adapters.books.own import orders_to_run, read_own_books
from adapters.books.settled import read_settled_books
from adapters.courier import Courier
from adapters.database import Database
from adapters.http import ProviderRequestRefused
from adapters.payment_gateway import PaymentGateway
from domain.books import MOST_FAILURES, Books, Failure, LineKind, LineResult
from domain.errors import GatewayProtocolError, NotServed, TransientError
from runtime.entry import EntryError, ServerUnavailable
from runtime.settings import Settings
from workflows.names import Queue, order_workflow_id

#: An order that was just accepted or moved has this long until its saga must be seen.
GRACE_SECONDS = 60
#: Look-ups at Temporal that run side by side.
SIDE_BY_SIDE = 16


async def prove(settings: Settings, client: Client | None = None, order_id: str | None = None) -> Books:
    """Every line of the books, or those about one order; without a client those that need no Temporal.

    Reads only. Raises SettingsError, DatabaseUnavailable, or EntryError when a provider cannot be asked.
    """
    async with AsyncExitStack() as stack:
        database = Database(settings.database_for(Queue.ORDERS), application="books", pool_size=2)
        stack.push_async_callback(database.close)
        key = settings.need(settings.stripe_api_key, "STRIPE_API_KEY")
        seconds = settings.provider_timeout_seconds
        gateway = PaymentGateway(key, base_url=settings.stripe_api_base, timeout_seconds=seconds)
        stack.push_async_callback(gateway.close)
        base = settings.need(settings.courier_api_base, "COURIER_API_BASE")
        courier = Courier(base, timeout_seconds=seconds)
        stack.push_async_callback(courier.close)
        own = await read_own_books(database, order_id)
        settled = await _settled(database, gateway, courier, order_id)
        running = (await prove_running(database, client, order_id),) if client else ()
    return Books(own.lines + settled.lines + running, own.waived, own.notes + settled.notes)


async def _settled(database: Database, gateway: PaymentGateway, courier: Courier, order_id: str | None) -> Books:
    try:
        return await read_settled_books(database, gateway, courier, order_id)
    except GatewayProtocolError as error:
        raise EntryError(f"a provider answers what we do not understand ({error})") from None
    except ProviderRequestRefused as error:
        raise EntryError(f"a provider refuses to show its books ({error}): check STRIPE_API_KEY") from None
    except NotServed as error:
        raise ServerUnavailable(
            f"the gateway or the courier does not answer ({error}): see STRIPE_API_BASE and COURIER_API_BASE"
        ) from None
    except TransientError as error:
        raise ServerUnavailable(f"{type(error).__name__} ({error}): the books could not be compared") from None


async def prove_running(database: Database, client: Client, order_id: str | None = None) -> LineResult:
    """Every order that needs its saga, and is older than a minute, has an open run.

    Raises DatabaseUnavailable, or RPCError when Temporal does not answer.
    """
    needed = await orders_to_run(database, GRACE_SECONDS, order_id)
    running = await _running(client) if order_id is None else set[str]()
    suspects = [one for one in needed if order_workflow_id(one) not in running]
    # The list lags behind, and an order may have ended since: each suspect is looked at by itself.
    limit = asyncio.Semaphore(SIDE_BY_SIDE)

    async def look(suspect: str) -> str | None:
        async with limit:
            return await _why_not_running(client, suspect)

    why = dict(zip(suspects, await asyncio.gather(*map(look, suspects)), strict=True))
    still_open = set(await orders_to_run(database, GRACE_SECONDS, order_id)) if any(why.values()) else set()
    failures = [Failure(one, reason) for one, reason in why.items() if reason and one in still_open]
    return LineResult(
        "every open order has a run",
        LineKind.CONSERVATION,
        checked=len(needed),
        failed=len(failures),
        failures=tuple(failures[:MOST_FAILURES]),
    )


async def _running(client: Client) -> set[str]:
    query = "WorkflowType = 'OrderWorkflow' AND ExecutionStatus = 'Running'"
    return {run.id async for run in client.list_workflows(query, page_size=1000)}


async def _why_not_running(client: Client, order_id: str) -> str | None:
    try:
        description = await client.get_workflow_handle(order_workflow_id(order_id)).describe()
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            return "was never started"
        raise
    status = description.status
    return None if status is WorkflowExecutionStatus.RUNNING else f"its run is {status.name if status else 'closed'}"
