"""Proves the books: our own at one instant, closed orders against the providers, open orders against Temporal."""

from contextlib import AsyncExitStack

from temporalio.client import Client

from adapters.books.own import orders_to_run, read_own_books
from adapters.books.settled import read_settled_books
from adapters.courier import Courier
from adapters.database import Database
from adapters.http import ProviderRequestRefused
from adapters.payment_gateway import PaymentGateway
from adapters.temporal import TemporalUnavailable
from domain.books import MOST_FAILURES, Books, Failure, LineKind, LineResult
from domain.errors import GatewayProtocolError, NotServed, TransientError
from domain.reconciliation import RunState, SeenRun
from events.runs import Runs
from runtime.entry import EntryError, ServerUnavailable
from runtime.settings import Settings
from workflows.names import Queue

#: An order that was just accepted or moved has this long until its saga must be seen.
GRACE_SECONDS = 60


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

    Raises DatabaseUnavailable, or ServerUnavailable when Temporal does not answer.
    """
    needed = await orders_to_run(database, GRACE_SECONDS, order_id)
    runs = Runs(client)
    try:
        running = await runs.running() if order_id is None else set[str]()
        # The list lags behind: each suspect is looked at by itself.
        seen = await runs.newest([one for one in needed if one not in running])
    except TemporalUnavailable as error:
        raise ServerUnavailable(f"Temporal stopped answering ({error}): see TEMPORAL_ADDRESS") from None
    why = {run.order_id: _why(run) for run in seen if run.state is not RunState.RUNNING}
    # The order may have ended since.
    still_open = set(await orders_to_run(database, GRACE_SECONDS, order_id)) if why else set()
    failures = [Failure(one, reason) for one, reason in why.items() if one in still_open]
    return LineResult(
        "every open order has a run",
        LineKind.CONSERVATION,
        checked=len(needed),
        failed=len(failures),
        failures=tuple(failures[:MOST_FAILURES]),
    )


def _why(run: SeenRun) -> str:
    return "was never started" if run.state is RunState.MISSING else f"its run is {run.ended}"
