"""The one door: an order is written whole and once, whoever knocks and how often."""

import asyncio
from typing import Any

import pytest
from sqlalchemy import func, select, update

from adapters.database import Database
from adapters.orders import Accepted, accept_order, list_orders, read_order, read_results, read_timeline
from adapters.tables import idempotency_keys, metadata, order_contacts, order_lines, orders, outbox, products
from domain.errors import DatabaseUnavailable
from domain.intake import IntakeProblem, OrderRequest, parse_order
from domain.keys import order_id_for
from domain.messages import OrderResult
from domain.order import OrderStatus, PaymentStatus
from tests.builders import a_product, an_accepted_order, an_order, an_order_document, the_fixture_products

TABLES_OF_AN_ORDER = (orders, order_lines, order_contacts, idempotency_keys, outbox)


async def accept(database: Database, request: OrderRequest, key: str = "key") -> Accepted:
    return await accept_order(
        database,
        request,
        caller=request.customer_id,
        key=key,
        correlation_id="correlation",
        points_currency="EUR",
        default_payment_method="pm_card_visa",
    )


async def rows(database: Database, table: Any) -> list[dict[str, Any]]:
    async with database.snapshot() as connection:
        return [dict(row) for row in (await connection.execute(select(table))).mappings()]


async def counts(database: Database) -> list[int]:
    async with database.snapshot() as connection:
        return [
            (await connection.execute(select(func.count()).select_from(table))).scalar_one()
            for table in TABLES_OF_AN_ORDER
        ]


async def test_an_accepted_order_is_written_whole(database: Database) -> None:
    await the_fixture_products(database)
    accepted = await accept(database, an_order(points=500, store_credit=1000, channel="web"))
    assert accepted == Accepted(order_id_for("ada", "key"), OrderStatus.PENDING, replayed=False)
    (order,) = await rows(database, orders)
    assert (order["total"], order["points"], order["store_credit"], order["amount_due"]) == (5000, 500, 1000, 3500)
    assert (order["status"], order["stage"], order["payment_method"]) == ("PENDING", "PENDING", "pm_card_visa")
    assert (order["channel"], order["correlation_id"]) == ("web", "correlation")
    (event,) = await rows(database, outbox)
    assert (event["event_id"], event["type"]) == (f"{accepted.order_id}:OrderSubmitted", "OrderSubmitted")
    assert event["data"]["amount_due"] == 3500
    lines = [(line["line_no"], line["sku"], line["unit_price"]) for line in await rows(database, order_lines)]
    assert sorted(lines) == [(1, "A", 3000), (2, "B", 2000)]


async def test_the_door_wakes_the_relay_when_the_order_is_committed(database: Database) -> None:
    await the_fixture_products(database)
    async with database.engine.connect() as listener:
        await listener.exec_driver_sql("LISTEN outbox")
        await listener.commit()
        raw = (await listener.get_raw_connection()).driver_connection
        assert raw is not None
        accepted = await accept(database, an_order())
        heard = [notice.payload async for notice in raw.notifies(timeout=5, stop_after=1)]
    assert heard == [accepted.order_id]


async def test_the_same_order_again_is_the_same_order_at_its_status_of_now(database: Database) -> None:
    await the_fixture_products(database)
    document = an_order_document()
    first = await accept(database, parse_order(document))
    async with database.begin() as connection:
        await connection.execute(update(orders).values(status="AWAITING_PAYMENT", stage="AWAITING_PAYMENT"))
    turned = dict(reversed(document.items()))
    turned["lines"] = [{"quantity": 1.0, "sku": line["sku"]} for line in document["lines"]]
    again = await accept(database, parse_order(turned))
    assert again == Accepted(first.order_id, OrderStatus.AWAITING_PAYMENT, replayed=True)
    assert await counts(database) == [1, 2, 1, 1, 1]


async def test_another_order_under_the_same_key_is_refused_and_nothing_is_written(database: Database) -> None:
    await the_fixture_products(database)
    await accept(database, an_order())
    with pytest.raises(IntakeProblem) as caught:
        await accept(database, an_order(lines=[{"sku": "A", "quantity": 2}]))
    assert (caught.value.type, caught.value.status) == ("key-reused", 422)
    assert await counts(database) == [1, 2, 1, 1, 1]


async def test_a_key_belongs_to_its_caller(database: Database) -> None:
    await the_fixture_products(database)
    first = await accept(database, an_order())
    other = await accept(database, an_order(customer_id="bob"))
    assert not other.replayed
    assert other.order_id != first.order_id


async def test_fifty_requests_at_once_under_one_key_make_one_order(database: Database) -> None:
    await the_fixture_products(database)
    answers = await asyncio.gather(*(accept(database, an_order()) for _ in range(50)))
    assert [answer.replayed for answer in answers].count(False) == 1
    assert len({answer.order_id for answer in answers}) == 1
    assert await counts(database) == [1, 2, 1, 1, 1]


