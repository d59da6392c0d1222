"""Two hundred orders, each cancelled at a random instant of its life: undone or confirmed, never in between."""

import asyncio
import random
import statistics
import time
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

import pytest
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from demo.cases import Case
from demo.run import Running
from domain.keys import Step
from domain.order import CLOSED_STATUSES, CancelReason, OrderStatus
from runtime.temporal import connect
from tests.baskets import fresh
from tests.e2e.doors import ASK_AGAIN_SECONDS, PATIENCE_SECONDS
from tests.e2e.running import RunningShop
from tests.polling import eventually
from workflows.names import order_workflow_id

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

SEED = 20_261_201
ORDERS = 200
#: So many of each kind are watched first, under the same load, to learn how long one lives. The median counts.
WATCHED = 5
ORDERS_A_SECOND = 2.5
#: Cancels come after the end, too; and still late enough where the machine becomes twice as slow as it was watched.
SPAN_OF_A_LIFE = 2.0

_UNDONE = OrderStatus.CANCELLED_COMPENSATED


def _slow(op: str) -> dict[str, object]:
    return {"op": op, "mode": "delay", "delay_ms": 1500}


KINDS = (
    Case("plain", "paid by card"),
    Case("parcels", "all ways to pay, two warehouses", quantity=3, stock={"berlin": 2, "porto": 2}, points=300),
    Case("silent", "the webhook never comes", payment_method="pm_sim_silent", store_credit=500),
    Case("slow-hold", "the gateway is slow to hold", faults=(_slow("confirm"),), points=200),
    Case("slow-booking", "the courier is slow", faults=(_slow("book"),), points=200),
    Case("slow-capture", "the gateway is slow to take", faults=(_slow("capture"),)),
    Case(
        "declined", "the card is declined", _UNDONE, CancelReason.CARD_DECLINED, payment_method="pm_card_chargeDeclined"
    ),
    Case("no-courier", "nobody goes there", _UNDONE, CancelReason.NO_SERVICE_TO_ADDRESS, postcode="00000"),
)
#: Where an order was met by its cancel, and how often of 200 at least: far less than was seen.
STAGES = {
    f"undone at {Step.OPEN_ORDER}": 3,
    f"undone at {Step.RESERVE_STOCK}": 3,
    f"undone at {Step.AUTHORIZE_PAYMENT}": 5,
    f"undone at {Step.BOOK_SHIPMENT}": 3,
    f"too late at {Step.CAPTURE_PAYMENT}": 3,
    "too late at the end": 10,
    "undone by itself": 3,
}

FORWARD = (
    *(Step.OPEN_ORDER, Step.RESERVE_STOCK, Step.AUTHORIZE_PAYMENT, Step.BOOK_SHIPMENT),
    Step.CAPTURE_PAYMENT,
)
BY_CUSTOMER, BY_OPERATOR = CancelReason.CANCELLED_BY_CUSTOMER, CancelReason.CANCELLED_BY_OPERATOR


@dataclass
class Cancelled:
    """One order, and what whoever cancelled it was told."""

    order: Running
    instant_seconds: float
    way: str
    asked: datetime | None = None
    answers: list[int] = field(default_factory=list)

    @property
    def last_step(self) -> Step | None:
        """The last forward step that was begun, None before the first."""
        begun = {line.step for line in self.order.timeline}
        return next((step for step in reversed(FORWARD) if step in begun), None)

    @property
    def stage(self) -> str:
        """Where the cancel met the order."""
        assert self.order.view is not None
        assert self.asked is not None
        if self.order.view.reason in {BY_CUSTOMER, BY_OPERATOR}:
            return f"undone at {self.last_step}"
        if self.order.view.status is not OrderStatus.CONFIRMED:
            return "undone by itself"
        (confirmed,) = [line.at for line in self.order.timeline if line.step == Step.CONFIRM_ORDER]
        return f"too late at {Step.CAPTURE_PAYMENT if self.asked < confirmed else 'the end'}"


Cancel = Callable[[RunningShop, Client, str], Awaitable[list[int]]]


async def by_customer(shop: RunningShop, temporal: Client, order_id: str) -> list[int]:
    """By HTTP."""
    return [await shop.doors.ask_to_cancel(order_id)]


async def by_customer_twice(shop: RunningShop, temporal: Client, order_id: str) -> list[int]:
    """By HTTP, two requests at once."""
    return list(await asyncio.gather(*(shop.doors.ask_to_cancel(order_id) for _ in range(2))))


async def in_temporal(shop: RunningShop, temporal: Client, order_id: str) -> list[int]:
    """By the Web UI's request, which has no answer."""

    async def ask() -> bool:
        try:
            await temporal.get_workflow_handle(order_workflow_id(order_id)).cancel()
        except RPCError as error:
            if error.status is not RPCStatusCode.NOT_FOUND:
                raise
            # Not started yet, or closed.
            return (await shop.doors.order(order_id)).status in CLOSED_STATUSES
        return True

    await eventually(ask, within_seconds=PATIENCE_SECONDS, pause_seconds=ASK_AGAIN_SECONDS)
    return []


