"""One order's points and store credit: taken, given back. Both follow the same rules, so each test is about both."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import pytest
from sqlalchemy import Table, func, select

from activities.loyalty import LoyaltyActivities
from adapters.database import Database
from adapters.loyalty import read_customer
from adapters.tables import credit_movements, order_steps, points_movements
from domain.errors import InsufficientCredit, InsufficientPoints, Refusal, StepFenced
from domain.messages import StepInput
from tests.builders import a_customer, a_product, an_accepted_order
from tests.integration.attempts import at_once, attempt

Activity = Callable[[StepInput], Awaitable[None]]


@dataclass(frozen=True)
class Kind:
    """Points or store credit: the field of an order that spends it, its steps, its refusal and its book."""

    field: str
    step: str
    undo: str
    refusal: type[Refusal]
    book: Table
    spent: str
    returned: str


POINTS = Kind("points", "burn_points", "restore_points", InsufficientPoints, points_movements, "burned", "restored")
CREDIT = Kind(
    "store_credit",
    "apply_store_credit",
    "refund_store_credit",
    InsufficientCredit,
    credit_movements,
    "applied",
    "refunded",
)


class Purse:
    """One customer's points or credit in one database, and the steps that spend and return them."""

    def __init__(self, database: Database, kind: Kind) -> None:
        self.database = database
        self.kind = kind
        activities = LoyaltyActivities(database)
        self.spend: Activity = getattr(activities, kind.step)
        self.give_back: Activity = getattr(activities, kind.undo)

    async def order(self, amount: int, currency: str = "EUR") -> str:
        """An accepted order that spends so much."""
        return await an_accepted_order(self.database, currency=currency, **{self.kind.field: amount})

    async def balance(self) -> int:
        customer = await read_customer(self.database, "ada")
        return customer.points if self.kind is POINTS else customer.store_credit.get("EUR", 0)

    async def book(self) -> list[tuple[str, int]]:
        """The movements of orders, oldest first: (kind, amount)."""
        table = self.kind.book
        async with self.database.snapshot() as connection:
            rows = await connection.execute(
                select(table.c.kind, table.c.amount).where(table.c.order_id.is_not(None)).order_by(table.c.at)
            )
            return [(row.kind, row.amount) for row in rows]

    async def stamps(self, order_id: str) -> set[str]:
        async with self.database.snapshot() as connection:
            query = select(order_steps.c.state).where(
                order_steps.c.order_id == order_id, order_steps.c.step == self.kind.step
            )
            return set(await connection.scalars(query))


@pytest.fixture(params=[POINTS, CREDIT], ids=["points", "credit"])
async def purse(database: Database, request: pytest.FixtureRequest) -> Purse:
    """500 points, or 5.00 EUR of store credit."""
    await a_product(database, "A", price=3000)
    await a_product(database, "B", price=2000)
    await a_customer(database, points=500, store_credit=500)
    return Purse(database, request.param)


async def test_what_the_order_spends_is_taken_once_however_often_it_is_called(purse: Purse) -> None:
    order_id = await purse.order(300)
    for _ in range(3):
        await attempt(purse.spend, order_id)
    assert await purse.balance() == 200
    assert await purse.book() == [(purse.kind.spent, -300)]
    assert await purse.stamps(order_id) == {"done"}


async def test_all_of_it_can_be_spent_but_not_one_more(purse: Purse) -> None:
    too_much, all_of_it = await purse.order(501), await purse.order(500)
    with pytest.raises(purse.kind.refusal, match=f"^{too_much}:{purse.kind.step}:1$"):
        await attempt(purse.spend, too_much)
    assert await purse.balance() == 500
    assert await purse.stamps(too_much) == {"refused"}
    await attempt(purse.spend, all_of_it)
    assert await purse.balance() == 0
    assert await purse.book() == [(purse.kind.spent, -500)]


