"""For each alert a way to bring a real shop there, told as scrapes: of the time before it, in it, and after it."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import text
from temporalio import activity
from temporalio.worker import Worker

from domain.keys import Step
from tests.baskets import fresh
from tests.builders import an_accepted_order, an_order_document, unique
from tests.integration.conftest import SECRETS
from tests.integration.webhooks import send, signature
from tests.observability.conftest import Grounds
from tests.observability.scraping import Samples, parse
from tests.polling import eventually
from workflows.names import Queue

MINUTE, HOUR = 60.0, 3600.0


@dataclass(frozen=True)
class Trouble:
    """Each of `during` is told for `each_seconds`."""

    before: Samples
    during: Sequence[Samples]
    each_seconds: float
    after: Samples


Story = Callable[[Grounds], Awaitable[Trouble]]
STORIES: dict[str, Story] = {}


def _story(alert: str) -> Callable[[Story], Story]:
    def keep(story: Story) -> Story:
        STORIES[alert] = story
        return story

    return keep


# --- a process or a server is missing -----------------------------------------------------------------------------


@_story("NoApi")
async def _no_api(grounds: Grounds) -> Trouble:
    well = await grounds.scrape()
    return Trouble(well, [parse({"api": None})], 5 * MINUTE, well)


@_story("TargetDown")
async def _target_down(grounds: Grounds) -> Trouble:
    well = await grounds.scrape()
    return Trouble(well, [parse({"worker": None})], 10 * MINUTE, well)


@_story("DatabaseDown")
async def _database_down(grounds: Grounds) -> Trouble:
    well = await grounds.scrape()
    return Trouble(well, [await grounds.scrape(grounds.without_database.operator)], 3 * MINUTE, well)


@_story("TemporalDown")
async def _temporal_down(grounds: Grounds) -> Trouble:
    well = await grounds.scrape()
    return Trouble(well, [await grounds.scrape(grounds.still.operator)], 10 * MINUTE, well)


# --- requests -----------------------------------------------------------------------------------------------------


@_story("ApiErrors")
async def _api_errors(grounds: Grounds) -> Trouble:
    api = grounds.without_database
    assert (await api.order(an_order_document(), unique("key")))[0] == 503
    scrapes = [await grounds.scrape(api.operator)]
    for _ in range(10):
        for _ in range(3):
            await api.order(an_order_document(), unique("key"))
        scrapes.append(await grounds.scrape(api.operator))
    return Trouble(scrapes[0], scrapes[1:], MINUTE, scrapes[-1])


@_story("ApiSlow")
async def _api_slow(grounds: Grounds) -> Trouble:
    assert (await grounds.still.order(an_order_document(), unique("key")))[0] == 202
    before, began = await grounds.scrape(grounds.still.operator), time.monotonic()

    async def long_enough() -> bool:
        return time.monotonic() - began > 1.1

    async with grounds.still.database.begin() as holder:
        await holder.execute(text("LOCK TABLE orders IN ACCESS EXCLUSIVE MODE"))
        waiting = asyncio.create_task(grounds.still.order(an_order_document(customer_id=fresh("c")), unique("key")))
        await eventually(long_enough)
    await waiting
    after = await grounds.scrape(grounds.still.operator)
    return Trouble(before, [after], 20 * MINUTE, after)


def _refused_webhook(*, secret: str = SECRETS[0], offset: int = 0) -> Story:
    async def story(grounds: Grounds) -> Trouble:
        before = await grounds.scrape(grounds.still.operator)
        header = signature(b"{}", secret, offset=offset)
        assert (await send(grounds.still.shopper, b"{}", **{"Stripe-Signature": header}))[0] == 400
        after = await grounds.scrape(grounds.still.operator)
        return Trouble(before, [after], 20 * MINUTE, after)

    return story


_story("WebhookSignatures")(_refused_webhook(secret="whsec_of_somebody"))
_story("WebhookClockSkew")(_refused_webhook(offset=-400))


# --- orders and their steps ---------------------------------------------------------------------------------------


@_story("OrdersUndone")
async def _orders_undone(grounds: Grounds) -> Trouble:
    shop = grounds.shop

    async def declined() -> None:
        basket = await shop.basket()
        await shop.place(basket, payment_method="pm_card_chargeDeclined")
        await shop.ended(basket.order_id)

    await declined()
    before = await grounds.scrape()
    await asyncio.gather(*(declined() for _ in range(12)))
    after = await grounds.scrape()
    return Trouble(before, [after], 40 * MINUTE, after)


@_story("ConfirmedLate")
async def _confirmed_late(grounds: Grounds) -> Trouble:
    shop, basket = grounds.shop, await grounds.shop.basket()
    before = await grounds.scrape()
    gate = shop.gates.hold(basket.order_id, Step.CONFIRM_ORDER)
    await shop.place(basket)
    await gate.reached()
    async with shop.database.begin() as connection:
        accepted = text("UPDATE orders SET created_at = created_at - interval '10 minutes' WHERE order_id = :order")
        await connection.execute(accepted, {"order": basket.order_id})
    gate.open()
    await shop.ended(basket.order_id)
    after = await grounds.scrape()
    return Trouble(before, [after], 40 * MINUTE, after)


@_story("StepFails")
async def _step_fails(grounds: Grounds) -> Trouble:
    shop = grounds.shop

    async def failing() -> None:
        basket = await shop.basket()
        await shop.fault("create", "error", status=500, times=2, order_id=basket.order_id)
        await shop.place(basket)
        await shop.ended(basket.order_id)

    await failing()
    before = await grounds.scrape()
    await failing()
    after = await grounds.scrape()
    return Trouble(before, [after], 20 * MINUTE, after)


@_story("WorkflowsBroken")
async def _workflows_broken(grounds: Grounds) -> Trouble:
    failures = "temporal_workflow_task_execution_failed_total"

    async def another() -> Samples:
        """One more run of a workflow that no worker here knows."""
        told = sum(sample.value for sample in (await grounds.scrape()).get(failures, ()))
        run = await grounds.shop.client.start_workflow("OfAnotherBuild", id=fresh("run"), task_queue=Queue.ORDERS)

        async def look() -> Samples | None:
            found = await grounds.scrape()
            return found if sum(sample.value for sample in found.get(failures, ())) > told else None

        found = await eventually(look)
        await run.terminate()
        assert found is not None
        return found

    before = await another()
    after = await another()
    return Trouble(before, [after], 20 * MINUTE, after)


@activity.defn
async def _stand_in() -> None:
    """A step of a queue whose worker comes late."""


@_story("StepsWaitForWorkers")
async def _steps_wait(grounds: Grounds) -> Trouble:
    client, queue = grounds.shop.client, fresh("queue")
    async with Worker(client, task_queue=queue, activities=[_stand_in]):
        await client.execute_activity(
            "_stand_in", id=fresh("step"), task_queue=queue, schedule_to_close_timeout=timedelta(minutes=1)
        )
    before, began = await grounds.scrape(), time.monotonic()
    late = await client.start_activity(
        "_stand_in", id=fresh("step"), task_queue=queue, schedule_to_close_timeout=timedelta(minutes=1)
    )

    async def long_enough() -> bool:
        return time.monotonic() - began > 1.2

    await eventually(long_enough)
    async with Worker(client, task_queue=queue, activities=[_stand_in]):
        await late.result()
    after = await grounds.scrape()
    return Trouble(before, [after], 10 * MINUTE, after)


# --- what stands in the books -------------------------------------------------------------------------------------


async def write(grounds: Grounds, statements: str, order_id: str) -> None:
    """Writes into the books of the shop where nobody works."""
    async with grounds.still.database.begin() as connection:
        for statement in statements.split(";"):
            await connection.execute(text(statement), {"order": order_id})


def _written(trouble: str, end: str, seconds: float = 5 * MINUTE) -> Story:
    """An order of a shop where nobody works gets into trouble by these statements, and out of it by the others."""

    async def story(grounds: Grounds) -> Trouble:
        database = grounds.still.database
        order_id = await an_accepted_order(database)
        await write(grounds, _PUBLISHED, order_id)
        before = await grounds.scrape(grounds.still.operator)
        await write(grounds, trouble, order_id)
        during = await grounds.scrape(grounds.still.operator)
        await write(grounds, end, order_id)
        return Trouble(before, [during], seconds, await grounds.scrape(grounds.still.operator))

    return story


_PUBLISHED = "UPDATE outbox SET published_at = now()"
_PARK = """
    INSERT INTO review_items (order_id, step, kind, error, opened_at)
    VALUES (CAST(:order AS text), 'capture_payment', 'TECHNICAL', 'E', now() - interval '5 hours')
