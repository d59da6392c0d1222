"""Each party's own database role can do nothing that is not its party's: every role itself, real PostgreSQL."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest
import pytest_asyncio
from sqlalchemy import text
from sqlalchemy.exc import ProgrammingError

from adapters.database import Database
from tests.conftest import MakeDatabase
from tests.parties import party_urls
from workflows.names import Queue

MOVEMENTS = {
    "inventory": ["stock_movements"],
    "loyalty": ["points_movements", "credit_movements"],
    "payments": ["money_movements"],
}


@pytest_asyncio.fixture(scope="module")
async def roles(make_database: MakeDatabase) -> AsyncIterator[dict[str, Database]]:
    """One database as each party reaches it."""
    urls = party_urls((await make_database()).url)
    async with AsyncExitStack() as stack:
        found = {}
        for party, url in urls.items():
            found[party] = Database(url, application="tests", pool_size=1)
            stack.push_async_callback(found[party].close)
        yield found


async def refused(role: Database, statement: str) -> None:
    """The statement is refused, whatever rows there are."""
    with pytest.raises(ProgrammingError, match=r"permission denied|must be owner"):
        async with role.begin() as connection:
            await connection.execute(text(statement))


FORBIDDEN = [
    ("payments", "write stock", "UPDATE stock SET on_hand = 0"),
    ("payments", "write the stock's book", "INSERT INTO stock_movements SELECT * FROM stock_movements"),
    ("payments", "give points", "UPDATE points_accounts SET points = 1000"),
    ("payments", "read contacts", "SELECT shipping_address FROM order_contacts"),
    ("payments", "read who ordered", "SELECT customer_id FROM orders"),
    ("payments", "change what is due", "UPDATE orders SET amount_due = 0, total = 0"),
    ("payments", "put another intent in place of an order's own", "UPDATE payments SET intent_id = 'pi_other'"),
    ("payments", "forget a payment", "DELETE FROM payments"),
    ("payments", "cancel a parcel", "UPDATE shipments SET status = 'CANCELLED'"),
    ("inventory", "read contacts", "SELECT email FROM order_contacts"),
    ("inventory", "read an order", "SELECT total FROM orders"),
    ("inventory", "change an order's lines", "UPDATE order_lines SET quantity = 1"),
    ("inventory", "read what was paid", "SELECT captured FROM payments"),
    ("inventory", "make more of a reservation", "UPDATE reservations SET quantity = 100"),
    ("loyalty", "read payments", "SELECT status FROM payments"),
    ("loyalty", "write payments", "UPDATE payments SET refunded = captured"),
    ("loyalty", "ask for a refund", "INSERT INTO refunds (refund_key) VALUES ('r')"),
    ("loyalty", "write the book of money", "INSERT INTO money_movements (key) VALUES ('k')"),
    ("loyalty", "read cards", "SELECT payment_method FROM orders"),
    ("loyalty", "read contacts", "SELECT email FROM order_contacts"),
    ("shipping", "read mail addresses", "SELECT email FROM order_contacts"),
    ("shipping", "read notes", "SELECT note FROM order_contacts"),
    ("shipping", "change an address", "UPDATE order_contacts SET shipping_address = '{}'"),
    ("shipping", "read what was paid", "SELECT captured FROM payments"),
    ("shipping", "read stock", "SELECT on_hand FROM stock"),
    ("orders", "read contacts", "SELECT shipping_address FROM order_contacts"),
    ("orders", "change a price", "UPDATE orders SET total = 1, amount_due = 1"),
    ("orders", "write stock", "UPDATE stock SET reserved = 0"),
    ("orders", "write the stock's book", "INSERT INTO stock_movements (key) VALUES ('k')"),
    ("orders", "give points", "UPDATE points_accounts SET points = 1000"),
    ("orders", "give credit", "UPDATE credit_accounts SET balance = 1000"),
    ("orders", "write payments", "UPDATE payments SET captured = 0"),
    ("orders", "write the book of money", "INSERT INTO money_movements (key) VALUES ('k')"),
    ("orders", "forget an order", "DELETE FROM orders"),
    ("orders", "allow another change of status", "INSERT INTO status_transitions VALUES ('CONFIRMED', 'PENDING')"),
]


@pytest.mark.parametrize(
    ("party", "statement"),
    [(party, statement) for party, _, statement in FORBIDDEN],
    ids=[f"{party} cannot {what}" for party, what, _ in FORBIDDEN],
)
async def test_a_party_cannot(roles: dict[str, Database], party: str, statement: str) -> None:
    await refused(roles[party], statement)


@pytest.mark.parametrize("party", sorted(set(Queue) - {Queue.ORDERS}))
async def test_nobody_but_orders_writes_a_status_or_tells_an_event(roles: dict[str, Database], party: str) -> None:
    for column in ("status", "stage", "reason"):
        await refused(roles[party], f"UPDATE orders SET {column} = 'CONFIRMED'")  # noqa: S608
    await refused(roles[party], "INSERT INTO outbox (event_id) VALUES ('e')")
    await refused(roles[party], "INSERT INTO review_items (order_id) VALUES ('o')")


@pytest.mark.parametrize("party", sorted(Queue))
async def test_no_party_changes_what_has_happened(roles: dict[str, Database], party: str) -> None:
    for table in MOVEMENTS.get(party, []):
        for statement in (f"UPDATE {table} SET kind = ''", f"DELETE FROM {table}", f"TRUNCATE {table}"):  # noqa: S608
            await refused(roles[party], statement)
        await refused(roles[party], f"ALTER TABLE {table} DISABLE TRIGGER append_only")
    await refused(roles[party], "DELETE FROM order_steps")
    await refused(roles[party], "UPDATE order_steps SET state = 'done'")


@pytest.mark.parametrize("party", sorted(Queue))
async def test_no_party_changes_the_schema_or_becomes_somebody_else(roles: dict[str, Database], party: str) -> None:
    await refused(roles[party], "CREATE TABLE mine (id text)")
    await refused(roles[party], "DROP TABLE orders")
    await refused(roles[party], "SELECT * FROM alembic_version")
    await refused(roles[party], "SET ROLE orders")
    await refused(roles[party], f"SET ROLE tests_{'loyalty' if party == 'orders' else 'orders'}")
    await refused(roles[party], "CREATE ROLE another")
