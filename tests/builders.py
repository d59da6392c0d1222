"""Data for tests: valid by default, a test changes the one thing it is about."""

import itertools
from typing import Any

from adapters.database import Database
from adapters.loyalty import CustomerLevel, put_customer
from adapters.orders import accept_order
from adapters.stock import StockLevel, put_stock
from domain.intake import OrderRequest, parse_order

_numbers = itertools.count(1)


def unique(prefix: str) -> str:
    """An id that no other test of this session has."""
    return f"{prefix}-{next(_numbers)}"


def an_order_document(**changes: Any) -> dict[str, Any]:
    """The JSON body of a valid order: 1×A and 1×B, EUR."""
    document: dict[str, Any] = {
        "customer_id": "ada",
        "currency": "EUR",
        "lines": [{"sku": "A", "quantity": 1}, {"sku": "B", "quantity": 1}],
        "email": "ada@example.com",
        "shipping_address": {
            "name": "Ada Lovelace",
            "line1": "12 St James's Square",
            "city": "London",
            "postcode": "SW1Y 4JH",
            "country": "GB",
        },
    }
    return document | changes


def an_order(**changes: Any) -> OrderRequest:
    """A valid order request."""
    return parse_order(an_order_document(**changes))


async def an_accepted_order(database: Database, **changes: Any) -> str:
    """The id of an accepted order; its products are there already, or are unknown SKUs."""
    request = an_order(**changes)
    accepted = await accept_order(
        database,
        request,
        caller=request.customer_id,
        key=unique("key"),
        correlation_id=unique("correlation"),
        points_currency="EUR",
        default_payment_method="pm_card_visa",
    )
    return accepted.order_id


async def a_product(
    database: Database,
    sku: str = "A",
    *,
    price: int = 3000,
    on_hand: int = 5,
    warehouse: str = "main",
    currency: str = "EUR",
) -> None:
    """A product of the catalogue with stock in one warehouse; called again, in another one too."""
    level = StockLevel(warehouse=warehouse, on_hand=on_hand, unit_price=price, currency=currency)
    await put_stock(database, sku, level, actor="tests")


async def the_fixture_products(database: Database) -> None:
    """A at 30.00 and B at 20.00, five of each."""
    await a_product(database, "A", price=3000)
    await a_product(database, "B", price=2000)


async def a_customer(
    database: Database, customer_id: str = "ada", *, points: int = 500, store_credit: int = 0, currency: str = "EUR"
) -> None:
    """A customer with points, and store credit in one currency."""
    level = CustomerLevel(points=points, store_credit={currency: store_credit})
    await put_customer(database, customer_id, level, actor="tests")
