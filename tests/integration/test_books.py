"""The books find each kind of difference, name it by its line and its order, and find nothing else."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from sqlalchemy import select

from adapters.books.own import orders_to_run, read_own_books
from adapters.database import Database
from adapters.tables import outbox
from domain.books import Books, LineKind
from domain.keys import Step
from tests.conftest import MakeDatabase
from tests.integration.bookkeeping import Bookkeeping, some_bookkeeping


@pytest_asyncio.fixture(scope="module")
async def shelf(make_database: MakeDatabase) -> AsyncIterator[Bookkeeping]:
    """Orders that every test leaves as they are."""
    async with some_bookkeeping(await make_database()) as found:
        yield found


@pytest_asyncio.fixture
async def books(database: Database) -> AsyncIterator[Bookkeeping]:
    async with some_bookkeeping(database) as found:
        yield found


def broken(found: Books) -> dict[str, list[str]]:
    """The lines that do not hold, with their subjects."""
    return {line.name: [failure.subject for failure in line.failures] for line in found.lines if not line.holds}


async def test_an_empty_database_holds(database: Database) -> None:
    found = await read_own_books(database)
    assert found.hold
    assert {line.kind for line in found.lines} == {LineKind.ALWAYS, LineKind.CONSERVATION}
    assert all(line.checked == 0 for line in found.lines)


async def test_orders_that_went_through_the_real_steps_hold(shelf: Bookkeeping) -> None:
    own, settled = await shelf.own(), await shelf.settled()
    assert broken(own) == {}
    assert broken(settled) == {}
    assert {line.name: line.checked for line in settled.lines} == {line.name: 2 for line in settled.lines}
    assert {line.checked for line in own.lines if line.name.startswith("every order")} == {3}


# What is written past all code of ours, and the line that must find it with whom it must name.
DROP = "ALTER TABLE {} DROP CONSTRAINT {}"
SPOILT = {
    "a negative balance": (
        "no negative balance",
        "customer ada",
        DROP.format("points_accounts", "ck_points_accounts_points"),
        "UPDATE points_accounts SET points = points - 1000",
        "INSERT INTO points_movements (key, customer_id, kind, amount) VALUES ('k', 'ada', 'granted', -1000)",
    ),
    "more is reserved than is there": (
        "available = on hand − reserved, never negative",
        "A in main",
        DROP.format("stock", "ck_stock_reserved"),
        "UPDATE stock SET on_hand = 0 WHERE sku = 'A'",
        "INSERT INTO stock_movements (key, sku, warehouse, kind, quantity) VALUES ('k', 'A', 'main', 'stocked', -4)",
    ),
    "reserved for nobody": (
        "reserved = live reservations",
        "A in main",
        "UPDATE stock SET reserved = reserved + 1 WHERE sku = 'A'",
    ),
    "stock from nothing": (
        "on hand = stocked − sold",
        "B in main",
        "UPDATE stock SET on_hand = on_hand + 1 WHERE sku = 'B'",
    ),
    "points from nothing": (
        "points = sum of their movements",
        "customer ada",
        "UPDATE points_accounts SET points = points + 1",
    ),
    "credit from nothing": (
        "store credit = sum of its movements",
        "customer ada",
        "UPDATE credit_accounts SET balance = balance + 1",
    ),
    "captured more than was held": (
        "captured ≤ authorized",
        ":confirmed",
        DROP.format("payments", "ck_payments_captured"),
        "UPDATE payments SET authorized = 0 WHERE order_id = :confirmed",
        "DELETE FROM money_movements WHERE order_id = :confirmed AND kind = 'authorized'",
    ),
    "refunded more than was captured": (
        "0 ≤ refunded ≤ captured",
        ":undone",
        DROP.format("payments", "ck_payments_refunded"),
        "UPDATE payments SET refunded = 1 WHERE order_id = :undone",
        "INSERT INTO money_movements (key, order_id, intent_id, kind, currency, amount)"
        " VALUES ('k', :undone, 'pi', 'refunded', 'EUR', 1)",
    ),
    "money without its movement": (
        "payment = its money movements",
        ":confirmed",
        "DELETE FROM money_movements WHERE order_id = :confirmed AND kind = 'captured'",
    ),
    "a movement without its payment": (
        "payment = its money movements",
        ":open",
        "INSERT INTO money_movements (key, order_id, intent_id, kind, currency, amount)"
        " VALUES ('k', :open, 'pi', 'captured', 'EUR', 1)",
    ),
    "confirmed and nobody was told": (
        "one terminal event an order",
        ":confirmed",
        "DELETE FROM outbox WHERE order_id = :confirmed AND type = 'OrderConfirmed'",
    ),
    "undone and confirmed as well": (
        "one terminal event an order",
        ":undone",
        "INSERT INTO outbox (event_id, order_id, type, data, correlation_id)"
        " VALUES ('e', :undone, 'OrderConfirmed', '{}', 'c')",
    ),
    "told of an end that has not come": (
        "one terminal event an order",
        ":open",
        "INSERT INTO outbox (event_id, order_id, type, data, correlation_id)"
        " VALUES ('e', :open, 'OrderCancelled', '{}', 'c')",
    ),
    "a reservation without its movement": (
        "reservations = their movements",
        ":open",
        "DELETE FROM stock_movements WHERE order_id = :open AND sku = 'A'",
    ),
    "confirmed with less than was ordered": (
        "a confirmed order holds its goods",
        ":confirmed",
        "INSERT INTO order_lines (order_id, line_no, sku, quantity) VALUES (:confirmed, 9, 'A', 1)",
    ),
    "confirmed and a point short": (
        "a confirmed order has paid its points and credit",
        ":confirmed",
        "UPDATE orders SET points = points + 1, total = total + 1 WHERE order_id = :confirmed",
    ),
    "confirmed and not booked": (
        "a confirmed order has a shipment from each warehouse",
        ":confirmed",
        "DELETE FROM shipments WHERE order_id = :confirmed",
    ),
    "undone and still reserved": (
        "an undone order keeps no stock",
        ":undone",
        "UPDATE reservations SET state = 'reserved' WHERE order_id = :undone",
        "UPDATE stock SET reserved = reserved + 1",
        "DELETE FROM stock_movements WHERE order_id = :undone AND kind = 'released'",
    ),
    "undone and the points are gone": (
        "an undone order keeps no points",
        ":undone",
        "DELETE FROM points_movements WHERE order_id = :undone AND kind = 'restored'",
        "UPDATE points_accounts SET points = points - 100",
    ),
    "undone and the credit is gone": (
        "an undone order keeps no store credit",
        ":undone",
        "DELETE FROM credit_movements WHERE order_id = :undone AND kind = 'refunded'",
        "UPDATE credit_accounts SET balance = balance - 200",
    ),
    "undone and still booked": (
        "an undone order keeps no shipment",
        ":undone",
        "UPDATE shipments SET status = 'BOOKED' WHERE order_id = :undone",
    ),
    "accepted without its key": (
        "every order has its idempotency key",
        ":open",
        "DELETE FROM idempotency_keys WHERE order_id = :open",
    ),
    "accepted and never submitted": (
        "every order was submitted once",
        ":open",
        "DELETE FROM outbox WHERE order_id = :open",
    ),
}


@pytest.mark.parametrize("kind", SPOILT)
async def test_each_difference_breaks_its_own_line_and_is_named(shelf: Bookkeeping, kind: str) -> None:
    line, subject, *statements = SPOILT[kind]
    subject = getattr(shelf, subject[1:]) if subject.startswith(":") else subject
    found = broken(await shelf.spoiled(*statements))
    assert list(found) == [line]
    assert set(found[line]) == {subject}


async def test_a_look_at_one_order_leaves_out_what_is_wrong_with_another(shelf: Bookkeeping) -> None:
    wrong = "DELETE FROM outbox WHERE order_id = :open", "UPDATE stock SET on_hand = on_hand + 1"
    assert broken(await shelf.spoiled(*wrong, order_id=shelf.confirmed)) == {}
    assert broken(await shelf.spoiled(*wrong, order_id=shelf.open)) == {"every order was submitted once": [shelf.open]}


@pytest.mark.parametrize("of_one", [False, True])
async def test_money_that_the_gateway_took_of_an_undone_order_is_found(books: Bookkeeping, of_one: bool) -> None:
    intent = await books.till.at_gateway(books.undone)
    await books.till.desk.control("POST", f"intents/{intent['id']}/force", status="succeeded")
    found = await books.settled(books.undone if of_one else None)
    assert broken(found) == {"captured − refunded at the gateway = amount due, 0 if undone": [books.undone]}


@pytest.mark.parametrize("of_one", [False, True])
async def test_money_that_the_gateway_gave_back_of_a_confirmed_order_is_found(books: Bookkeeping, of_one: bool) -> None:
    intent = await books.till.at_gateway(books.confirmed)
    await books.till.gateway.refund_intent(intent["id"], 1, "by-hand", "by-hand")
    found = await books.settled(books.confirmed if of_one else None)
    assert broken(found) == {"captured − refunded at the gateway = amount due, 0 if undone": [books.confirmed]}


async def test_a_hold_on_an_undone_order_is_found(books: Bookkeeping) -> None:
    intent = await books.till.at_gateway(books.undone)
    await books.till.desk.control("POST", f"intents/{intent['id']}/force", status="requires_capture")
    assert broken(await books.settled()) == {"no open hold at the gateway": [books.undone]}


async def test_a_second_payment_of_one_order_is_found(books: Bookkeeping) -> None:
    second = await books.till.desk.an_authorized_intent(order=books.confirmed)
    assert broken(await books.settled()) == {"no open hold at the gateway": [books.confirmed]}
    await books.till.gateway.capture_intent(second, "by-hand")
    found = broken(await books.settled())
    assert found == {"captured − refunded at the gateway = amount due, 0 if undone": [books.confirmed]}


@pytest.mark.parametrize("of_one", [False, True])
async def test_a_parcel_that_only_the_courier_cancelled_is_found(books: Bookkeeping, of_one: bool) -> None:
    await books.courier.cancel(books.reference(books.confirmed))
    found = await books.settled(books.confirmed if of_one else None)
    assert broken(found) == {"live shipments at the courier = booked": [books.confirmed]}


async def test_a_parcel_nobody_knows_of_is_found(books: Bookkeeping) -> None:
    await books.courier.book(f"{books.confirmed}:elsewhere", "elsewhere", {"postcode": "1", "country": "GB"})
    assert broken(await books.settled()) == {"live shipments at the courier = booked": [books.confirmed]}


async def test_lists_of_many_pages_are_read_to_their_end(books: Bookkeeping) -> None:
    for number in range(120):
        await books.till.desk.an_intent(order="of-somebody-else", key=f"k{number}")
    base, others = books.till.desk.simulators.courier_url, [f"of-somebody-else:{number}" for number in range(1200)]
    shipments = [{"id": one, "reference": one, "warehouse": "main", "status": "booked"} for one in others]
    await books.till.desk.control("POST", "books", base, shipments=shipments)
    # The order's own intent is the oldest now, its parcel not the last: both are pages away.
    intent = await books.till.at_gateway(books.undone)
    await books.till.desk.control("POST", f"intents/{intent['id']}/force", status="requires_capture")
    await books.courier.book(f"{books.undone}:elsewhere", "elsewhere", {"postcode": "1", "country": "GB"})
    assert broken(await books.settled()) == {
        "no open hold at the gateway": [books.undone],
        "live shipments at the courier = booked": [books.undone],
    }


async def test_what_an_operator_waived_is_listed_and_stays_green(books: Bookkeeping) -> None:
    await books.spoil("UPDATE shipments SET status = 'BOOKED' WHERE order_id = :undone")
    intent = await books.till.at_gateway(books.undone)
    await books.till.desk.control("POST", f"intents/{intent['id']}/force", status="succeeded")
    for step, item in ((Step.CANCEL_SHIPMENT, "main"), (Step.RELEASE_PAYMENT, "")):
        await books.skip(step, item, actor="olga")
    own, settled = await books.own(), await books.settled()
    assert own.hold
    assert settled.hold
    assert [(waived.order_id, waived.step, waived.actor) for waived in own.waived] == [
        (books.undone, "cancel_shipment", "olga"),
        (books.undone, "release_payment", "olga"),
    ]


async def test_only_orders_that_still_have_something_to_do_need_a_run(books: Bookkeeping) -> None:
    assert await orders_to_run(books.database, 0) == [books.open]
    assert await orders_to_run(books.database, 3600) == []
    await books.spoil("UPDATE reservations SET state = 'reserved' WHERE order_id = :confirmed")
    assert set(await orders_to_run(books.database, 0)) == {books.open, books.confirmed}


async def test_looking_at_the_books_writes_nothing(books: Bookkeeping) -> None:
    async def everything() -> list[object]:
        async with books.database.snapshot() as connection:
            return list((await connection.execute(select(outbox.c.event_id).order_by(outbox.c.sequence))).scalars())

    before = await everything()
    await books.own()
    await books.settled()
    assert await everything() == before
