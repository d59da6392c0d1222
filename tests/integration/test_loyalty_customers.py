"""What an operator gives a customer, and what the customer then has."""

import pytest
from pydantic import ValidationError
from sqlalchemy import select

from adapters.database import Database
from adapters.loyalty import CustomerLevel, CustomerView, put_customer, read_customer
from adapters.tables import credit_movements, points_movements


async def granted(database: Database) -> list[tuple[str, int, str]]:
    """What the books say was granted, in order: (what, amount, actor)."""
    async with database.snapshot() as connection:
        points = (await connection.execute(select(points_movements).order_by(points_movements.c.at))).all()
        credit = (await connection.execute(select(credit_movements).order_by(credit_movements.c.at))).all()
    return [("points", row.amount, row.actor) for row in points] + [
        (row.currency, row.amount, row.actor) for row in credit
    ]


async def test_a_customer_who_was_never_given_anything_has_nothing(database: Database) -> None:
    assert await read_customer(database, "ada") == CustomerView(customer_id="ada", points=0, store_credit={})


async def test_points_and_credit_are_set_and_only_differences_are_written_in_the_books(database: Database) -> None:
    for points, credit in ((500, {"USD": 20, "EUR": 700}), (500, {"EUR": 700}), (20, {"EUR": 900})):
        view = await put_customer(database, "ada", CustomerLevel(points=points, store_credit=credit), "mia")
    assert view == CustomerView(customer_id="ada", points=20, store_credit={"EUR": 900, "USD": 20})
    assert await read_customer(database, "ada") == view
    assert await granted(database) == [
        ("points", 500, "mia"),
        ("points", -480, "mia"),
        ("EUR", 700, "mia"),
        ("USD", 20, "mia"),
        ("EUR", 200, "mia"),
    ]


async def test_currencies_that_are_not_named_stay_as_they_are(database: Database) -> None:
    await put_customer(database, "ada", CustomerLevel(points=0, store_credit={"EUR": 700}), "mia")
    view = await put_customer(database, "ada", CustomerLevel(points=5), "mia")
    assert view.store_credit == {"EUR": 700}


@pytest.mark.parametrize(
    "level",
    [
        {},
        {"points": -1},
        {"points": 1.0},
        {"points": "5"},
        {"points": True},
        {"points": 10**19},
        {"points": 0, "store_credit": {"EUR": -1}},
        {"points": 0, "store_credit": {"eur": 1}},
        {"points": 0, "store_credit": {"XXX": 1}},
        {"points": 0, "store_credit": 5},
        {"points": 0, "name": "Ada"},
    ],
)
def test_a_level_that_makes_no_sense_is_refused(level: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        CustomerLevel.model_validate(level)
