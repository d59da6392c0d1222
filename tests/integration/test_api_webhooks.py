"""Webhooks at the door: only signed ones, kept once, as ids, and acknowledged only when kept."""

import asyncio
import json
from typing import Any

import pytest
from sqlalchemy import select
from temporalio.client import Client

from adapters.database import Database
from adapters.tables import webhook_inbox
from tests.builders import unique
from tests.integration.conftest import Api, MakeApi
from tests.integration.sagas import inbox
from tests.integration.webhooks import a_shipment_event, an_intent_event, send, signature


async def stored(database: Database) -> list[tuple[Any, ...]]:
    columns = (webhook_inbox.c.source, webhook_inbox.c.type, webhook_inbox.c.object_id, webhook_inbox.c.order_id)
    async with database.snapshot() as connection:
        return [tuple(row) for row in await connection.execute(select(*columns).order_by(webhook_inbox.c.received_at))]


async def test_the_exact_bytes_are_accepted_and_others_are_not(lonely_api: Api, database: Database) -> None:
    """S22."""
    event = json.dumps(an_intent_event("pi_1", "o1")).replace(": ", " :  ")
    body = event.replace('"id"', '"z":"\\u00e9 \N{SNOWMAN}", "id"', 1).encode() + b"\n"
    altered = json.dumps(json.loads(body)).encode()
    status, problem = await send(lonely_api.shopper, altered, **{"Stripe-Signature": signature(body)})
    assert (status, problem["type"]) == (400, "/problems/bad-signature")
    assert await stored(database) == []
    status, _ = await send(lonely_api.shopper, body)
    assert status == 200
    assert await stored(database) == [("stripe", "payment_intent.amount_capturable_updated", "pi_1", "o1")]


@pytest.mark.usefixtures("nothing_written")
@pytest.mark.parametrize("header", ["", "nonsense", "t=,v1=", "t=1,v1=\N{SNOWMAN}"])
async def test_a_malformed_header_is_refused(refusing_api: Api, header: str) -> None:
    status, problem = await send(refusing_api.shopper, an_intent_event("pi_1"), **{"Stripe-Signature": header})
    assert (status, problem["type"]) == (400, "/problems/bad-signature")
    answer = await refusing_api.shopper.post("/webhooks/stripe", json=an_intent_event("pi_1"))
    assert answer.status == 400


async def test_old_and_new_secrets_are_accepted_with_one_effect(lonely_api: Api, database: Database) -> None:
    """S23."""
    event = an_intent_event("pi_1")
    body = json.dumps(event).encode()
    new, old, older = "whsec_new", "whsec_old", "whsec_older"
    legacy = signature(body, new).replace("v1=", "v0=")
    headers = [signature(body, *secrets) for secrets in ((new,), (old,), (new, old), (older, old))]
    headers.append(f"{signature(body, new)},v0={'0' * 64}")
    answers = [await send(lonely_api.shopper, body, **{"Stripe-Signature": header}) for header in headers]
    assert [(status, answer["duplicate"]) for status, answer in answers] == [(200, False)] + [(200, True)] * 4
    for header in (signature(body, older), legacy):
        assert (await send(lonely_api.shopper, body, **{"Stripe-Signature": header}))[0] == 400
    assert await inbox(database) == {event["id"]: "waiting"}


async def test_events_from_another_time_are_refused_and_counted(lonely_api: Api, database: Database) -> None:
    """S24: an accepted one is a duplicate when it is played again."""
    accepted = b""
    for offset, expected in ((-290, 200), (-310, 400), (290, 200), (310, 400)):
        body = json.dumps(an_intent_event("pi_1")).encode()
        status, _ = await send(lonely_api.shopper, body, **{"Stripe-Signature": signature(body, offset=offset)})
        assert status == expected, offset
        accepted = body if status == 200 else accepted
    assert len(await inbox(database)) == 2
    assert (await send(lonely_api.shopper, accepted))[1] == {"received": True, "duplicate": True}
    metrics = await (await lonely_api.operator.get("/metrics")).text()
    assert 'orders_webhooks_total{outcome="skewed",source="stripe"} 2.0' in metrics
    assert 'orders_webhooks_total{outcome="stored",source="stripe"} 2.0' in metrics


