"""What the API says about itself: alive, ready, counted and described."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from typing import Any

import pytest
from sqlalchemy import insert, update
from temporalio.client import Client

from adapters.database import Database
from adapters.tables import outbox, review_items, webhook_inbox
from api import edge
from api.app import OPERATOR_OPERATIONS, SHOPPER_OPERATIONS
from tests.builders import an_accepted_order, an_order_document, the_fixture_products, unique
from tests.integration.conftest import Api, Http, MakeApi
from tests.integration.webhooks import an_intent_event, send


@pytest.fixture
async def unreachable() -> AsyncIterator[Database]:
    database = Database("postgresql://nobody@127.0.0.1:1/nothing", application="tests")
    yield database
    await database.close()


async def ready(http: Http) -> tuple[int, dict[str, Any]]:
    async with asyncio.timeout(10):
        answer = await http.get("/readyz")
        return answer.status, json.loads(await answer.read())


async def test_with_everything_in_reach_both_ports_are_ready(api: Api) -> None:
    for http in (api.shopper, api.operator):
        assert (await http.get("/livez")).status == 200
        assert await ready(http) == (200, {"status": "ok", "temporal": "ok", "holds": []})


async def test_without_temporal_it_is_ready_to_take_orders_and_tells_that_they_wait(lonely_api: Api) -> None:
    for http in (lonely_api.shopper, lonely_api.operator):
        assert await ready(http) == (200, {"status": "ok", "temporal": "down", "holds": []})
    assert "orders_temporal_up 0.0" in await (await lonely_api.operator.get("/metrics")).text()


async def test_without_a_database_it_is_alive_and_not_ready(
    make_api: MakeApi, unreachable: Database, temporal: Client
) -> None:
    api = await make_api(unreachable, temporal)
    status, problem = await ready(api.operator)
    assert (status, [wrong["field"] for wrong in problem["errors"]]) == (503, ["database"])
    assert "orders_temporal_up 1.0" in await (await api.operator.get("/metrics")).text()
    assert (await api.shopper.get("/livez")).status == 200


async def test_without_a_database_every_route_says_so_in_time(
    make_api: MakeApi, unreachable: Database, no_temporal: Client
) -> None:
    api = await make_api(unreachable, no_temporal)
    level = {"warehouse": "main", "on_hand": 1, "unit_price": 1, "currency": "EUR"}
    for http, method, path, body in (
        (api.shopper, "GET", "/orders/x", None),
        (api.shopper, "GET", "/orders/x/timeline", None),
        (api.shopper, "POST", "/orders/x/cancel", {}),
        (api.operator, "PUT", "/ops/stock/A", level),
        (api.operator, "GET", "/ops/customers/ada", None),
    ):
        async with asyncio.timeout(10):
            answer = await http.request(method, path, json=body)
        problem = json.loads(await answer.read())
        assert (answer.status, problem["type"]) == (503, "/problems/database-unavailable"), path
        assert answer.headers["Retry-After"] == "2"


async def test_a_database_that_swallows_the_request_does_not_keep_the_client(
    lonely_api: Api, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(edge, "ANSWER_SECONDS", 0.3)
    order_id = await an_accepted_order(database)
    async with database.begin() as holder:
        await holder.exec_driver_sql("LOCK TABLE orders IN ACCESS EXCLUSIVE MODE")
        answer = await lonely_api.shopper.get(f"/orders/{order_id}")
        assert (answer.status, answer.headers["Retry-After"]) == (503, "2")
    assert (await lonely_api.shopper.get(f"/orders/{order_id}")).status == 200


async def test_a_bug_is_a_problem_without_internals(
    lonely_api: Api, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: Database) -> Any:
        raise RuntimeError("secret of the house")

    monkeypatch.setattr(Database, "snapshot", broken)
    answer = await lonely_api.shopper.get("/orders/x")
    text = await answer.text()
    assert (answer.status, answer.content_type) == (500, "application/problem+json")
    assert "secret" not in text


async def test_metrics_count_what_happened_and_what_waits(lonely_api: Api, database: Database) -> None:
    await the_fixture_products(database)
    key = unique("key")
    _, accepted = await lonely_api.order(an_order_document(), key)
    await lonely_api.order(an_order_document(), key)
    await lonely_api.order(an_order_document(currency="XXX"), unique("key"))
    await send(lonely_api.shopper, an_intent_event("pi_1"))
    await lonely_api.starts.close()
    async with database.begin() as connection:
        item = {"order_id": accepted["order_id"], "step": "capture_payment", "kind": "TECHNICAL", "error": "E"}
        await connection.execute(insert(review_items).values(item))
        hour_ago = "2026-01-01T00:00:00Z"
        await connection.execute(update(outbox).values(created_at=hour_ago))
        await connection.execute(update(webhook_inbox).values(received_at=hour_ago))
    answer = await lonely_api.operator.get("/metrics")
    text = await answer.text()
    assert answer.content_type == "text/plain"
    for line in (
        'orders_intake_total{outcome="accepted"} 1.0',
        'orders_intake_total{outcome="replayed"} 1.0',
        'orders_intake_total{outcome="refused"} 1.0',
        'orders_direct_starts_total{outcome="failed"} 1.0',
        'orders_webhooks_total{outcome="stored",source="stripe"} 1.0',
        'orders_http_request_seconds_count{method="POST",route="/orders",status="202"} 1.0',
        "orders_database_up 1.0",
        'orders_by_status{status="PENDING"} 1.0',
        'orders_review_items_open{kind="TECHNICAL",step="capture_payment"} 1.0',
        'orders_webhook_inbox{source="stripe",state="waiting"} 1.0',
    ):
        assert line in text, line
    for name in ("orders_outbox_oldest_submitted_seconds", "orders_webhook_inbox_oldest_waiting_seconds"):
        found = re.search(rf"^{name} (\S+)$", text, re.MULTILINE)
        assert found is not None
        assert float(found[1]) > 3600
    assert accepted["order_id"] not in text


async def test_metrics_without_a_database_are_counters_alone(
    make_api: MakeApi, unreachable: Database, no_temporal: Client
) -> None:
    api = await make_api(unreachable, no_temporal)
    async with asyncio.timeout(10):
        text = await (await api.operator.get("/metrics")).text()
    assert "orders_database_up 0.0" in text
    assert "orders_by_status" not in text


async def test_each_port_describes_its_routes(lonely_api: Api) -> None:
    for http, operations in ((lonely_api.shopper, SHOPPER_OPERATIONS), (lonely_api.operator, OPERATOR_OPERATIONS)):
        described = await (await http.get("/openapi.json")).json()
        told = {(method.upper(), path) for path, methods in described["paths"].items() for method in methods}
        assert told == {(operation.method, operation.path) for operation in operations}
        schemas = described["components"]["schemas"]
        references = set(re.findall(r'"#/components/schemas/([^"]+)"', json.dumps(described)))
        assert references <= set(schemas)
        for methods in described["paths"].values():
            for operation in methods.values():
                assert {"405", "500"} <= set(operation["responses"])
                if "requestBody" in operation:
                    assert {"400", "413"} <= set(operation["responses"])
