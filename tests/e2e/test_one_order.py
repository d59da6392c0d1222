"""Orders through the shop's public doors, and what its processes tell of them."""

import json
from typing import Any

import pytest
from psycopg import sql

from demo.cases import CASES
from domain.keys import order_id_for
from runtime.temporal import connect
from tests.baskets import fresh
from tests.builders import an_order_document
from tests.e2e.doors import PATIENCE_SECONDS
from tests.e2e.running import RunningShop
from tests.polling import eventually
from workflows.names import order_workflow_id

pytestmark = pytest.mark.timeout(300)

#: What a person can still read from top to bottom.
MOST_EVENTS = 120
#: Stands wherever a shopper says who they are, and may stand nowhere else.
MARK = "zqmarkzq"


async def test_an_order_of_two_parcels_is_confirmed_in_a_short_history(shop: RunningShop) -> None:
    (order,) = await shop.prepared(CASES[:1])
    await shop.finish([order])
    await shop.assert_books_hold()
    saga = (await connect(shop.settings)).get_workflow_handle(order_workflow_id(order.order_id))
    assert (await saga.result())["status"] == "CONFIRMED"
    assert (await saga.describe()).history_length <= MOST_EVENTS


async def test_who_the_shopper_is_stands_with_the_contact_and_nowhere_else(shop: RunningShop) -> None:
    """S96: with the worker killed meanwhile."""
    bought = await shop.doors.post_order(marked(), fresh("key"))
    unserved = await shop.doors.post_order(marked(postcode="00000"), fresh("key"))
    shop.stack.kill("worker")
    declined = await typed_at_a_terminal(shop, marked(payment_method="pm_card_chargeDeclined"), ends_with=3)
    await refused_at_the_door(shop, marked() | {"email": f"{MARK} at home", "phone": MARK})
    assert [await status_at_its_end(shop, order_id) for order_id in (bought, unserved, declined)] == [
        "CONFIRMED",
        "CANCELLED_COMPENSATED",
        "CANCELLED_COMPENSATED",
    ]
    await told_by_webhook(shop, bought)
    assert [table for table in await tables(shop) if MARK in await content(shop, table)] == ["order_contacts"]
    for order_id in (bought, unserved, declined):
        assert MARK.encode() not in await history(shop, order_id)
        assert any(order_id in line for line in shop.log)
    assert [line for line in shop.log if MARK in line] == []
    for process, metrics in (await shop.metrics()).items():
        assert "orders_" in metrics, process
        assert MARK not in metrics


def marked(*, postcode: str = MARK, payment_method: str = "pm_card_visa") -> dict[str, Any]:
    """An order in which every field about a person carries the mark."""
    address = {"name": MARK, "line1": MARK, "line2": MARK, "city": MARK, "postcode": postcode, "country": "GB"}
    return an_order_document(
        customer_id=fresh("customer"),
        lines=[{"sku": "tea-green", "quantity": 1}],
        payment_method=payment_method,
        email=f"{MARK}@example.com",
        note=f"leave it with {MARK}",
        shipping_address=address,
    )


async def typed_at_a_terminal(shop: RunningShop, document: dict[str, Any], *, ends_with: int) -> str:
    """Placed by `starter.py`, which follows it to its end; the order's id."""
    key = fresh("key")
    words = ("starter.py", "order", "-", "--key", key, "--watch")
    ended = await shop.run(*words, stdin=json.dumps(document).encode())
    assert (ended.code, ended.err) == (ends_with, "")
    assert MARK not in ended.out
    return order_id_for(document["customer_id"], key)


async def refused_at_the_door(shop: RunningShop, document: dict[str, Any]) -> None:
    """Sent, and not taken."""
    url = shop.url(shop.settings.http_port, "/orders")
    async with shop.http.post(url, json=document, headers={"Idempotency-Key": fresh("key")}) as answer:
        assert answer.status == 422
        assert MARK not in await answer.text()


async def status_at_its_end(shop: RunningShop, order_id: str) -> str:
    """The result of the order's saga, which is in nobody's hands any more."""
    saga = (await connect(shop.settings)).get_workflow_handle(order_workflow_id(order_id))

    async def look() -> str | None:
        view = await shop.doors.order(order_id)
        return view.status.value if (await saga.describe()).close_time else None

    return str(await eventually(look, within_seconds=PATIENCE_SECONDS))


async def told_by_webhook(shop: RunningShop, order_id: str) -> None:
    """The gateway tells something of the order's payment that quotes the shopper."""
    (intent,) = await shop.doors.intents(order_id)
    event = {"type": "payment_intent.payment_failed", "intent": intent["id"]}
    event["overrides"] = {"receipt_email": f"{MARK}@example.com", "last_payment_error": {"message": MARK}}
    async with shop.http.post(shop.url(shop.settings.sim_gateway_port, "/_sim/events"), json=event) as answer:
        sent = await answer.json()
        assert sent["status"] == 200

    async def look() -> bool:
        return (
            await shop.rows("SELECT 1 FROM webhook_inbox WHERE event_id = %s AND state <> 'waiting'", sent["id"]) != []
        )

    await eventually(look, within_seconds=PATIENCE_SECONDS)


async def tables(shop: RunningShop) -> list[str]:
    """All of the database, in the order of their names."""
    rows = await shop.rows("SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1")
    return [name for (name,) in rows]


async def content(shop: RunningShop, table: str) -> str:
    """All rows of one table as text."""
    query = sql.SQL("SELECT string_agg(t::text, '') FROM {} AS t").format(sql.Identifier(table))
    return str((await shop.rows(query))[0][0])


async def history(shop: RunningShop, order_id: str) -> bytes:
    """All events of the order's saga, payloads and failures included."""
    saga = (await connect(shop.settings)).get_workflow_handle(order_workflow_id(order_id))
    events = [event.SerializeToString() async for event in saga.fetch_history_events()]
    assert any(order_id.encode() in event for event in events)
    return b"".join(events)
