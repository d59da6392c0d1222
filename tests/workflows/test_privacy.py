"""Personal data stays with the contact and the providers: no trace of it anywhere that people or machines read on."""

import json
import logging
from typing import Any

import pytest
import structlog
from sqlalchemy import select

from adapters.tables import order_steps, orders, outbox, payments, review_items, shipments, webhook_inbox
from domain.keys import Step
from tests.baskets import Basket, fresh
from tests.shop import Shop

TABLES = (orders, order_steps, review_items, outbox, payments, shipments, webhook_inbox)
MARK = "zzmarker"


def marked(**changes: Any) -> dict[str, Any]:
    """Every field of an order that may say something about a person carries the mark."""
    address = {"name": MARK, "line1": MARK, "line2": MARK, "city": MARK, "postcode": MARK, "country": "GB"}
    return {
        "email": f"{MARK}@example.com",
        "note": MARK,
        "shipping_address": address | changes.pop("address", {}),
    } | changes


def a_telling_bug() -> Exception:
    return LookupError(f"no such person: {MARK}")


async def everything_told(shop: Shop, order_id: str) -> str:
    """Histories, rows and what the shopper and operators see, as one text."""
    told = [(await shop.saga(order_id).fetch_history()).to_json()]
    told.append(str((await shop.saga(order_id).describe()).raw_description))
    told.append((await shop.view(order_id)).model_dump_json())
    async with shop.database.begin() as connection:
        for table in TABLES:
            rows = await connection.execute(select(table).where(table.c.order_id == order_id))
            told += [json.dumps(dict(row), default=str) for row in rows.mappings()]
    return "\n".join(told)


async def test_no_personal_data_is_told_whatever_becomes_of_the_order(
    shop: Shop, caplog: pytest.LogCaptureFixture
) -> None:
    """S96: in histories, events, queue items, logs and what people see."""
    caplog.set_level(logging.DEBUG)
    bought, declined, unserved, buggy, cancelled = [await shop.basket() for _ in range(5)]
    bug = shop.gates.fail(buggy.order_id, Step.BOOK_SHIPMENT, a_telling_bug)
    held = shop.gates.hold(cancelled.order_id, Step.AUTHORIZE_PAYMENT)
    with structlog.testing.capture_logs() as lines:
        await shop.place(bought, **marked())
        await shop.place(declined, **marked(payment_method="pm_card_chargeDeclined"))
        await shop.place(unserved, **marked(address={"postcode": "00000"}))
        await shop.place(buggy, **marked())
        await shop.place(cancelled, **marked())
        await held.reached()
        answer = await shop.shopper.post(f"/orders/{cancelled.order_id}/cancel", json={"reason": MARK})
        assert answer.status == 202
        held.open()
        await shop.reaches(buggy.order_id, "NEEDS_REVIEW")
        bug.open()
        assert await shop.redrive(buggy.order_id, "book_shipment", "retry") == 202
        baskets: list[Basket] = [bought, declined, unserved, buggy, cancelled]
        statuses = [(await shop.ended(basket.order_id)).status for basket in baskets]
    assert statuses == ["CONFIRMED", *["CANCELLED_COMPENSATED"] * 2, "CONFIRMED", "CANCELLED_COMPENSATED"]
    for basket in baskets:
        assert MARK not in await everything_told(shop, basket.order_id)
    assert [line["event"] for line in lines if MARK in str({**line, "exc_info": None})] == []
    assert [record.name for record in caplog.records if MARK in record.getMessage()] == []


async def test_the_gateways_token_of_a_card_stands_with_the_order_and_nowhere_else(shop: Shop) -> None:
    """S96: a token that the gateway does not know, so that its errors may quote it."""
    basket = await shop.basket()
    with structlog.testing.capture_logs() as lines:
        await shop.place(basket, payment_method=f"pm_{MARK}")
        assert (await shop.ended(basket.order_id)).reason == "CARD_DECLINED"
    told = await everything_told(shop, basket.order_id)
    assert told.count(MARK) == told.count(f'"payment_method": "pm_{MARK}"') == 1
    assert [line for line in lines if MARK in str({**line, "exc_info": None})] == []
    metrics = await (await shop.operator.get("/metrics")).text()
    assert MARK not in metrics


async def test_an_order_that_is_refused_at_the_door_tells_no_personal_data(shop: Shop) -> None:
    basket = await shop.basket()
    with structlog.testing.capture_logs() as lines:
        document = basket.document(**marked(lines=[]))
        answer = await shop.shopper.post("/orders", json=document, headers={"Idempotency-Key": fresh("key")})
        assert answer.status == 422
        assert MARK not in await answer.text()
    assert [line for line in lines if MARK in str(line)] == []
