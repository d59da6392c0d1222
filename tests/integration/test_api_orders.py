"""Orders over HTTP: taken in once, refused with a problem that says why, never waiting for Temporal."""

import asyncio
import json
from typing import Any

import pytest
from sqlalchemy import select
from temporalio.client import Client, WorkflowExecutionStatus

from adapters.database import Database
from adapters.tables import outbox
from tests.builders import an_order_document, the_fixture_products, unique
from tests.integration.conftest import Api, MakeApi
from tests.polling import eventually


async def refused(api: Api, status: int, kind: str, **request: Any) -> dict[str, Any]:
    """The problem document that answers this request."""
    request.setdefault("headers", {}).setdefault("Idempotency-Key", unique("key"))
    answer = await api.shopper.post("/orders", **request)
    problem: dict[str, Any] = json.loads(await answer.read())
    assert (answer.status, answer.content_type) == (status, "application/problem+json"), problem
    assert problem["type"] == f"/problems/{kind}"
    assert problem["status"] == status
    assert problem["instance"] == "/orders"
    return problem


async def test_an_order_is_accepted_and_its_saga_started_after_the_answer(
    api: Api, database: Database, sagas: Client
) -> None:
    await the_fixture_products(database)
    document = an_order_document(lines=[{"sku": "A", "quantity": 2}])
    answer = await api.shopper.post(
        "/orders", json=document, headers={"Idempotency-Key": unique("key"), "X-Correlation-Id": "cart-17"}
    )
    body = await answer.json()
    order_id = body["order_id"]
    assert (answer.status, body["status"]) == (202, "PENDING")
    assert answer.headers["Location"] == body["links"]["self"] == f"/orders/{order_id}"
    assert body["links"]["web_ui"].endswith(f"/namespaces/default/workflows/order-{order_id}")
    assert answer.headers["X-Correlation-Id"] == "cart-17"
    await api.starts.close()
    saga = await sagas.get_workflow_handle(f"order-{order_id}").describe()
    assert saga.status is WorkflowExecutionStatus.RUNNING
    assert await saga.static_summary() == f"Order {order_id}: 60.00 EUR"
    async with database.snapshot() as connection:
        (row,) = (await connection.execute(select(outbox))).all()
    assert row.published_at is not None
    assert row.correlation_id == "cart-17"


async def test_the_order_and_its_timeline_can_be_looked_at(lonely_api: Api, database: Database) -> None:
    await the_fixture_products(database)
    _, accepted = await lonely_api.order(an_order_document(), unique("key"))
    seen = await (await lonely_api.shopper.get(accepted["links"]["self"])).json()
    assert (seen["order_id"], seen["status"], seen["total"]) == (accepted["order_id"], "PENDING", 5000)
    assert seen["payment"]["status"] == "NONE"
    assert "Lovelace" not in json.dumps(seen)
    timeline = await lonely_api.shopper.get(accepted["links"]["timeline"])
    assert (timeline.status, await timeline.json()) == (200, [])


async def test_orders_are_accepted_at_once_while_temporal_is_down(lonely_api: Api, database: Database) -> None:
    await the_fixture_products(database)
    async with asyncio.timeout(2):
        status, accepted = await lonely_api.order(an_order_document(), unique("key"))
    assert (status, accepted["status"]) == (202, "PENDING")
    await lonely_api.starts.close()
    async with database.snapshot() as connection:
        (row,) = (await connection.execute(select(outbox))).all()
    assert (row.published_at, row.last_error) == (None, "TemporalUnavailable")


async def test_a_correlation_id_that_is_no_id_is_replaced(lonely_api: Api) -> None:
    answer = await lonely_api.shopper.get("/livez", headers={"X-Correlation-Id": "x" * 129})
    assert len(answer.headers["X-Correlation-Id"]) == 36


async def test_a_reused_key_means_the_same_order_or_an_error(lonely_api: Api, database: Database) -> None:
    """S82: same meaning, same order; another body, no effect."""
    await the_fixture_products(database)
    key, document = unique("key"), an_order_document()
    status, first = await lonely_api.order(document, key)
    assert status == 202
    turned = dict(reversed(document.items())) | {"lines": [{"quantity": 1.0, "sku": sku} for sku in "AB"]}
    status, again = await lonely_api.order(turned, key)
    assert (status, again["order_id"]) == (200, first["order_id"])
    other = an_order_document(lines=[{"sku": "A", "quantity": 2}])
    await refused(lonely_api, 422, "key-reused", json=other, headers={"Idempotency-Key": key})
    answer = await lonely_api.shopper.post(
        "/orders", json=an_order_document(customer_id="grace"), headers={"X-Idempotency-Key": key}
    )
    assert answer.status == 202
    assert (await answer.json())["order_id"] != first["order_id"]


async def test_one_character_is_a_key(lonely_api: Api, database: Database) -> None:
    """S82."""
    await the_fixture_products(database)
    status, _ = await lonely_api.order(an_order_document(), "k")
    assert status == 202


@pytest.mark.usefixtures("nothing_written")
@pytest.mark.parametrize("key", ["", "k" * 256, "k" * 300, "two words", "schlüssel"])
async def test_a_key_that_is_none_is_refused(refusing_api: Api, key: str) -> None:
    """S82: empty, too long, or not made of visible characters."""
    await refused(refusing_api, 400, "invalid-key", json=an_order_document(), headers={"Idempotency-Key": key})


@pytest.mark.usefixtures("nothing_written")
async def test_a_missing_key_and_two_different_keys_are_refused(refusing_api: Api) -> None:
    answer = await refusing_api.shopper.post("/orders", json=an_order_document())
    assert (answer.status, (await answer.json(content_type=None))["type"]) == (400, "/problems/invalid-key")
    two = {"Idempotency-Key": "one", "X-Idempotency-Key": "other"}
    await refused(refusing_api, 400, "invalid-key", json=an_order_document(), headers=two)