async def test_a_price_change_reaches_new_orders_only(database: Database) -> None:
    await the_fixture_products(database)
    first = await accept(database, an_order(expected_total=5000))
    async with database.begin() as connection:
        await connection.execute(update(products).values(unit_price=9900))
    assert (await accept(database, an_order(expected_total=5000))).replayed
    view = await read_order(database, first.order_id)
    assert view is not None
    assert view.total == 5000
    with pytest.raises(IntakeProblem) as caught:
        await accept(database, an_order(expected_total=5000), key="another")
    assert caught.value.type == "price-changed"


async def test_a_refused_order_leaves_nothing_and_its_key_free(database: Database) -> None:
    await the_fixture_products(database)
    with pytest.raises(IntakeProblem):
        await accept(database, an_order(points=5001))
    assert await counts(database) == [0, 0, 0, 0, 0]
    assert not (await accept(database, an_order(points=500))).replayed


async def test_a_basket_of_five_hundred_lines_is_taken(database: Database) -> None:
    await a_product(database, "A", price=10)
    accepted = await accept(database, an_order(lines=[{"sku": "A", "quantity": n + 1} for n in range(500)]))
    view = await read_order(database, accepted.order_id)
    assert view is not None
    assert [line.quantity for line in view.lines] == list(range(1, 501))
    assert view.total == 10 * 500 * 501 // 2


@pytest.mark.parametrize(("currency", "price"), [("JPY", 10_000), ("KWD", 1230), ("EUR", 1000)])
async def test_amounts_are_kept_in_the_currencys_smallest_unit(database: Database, currency: str, price: int) -> None:
    await a_product(database, "A", price=price, currency=currency)
    accepted = await accept(database, an_order(currency=currency, lines=[{"sku": "A", "quantity": 1}]))
    view = await read_order(database, accepted.order_id)
    assert view is not None
    assert (view.currency, view.amount_due) == (currency, price)


async def test_an_unknown_sku_is_accepted_without_a_price(database: Database) -> None:
    await a_product(database, "A")
    lines = [{"sku": "A", "quantity": 1}, {"sku": "nowhere", "quantity": 3}]
    accepted = await accept(database, an_order(lines=lines, points=99_999))
    view = await read_order(database, accepted.order_id)
    assert view is not None
    assert [line.unit_price for line in view.lines] == [3000, None]
    assert (view.total, view.amount_due) == (3000, 3000)


async def test_a_new_order_is_seen_as_the_interface_tells(database: Database) -> None:
    await the_fixture_products(database)
    order_id = await an_accepted_order(database)
    view = await read_order(database, order_id)
    assert view is not None
    told = view.model_dump(mode="json")
    assert told["payment"] == {
        "id": None,
        "status": PaymentStatus.NONE,
        "authorized": 0,
        "captured": 0,
        "refunded": 0,
        "next_action": None,
    }
    assert (told["status"], told["reason"], told["shipments"], told["needs_review"]) == ("PENDING", None, [], [])
    assert told["lines"][0] == {"sku": "A", "quantity": 1, "unit_price": 3000}
    assert "Nothing was taken from your card" in told["message"]
    assert await read_timeline(database, order_id) == []


async def test_orders_are_listed_newest_first_and_followed_by_id(database: Database) -> None:
    await the_fixture_products(database)
    first, second, third = [await an_accepted_order(database) for _ in range(3)]
    assert [order.order_id for order in await list_orders(database, 2)] == [third, second]
    assert await list_orders(database, 10, OrderStatus.CONFIRMED) == []
    assert await read_results(database, [first, "nobody"]) == {
        first: OrderResult(order_id=first, status=OrderStatus.PENDING)
    }


async def test_an_order_that_nobody_placed_is_not_there(database: Database) -> None:
    assert await read_order(database, "nobody") is None
    assert await read_timeline(database, "nobody") is None


async def test_personal_data_is_in_the_contacts_table_and_nowhere_else(database: Database) -> None:
    await the_fixture_products(database)
    address = {"name": "MARKER", "line1": "MARKER", "line2": "MARKER", "city": "MARKER", "postcode": "MARKER"}
    await accept(
        database,
        an_order(email="MARKER@example.com", note="MARKER", shipping_address=address | {"country": "GB"}),
    )
    marked = [table.name for table in metadata.sorted_tables if "MARKER" in repr(await rows(database, table))]
    assert marked == ["order_contacts"]


async def test_a_door_without_a_free_connection_says_that_the_database_is_unavailable(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("adapters.database.CONNECT_TIMEOUT_SECONDS", 1)
    crowded = Database(database.url, application="tests", pool_size=1)
    async with crowded.begin(), crowded.begin():
        with pytest.raises(DatabaseUnavailable):
            await accept(crowded, an_order())
    await crowded.close()
    assert await counts(database) == [0, 0, 0, 0, 0]