async def test_twenty_deliveries_of_one_event_at_once_are_one_event(
    make_api: MakeApi, database: Database, no_temporal: Client
) -> None:
    """S03: on two replicas."""
    replicas = [await make_api(database, no_temporal) for _ in range(2)]
    event = an_intent_event("pi_1")
    answers = await asyncio.gather(*(send(replicas[number % 2].shopper, event) for number in range(20)))
    assert [status for status, _ in answers] == [200] * 20
    assert sorted(body["duplicate"] for _, body in answers) == [False] + [True] * 19


async def test_charges_and_refunds_are_about_their_intent(lonely_api: Api, database: Database) -> None:
    for kind in ("charge.refunded", "refund.updated", "charge.dispute.created"):
        for intent in ("pi_1", {"id": "pi_1"}):
            event = {"id": unique("evt"), "type": kind, "data": {"object": {"id": "x", "payment_intent": intent}}}
            assert (await send(lonely_api.shopper, event))[0] == 200
    assert {row[2:] for row in await stored(database)} == {("pi_1", None)}


@pytest.mark.parametrize("data", [None, [], {"object": "x"}, {"object": {"id": 5, "metadata": "x"}}])
async def test_what_is_signed_but_not_understood_is_kept(lonely_api: Api, database: Database, data: Any) -> None:
    status, _ = await send(lonely_api.shopper, {"id": unique("evt"), "type": "payment_intent.new", "data": data})
    assert status == 200
    assert await stored(database) == [("stripe", "payment_intent.new", None, None)]


@pytest.mark.usefixtures("nothing_written")
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\xff",
        b"[]",
        b"{}",
        b'{"id": "evt"}',
        b'{"type": "t", "id": 5}',
        b'{"type": "t", "id": ""}',
        b'{"type": "t", "id": "\\u0000"}',
        b'{"type": "t", "id": "' + b"x" * 256 + b'"}',
    ],
)
async def test_what_has_no_id_or_type_is_refused(refusing_api: Api, body: bytes) -> None:
    assert (await send(refusing_api.shopper, body))[0] == 400


@pytest.mark.usefixtures("nothing_written")
async def test_a_body_over_one_mebibyte_is_refused(refusing_api: Api) -> None:
    assert (await send(refusing_api.shopper, b" " * (1024 * 1024 + 1)))[0] == 413


async def test_nothing_of_the_body_is_kept_but_ids(lonely_api: Api, database: Database) -> None:
    """S96."""
    event = an_intent_event("pi_1", "o1")
    event["data"]["object"]["receipt_email"] = "marker@example.com"
    event["data"]["object"]["metadata"]["note"] = "marker"
    await send(lonely_api.shopper, event)
    async with database.snapshot() as connection:
        (row,) = (await connection.execute(select(webhook_inbox))).mappings()
    assert "marker" not in repr(dict(row))


async def test_the_couriers_events_are_kept_by_their_shipment(lonely_api: Api, database: Database) -> None:
    event = a_shipment_event("shp_1", "DISPATCHED", "o1:main")
    assert (await send(lonely_api.shopper, event, source="courier", **{"Courier-Signature": "t=1,v1=0"}))[0] == 400
    assert (await send(lonely_api.shopper, event, source="courier"))[0] == 200
    enveloped = {"id": unique("cevt"), "type": "x", "data": {"object": event["shipment"]}}
    assert (await send(lonely_api.shopper, enveloped, source="courier"))[0] == 200
    assert await stored(database) == [("courier", "shipment.dispatched", "shp_1", "o1")] * 2


async def test_without_a_database_nothing_is_acknowledged(
    make_api: MakeApi, database: Database, no_temporal: Client
) -> None:
    """S29: 503 leaves no mark, so the redelivery counts."""
    unreachable = Database("postgresql://nobody@127.0.0.1:1/nothing", application="tests")
    event = an_intent_event("pi_1")
    async with asyncio.timeout(10):
        status, problem = await send((await make_api(unreachable, no_temporal)).shopper, event)
    assert (status, problem["type"]) == (503, "/problems/database-unavailable")
    status, body = await send((await make_api(database, no_temporal)).shopper, event)
    assert (status, body["duplicate"]) == (200, False)
    await unreachable.close()