@pytest.mark.usefixtures("nothing_written")
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"nonsense",
        b'{"customer_id": "a", "customer_id": "b"}',
        b'{"points": NaN}',
        b'{"points": -Infinity}',
        b'{"note": "\xff\xfe"}',
        b'\xef\xbb\xbf{"points": 1}',
        b'{"points": ' + b"9" * 5000 + b"}",
        b"[" * 100_000,
    ],
)
async def test_what_is_not_json_is_a_bad_request(refusing_api: Api, body: bytes) -> None:
    await refused(refusing_api, 400, "malformed-json", data=body, headers={"Content-Type": "application/json"})


@pytest.mark.usefixtures("nothing_written")
@pytest.mark.parametrize(
    "change",
    [
        *({"lines": [{"sku": "A", "quantity": quantity}]} for quantity in (-1, 0, 1.5, 2**31, 10**18, "1", None, True)),
        {"lines": [{"sku": "A", "quantity": 1}, {"sku": "B", "quantity": -1}]},
        {"lines": [{"sku": "A", "quantity": 1, "unit_price": 1}]},
        {"lines": []},
        {"lines": [{"sku": "A", "quantity": 1}] * 501},
        *({"points": points} for points in (1.0, "5", True, -1)),
        *({"store_credit": credit} for credit in (0.5, "5", False)),
        *({"currency": currency} for currency in ("eur", "XXX", "")),
        {"email": "nobody"},
        {"note": "\x00"},
        {"note": "\ud800"},
        {"customer_id": "a/b"},
        {"colour\ud800": "blue"},
        {"shipping_address": None},
        {"expected_total": 4999},
    ],
)
async def test_an_order_that_makes_no_sense_is_refused_whole(refusing_api: Api, change: dict[str, Any]) -> None:
    """S45, S51: every field at fault is named, no value is repeated, nothing is written."""
    body = json.dumps(an_order_document(**change)).encode()
    headers = {"Content-Type": "application/json"}
    answer = await refusing_api.shopper.post("/orders", data=body, headers={**headers, "Idempotency-Key": "k"})
    problem = json.loads(await answer.read())
    assert answer.status == 422, problem
    assert problem["errors"]
    assert "Lovelace" not in json.dumps(problem)


@pytest.mark.usefixtures("nothing_written")
async def test_other_media_types_methods_paths_and_sizes_are_refused(refusing_api: Api) -> None:
    text = {"Content-Type": "text/plain"}
    await refused(refusing_api, 415, "unsupported-media-type", data=b"{}", headers=text)
    large = {"Content-Type": "application/json"}
    await refused(refusing_api, 413, "body-too-large", data=b" " * (1024 * 1024 + 1), headers=large)
    for method, path, status in (("GET", "/orders", 405), ("DELETE", "/orders/x", 405), ("GET", "/nothing", 404)):
        answer = await refusing_api.shopper.request(method, path)
        assert (answer.status, answer.content_type) == (status, "application/problem+json")
    assert (await refusing_api.shopper.get("/orders")).headers["Allow"] == "POST"


@pytest.mark.usefixtures("nothing_written")
@pytest.mark.parametrize("order_id", ["nobody", "%00", "a" * 300, "..", "%ff"])
async def test_an_unknown_order_is_not_found(refusing_api: Api, order_id: str) -> None:
    for method, path in (("GET", ""), ("GET", "/timeline"), ("POST", "/cancel")):
        answer = await refusing_api.shopper.request(method, f"/orders/{order_id}{path}")
        assert (answer.status, answer.content_type) == (404, "application/problem+json")


async def test_five_hundred_lines_fit(lonely_api: Api, database: Database) -> None:
    """S78: within the limit."""
    await the_fixture_products(database)
    lines = [{"sku": "AB"[number % 2], "quantity": 1} for number in range(500)]
    status, accepted = await lonely_api.order(an_order_document(lines=lines), unique("key"))
    assert status == 202, accepted


async def test_a_failed_first_try_leaves_the_key_free(
    make_api: MakeApi, database: Database, no_temporal: Client
) -> None:
    """S83: a 503 is not remembered."""
    await the_fixture_products(database)
    unreachable = Database("postgresql://nobody@127.0.0.1:1/nothing", application="tests")
    key, document = unique("key"), an_order_document()
    async with asyncio.timeout(10):
        status, problem = await (await make_api(unreachable, no_temporal)).order(document, key)
    assert (status, problem["type"]) == (503, "/problems/database-unavailable")
    api = await make_api(database, no_temporal)
    status, first = await api.order(document, key)
    assert status == 202
    status, second = await api.order(document, key)
    assert (status, second["order_id"]) == (200, first["order_id"])
    await unreachable.close()


async def test_fifty_requests_under_one_key_make_one_order(
    make_api: MakeApi, database: Database, sagas: Client
) -> None:
    """S85: on two replicas at once."""
    await the_fixture_products(database)
    replicas = [await make_api(database, sagas) for _ in range(2)]
    key, document = unique("key"), an_order_document()
    answers = await asyncio.gather(*(replicas[number % 2].order(document, key) for number in range(50)))
    assert sorted(status for status, _ in answers) == [200] * 49 + [202]
    (order_id,) = {body["order_id"] for _, body in answers}

    for replica in replicas:
        await replica.starts.close()

    async def runs() -> int:
        return (await sagas.count_workflows(f"WorkflowId = 'order-{order_id}'")).count

    assert await eventually(runs) == 1