async def test_a_refusal_stays_a_refusal(purse: Purse) -> None:
    first, second = await purse.order(500), await purse.order(500)
    await attempt(purse.spend, first)
    for undo_first in (False, True):
        if undo_first:
            await attempt(purse.give_back, first)
        with pytest.raises(purse.kind.refusal):
            await attempt(purse.spend, second)
    assert await purse.balance() == 500


async def test_of_ten_orders_at_once_that_each_spend_everything_one_does(purse: Purse) -> None:
    order_ids = [await purse.order(500) for _ in range(10)]
    answers = await at_once(purse.spend, order_ids)
    assert answers.count(None) == 1
    assert sum(isinstance(answer, purse.kind.refusal) for answer in answers) == 9
    assert await purse.balance() == 0


async def test_what_was_taken_is_given_back_once_however_often_it_is_called(purse: Purse) -> None:
    order_id = await purse.order(300)
    await attempt(purse.spend, order_id)
    for _ in range(3):
        await attempt(purse.give_back, order_id)
    assert await purse.balance() == 500
    assert await purse.book() == [(purse.kind.spent, -300), (purse.kind.returned, 300)]
    assert await purse.stamps(order_id) == {"done", "undone"}


async def test_a_refused_order_gets_nothing_back(purse: Purse) -> None:
    order_id = await purse.order(501)
    with pytest.raises(purse.kind.refusal):
        await attempt(purse.spend, order_id)
    await attempt(purse.give_back, order_id)
    assert await purse.balance() == 500
    assert await purse.book() == []


async def test_a_late_attempt_after_the_undo_is_fenced_and_takes_nothing(purse: Purse) -> None:
    order_id = await purse.order(300)
    await attempt(purse.give_back, order_id)
    with pytest.raises(StepFenced):
        await attempt(purse.spend, order_id)
    assert await purse.balance() == 500
    assert await purse.book() == []
    assert await purse.stamps(order_id) == {"undone"}


async def test_an_order_that_spends_none_moves_none(purse: Purse) -> None:
    order_id = await purse.order(0)
    await attempt(purse.spend, order_id)
    await attempt(purse.give_back, order_id)
    assert await purse.balance() == 500
    assert await purse.book() == []


async def test_a_customer_without_an_account_has_zero(purse: Purse) -> None:
    order_id = await an_accepted_order(purse.database, customer_id="bob", **{purse.kind.field: 1})
    with pytest.raises(purse.kind.refusal):
        await attempt(purse.spend, order_id)
    await attempt(purse.give_back, order_id)


async def test_store_credit_of_another_currency_is_not_spent(database: Database) -> None:
    await a_product(database, "A", price=3000)
    await a_customer(database, store_credit=500, currency="USD")
    order_id = await an_accepted_order(database, lines=[{"sku": "A", "quantity": 1}], store_credit=100)
    with pytest.raises(InsufficientCredit):
        await attempt(LoyaltyActivities(database).apply_store_credit, order_id)
    assert (await read_customer(database, "ada")).store_credit == {"USD": 500}


@pytest.mark.parametrize("seed", range(4))
async def test_the_balance_agrees_with_the_book_after_any_sequence_of_attempts(purse: Purse, seed: int) -> None:
    draw = random.Random(seed)
    order_ids = [await purse.order(draw.randint(0, 250)) for _ in range(6)]

    async def one() -> None:
        try:
            await attempt(draw.choice([purse.spend, purse.spend, purse.give_back]), draw.choice(order_ids))
        except (purse.kind.refusal, StepFenced):
            return

    amount = purse.kind.book.c.amount
    for _ in range(12):
        await asyncio.gather(*(one() for _ in range(draw.randint(1, 4))))
        async with purse.database.snapshot() as connection:
            moved = await connection.scalar(select(func.sum(amount)))
        assert await purse.balance() == moved
        assert 0 <= moved <= 500
    await at_once(purse.give_back, order_ids)
    assert await purse.balance() == 500