"""
_UNPARK = "UPDATE review_items SET closed_at = now() WHERE order_id = :order"
_REFUND = """
    INSERT INTO refunds (refund_key, order_id, intent_id, amount, status, created_at)
    VALUES (CAST(:order AS text), :order, 'pi', 1, '{}', now() - interval '{}')
"""
_REFUNDED = "UPDATE refunds SET status = 'succeeded' WHERE order_id = :order"
_STAMP = "INSERT INTO order_steps (order_id, step, state) VALUES (CAST(:order AS text), 'capture_payment', '{}')"
_RUN = """
    INSERT INTO reconciliation_runs (run_id, kind, started_at, finished_at)
    VALUES (CAST(:order AS text) || '{0}', '{0}', now() - interval '{1}', now() - interval '{1}')
"""
_NO_RUNS = "DELETE FROM reconciliation_runs"
_FINDING = """
    INSERT INTO reconciliation_findings (run_id, subject, kind, detail)
    VALUES (CAST(:order AS text) || 'guard', :order, 'capture_differs', 'd')
"""
_INBOX = """
    INSERT INTO webhook_inbox (source, event_id, type, state, received_at)
    VALUES ('stripe', CAST(:order AS text), 't', '{}', now() - interval '10 minutes')
"""
_NO_INBOX = "DELETE FROM webhook_inbox WHERE event_id = :order"

STORIES |= {
    "OrdersNotStarted": _written(
        "UPDATE outbox SET published_at = NULL, created_at = now() - interval '2 minutes' WHERE order_id = :order",
        _PUBLISHED,
    ),
    "WebhooksNotDelivered": _written(_INBOX.format("waiting"), _NO_INBOX),
    "WebhooksSetAside": _written(_INBOX.format("set_aside"), _NO_INBOX),
    "OrderParked": _written(_PARK, _UNPARK, 20 * MINUTE),
    "ParkedForHours": _written(_PARK, _UNPARK),
    "ReviewersLate": _written(
        "UPDATE orders SET status = 'AWAITING_REVIEW', stage = 'AWAITING_REVIEW' WHERE order_id = :order",
        "UPDATE orders SET status = 'REJECTED', stage = 'REJECTED' WHERE order_id = :order",
        5 * HOUR,
    ),
    "PartyHeld": _written(
        "INSERT INTO holds (party, actor, reason) VALUES ('gateway', CAST(:order AS text), 'a test')",
        "UPDATE holds SET released_at = now() WHERE actor = :order",
        2 * HOUR,
    ),
    "OutcomeUnknown": _written(_STAMP.format("unknown"), _STAMP.format("done"), HOUR),
    "LateMoney": _written(
        """
        UPDATE orders SET status = 'REJECTED', stage = 'REJECTED' WHERE order_id = :order;
        INSERT INTO money_movements (key, order_id, intent_id, kind, currency, amount)
        VALUES (CAST(:order AS text), :order, 'pi', 'captured', 'EUR', 1)
        """,
        "SELECT :order",
        2 * HOUR,
    ),
    "RefundNotSent": _written(_REFUND.format("requested", "2 hours"), _REFUNDED),
    "RefundPending": _written(_REFUND.format("pending", "11 days"), _REFUNDED),
    "BooksDiffer": _written(
        f"{_RUN.format('guard', '1 minute')}; {_FINDING}",
        "DELETE FROM reconciliation_findings WHERE subject = :order",
    ),
    "ReconciliationLate": _written(
        f"{_NO_RUNS}; {_RUN.format('guard', '1 minute')}; {_RUN.format('nightly', '2 days')}",
        _NO_RUNS,
    ),
}

#: What may stand in the books at once, and how it is brought to an end.
BOOKS = (
    _PARK,
    _REFUND.format("requested", "2 hours"),
    "INSERT INTO holds (party, actor, reason) VALUES ('gateway', CAST(:order AS text), 'a test')",
    f"{_NO_RUNS}; {_RUN.format('guard', '1 minute')}; {_RUN.format('nightly', '1 minute')}; {_FINDING}",
)
BOOKS_ENDED = (_UNPARK, _REFUNDED, "UPDATE holds SET released_at = now() WHERE actor = :order", _NO_RUNS)