async def in_temporal_then_by_customer(shop: RunningShop, temporal: Client, order_id: str) -> list[int]:
    """By the Web UI's request, and a moment later by HTTP."""
    return await in_temporal(shop, temporal, order_id) + await by_customer(shop, temporal, order_id)


WAYS: dict[str, tuple[Cancel, set[CancelReason]]] = {
    "by the customer": (by_customer, {BY_CUSTOMER}),
    "in Temporal": (in_temporal, {BY_OPERATOR}),
    "by the customer twice": (by_customer_twice, {BY_CUSTOMER}),
    "in Temporal, then by the customer": (in_temporal_then_by_customer, {BY_OPERATOR, BY_CUSTOMER}),
}


async def test_an_order_cancelled_at_any_instant_is_undone_or_confirmed_as_its_canceller_was_told(
    shop: RunningShop,
) -> None:
    lives = await lives_under_load(shop)
    cancelled = drawn(await prepared(shop, ORDERS), lives)
    temporal = await connect(shop.settings)

    async def one(its: Cancelled) -> None:
        placed = time.monotonic()
        await shop.place(its.order)
        await asyncio.sleep(placed + its.instant_seconds - time.monotonic())
        its.asked = datetime.now(UTC)
        its.answers = await WAYS[its.way][0](shop, temporal, its.order.order_id)
        await shop.followed(its.order)

    await streamed([one(its) for its in cancelled])
    assert [word for its in cancelled for word in contradictions(its)] == []
    met = Counter(its.stage for its in cancelled)
    assert {stage: met[stage] for stage, least in STAGES.items() if met[stage] < least} == {}, f"{met} {lives}"
    await shop.assert_books_hold()


async def prepared(shop: RunningShop, count: int) -> list[Running]:
    """So many orders of all kinds in turn, each with goods of its own: nobody else changes that stock."""
    cases = [replace(kind, name=f"{kind.name}-{fresh('c')}") for kind in (KINDS * count)[:count]]
    found: list[Running] = []
    for begin in range(0, count, 10):
        found += await shop.prepared(cases[begin : begin + 10])
    return found


async def streamed(orders: list[Awaitable[None]]) -> None:
    """Sends them on their way one after the other at an even pace, and waits for all."""

    async def after(seconds: float, order: Awaitable[None]) -> None:
        await asyncio.sleep(seconds)
        await order

    await asyncio.gather(*(after(number / ORDERS_A_SECOND, order) for number, order in enumerate(orders)))


async def lives_under_load(shop: RunningShop) -> dict[str, float]:
    """How long an order of each kind lives when nobody cancels it, in seconds, by its story."""
    orders = await prepared(shop, WATCHED * len(KINDS))
    lives: defaultdict[str, list[float]] = defaultdict(list)

    async def one(order: Running) -> None:
        await shop.place(order)
        await shop.followed(order)
        assert order.differences() == []
        assert order.view is not None
        end = max(order.view.updated_at, *(line.at for line in order.timeline))
        lives[order.case.story].append((end - order.view.created_at).total_seconds())

    await streamed([one(order) for order in orders])
    return {story: statistics.median(found) for story, found in lives.items()}


def drawn(orders: list[Running], lives: dict[str, float]) -> list[Cancelled]:
    """An instant and a way for each. Each kind's instants are random, one in each of as many even parts of its life."""
    chance = random.Random(SEED)
    ways = [list(WAYS)[number % len(WAYS)] for number in range(len(orders))]
    chance.shuffle(ways)
    found: list[Cancelled] = []
    for kind in KINDS:
        own = [order for order in orders if order.case.story == kind.story]
        parts = [(number + chance.random()) / len(own) for number in range(len(own))]
        chance.shuffle(parts)
        span = SPAN_OF_A_LIFE * lives[kind.story]
        found += [Cancelled(order, part * span, ways.pop()) for order, part in zip(own, parts, strict=True)]
    chance.shuffle(found)
    return found


def contradictions(its: Cancelled) -> list[str]:
    """What does not fit: the end to the answers, or everybody's books to the end."""
    order, view = its.order, its.order.view
    assert view is not None
    kind, sold = order.case, view.status is OrderStatus.CONFIRMED
    reasons = WAYS[its.way][1] | ({kind.reason} if kind.reason else set())
    wrong = {
        "accepted and confirmed": 202 in its.answers and sold,
        "too late and undone": 409 in its.answers and not sold,
        "confirmed against all odds": sold and kind.reason is not None,
        f"undone for {view.reason}": not sold and view.reason not in reasons,
        "undone after the pivot": not sold and its.last_step is Step.CAPTURE_PAYMENT,
        f"{order.intents} payments": order.intents > 1,
    }
    order.case = replace(kind, status=view.status, reason=view.reason, intents=order.intents)
    words = [word for word, found in wrong.items() if found] + order.differences()
    return [f"{kind.story} {order.order_id} {its.way} after {its.instant_seconds:.2f} s: {word}" for word in words]
