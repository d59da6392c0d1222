"""The operator's port: decisions reach the saga, refusals come back in its words, shelves and balances are set."""

import json
from typing import Any

import pytest
from sqlalchemy import insert, select, update
from temporalio.client import Client

from adapters.database import Database
from adapters.tables import payments, points_movements, stock, stock_movements
from api.app import OPERATOR_OPERATIONS
from domain.messages import MoneyInput
from tests.builders import a_product, an_accepted_order
from tests.integration.conftest import Api
from tests.integration.sagas import a_running_order, seen
from workflows.names import Queue, money_workflow_id

REDRIVE = {"step": "capture_payment", "action": "retry", "reason": "the gateway is back"}
REVIEW = {"decision": "reject", "reason": "stolen card"}
LEVEL = {"warehouse": "main", "on_hand": 7, "unit_price": 3000, "currency": "EUR"}


async def ask(api: Api, method: str, path: str, **request: Any) -> tuple[int, Any]:
    answer = await api.operator.request(method, path, **request)
    return answer.status, json.loads(await answer.read())


async def test_decisions_reach_the_saga_with_who_made_them(api: Api, database: Database, sagas: Client) -> None:
    order_id, saga = await a_running_order(database, sagas)
    status, body = await ask(api, "POST", f"/ops/orders/{order_id}/review", json=REVIEW, headers={"X-Actor": "eve"})
    assert (status, body) == (202, {"order_id": order_id, "status": "PENDING"})
    status, _ = await ask(api, "POST", f"/ops/orders/{order_id}/redrive", json=REDRIVE)
    assert status == 202
    assert await seen(saga) == ["reject eve stolen card", "capture_payment retry operator the gateway is back"]


@pytest.mark.parametrize(
    ("refusal", "kind"),
    [
        ("NoSuchWait", "no-such-wait"),
        ("AlreadyDecided", "already-decided"),
        ("NotAllowed", "not-allowed"),
        ("OutcomeUnknown", "outcome-unknown"),
    ],
)
async def test_the_sagas_refusal_is_a_conflict(
    api: Api, database: Database, sagas: Client, refusal: str, kind: str
) -> None:
    order_id, _ = await a_running_order(database, sagas, refusal)
    for path, body in (("review", REVIEW), ("redrive", REDRIVE)):
        status, problem = await ask(api, "POST", f"/ops/orders/{order_id}/{path}", json=body)
        assert (status, problem["type"], problem["detail"]) == (409, f"/problems/{kind}", "in the saga's own words")


async def test_an_order_without_a_running_saga_waits_for_nothing(api: Api, database: Database) -> None:
    order_id = await an_accepted_order(database)
    status, problem = await ask(api, "POST", f"/ops/orders/{order_id}/redrive", json=REDRIVE)
    assert (status, problem["type"]) == (409, "/problems/no-such-wait")
    assert (await ask(api, "POST", "/ops/orders/nobody/redrive", json=REDRIVE))[0] == 404


async def test_a_decision_about_late_money_goes_to_its_own_workflow(
    api: Api, database: Database, sagas: Client
) -> None:
    order_id, saga = await a_running_order(database, sagas)
    async with database.begin() as connection:
        row = {"order_id": order_id, "intent_id": f"pi_{order_id}", "currency": "EUR", "amount": 5000}
        await connection.execute(insert(payments).values(row))
    workflow_id = money_workflow_id(f"pi_{order_id}")
    # The stand-in for orders, under the other id: what counts is who was asked.
    money = await sagas.start_workflow(
        "OrderWorkflow",
        MoneyInput(order_id=order_id, intent_id=f"pi_{order_id}"),
        id=workflow_id,
        task_queue=Queue.ORDERS,
    )
    body = {"step": "settle_late_money", "action": "skip", "reason": "paid back by hand"}
    status, _ = await ask(api, "POST", f"/ops/orders/{order_id}/redrive", json=body)
    assert status == 202
    assert await seen(money) == ["settle_late_money skip operator paid back by hand"]
    assert await seen(saga) == []


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("review", {}),
        ("review", REVIEW | {"decision": "maybe"}),
        ("review", REVIEW | {"reason": ""}),
        ("redrive", REDRIVE | {"step": "dance"}),
        ("redrive", REDRIVE | {"action": "undo"}),
        ("redrive", REDRIVE | {"force": True}),
        ("redrive", []),
    ],
)
async def test_a_decision_that_makes_no_sense_is_refused(
    api: Api, database: Database, sagas: Client, path: str, body: Any
) -> None:
    order_id, saga = await a_running_order(database, sagas)
    status, problem = await ask(api, "POST", f"/ops/orders/{order_id}/{path}", json=body)
    assert (status, problem["type"]) == (422, "/problems/invalid-request")
    assert await seen(saga) == []


async def test_stock_is_set_and_the_difference_is_a_movement(lonely_api: Api, database: Database) -> None:
    status, _ = await ask(lonely_api, "PUT", "/ops/stock/A", json=LEVEL)
    assert status == 200
    status, view = await ask(lonely_api, "PUT", "/ops/stock/A", json=LEVEL | {"on_hand": 4}, headers={"X-Actor": "eve"})
    warehouse = {"warehouse": "main", "on_hand": 4, "reserved": 0, "available": 4}
    assert view == {"sku": "A", "unit_price": 3000, "currency": "EUR", "warehouses": [warehouse]}
    assert await ask(lonely_api, "GET", "/ops/stock/A") == (200, view)
    async with database.snapshot() as connection:
        moved = await connection.execute(select(stock_movements.c.quantity, stock_movements.c.actor))
        assert sorted(tuple(row) for row in moved) == [(-3, "eve"), (7, "operator")]


async def test_stock_below_what_is_reserved_is_a_conflict(lonely_api: Api, database: Database) -> None:
    await a_product(database, "A", on_hand=5)
    async with database.begin() as connection:
        await connection.execute(update(stock).values(reserved=3))
    status, problem = await ask(lonely_api, "PUT", "/ops/stock/A", json=LEVEL | {"on_hand": 2})
    assert (status, problem["type"]) == (409, "/problems/below-reserved")


async def test_balances_are_set_and_the_difference_is_a_movement(lonely_api: Api, database: Database) -> None:
    level = {"points": 500, "store_credit": {"EUR": 250}}
    status, view = await ask(lonely_api, "PUT", "/ops/customers/ada", json=level)
    assert (status, view) == (200, {"customer_id": "ada", **level})
    assert await ask(lonely_api, "GET", "/ops/customers/ada") == (200, view)
    async with database.snapshot() as connection:
        assert (await connection.execute(select(points_movements.c.amount))).scalars().all() == [500]


@pytest.mark.usefixtures("nothing_written")
@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/ops/stock/A", LEVEL | {"on_hand": -1}),
        ("/ops/stock/A", LEVEL | {"on_hand": 1.0}),
        ("/ops/stock/A", LEVEL | {"currency": "eur"}),
        ("/ops/stock/A", {}),
        ("/ops/stock/a%20b", LEVEL),
        ("/ops/stock/%00", LEVEL),
        ("/ops/customers/ada", {"points": "5"}),
        ("/ops/customers/ada", {"points": 5, "store_credit": {"XXX": 1}}),
        ("/ops/customers/%E2%82%AC", {"points": 5}),
    ],
)
async def test_a_level_that_makes_no_sense_is_refused(refusing_api: Api, path: str, body: dict[str, Any]) -> None:
    status, problem = await ask(refusing_api, "PUT", path, json=body)
    assert (status, problem["status"]) == (422, 422)


@pytest.mark.usefixtures("nothing_written")
async def test_what_was_never_set(refusing_api: Api) -> None:
    for path in ("/ops/stock/C", "/ops/stock/%00", "/ops/customers/%00"):
        assert (await ask(refusing_api, "GET", path))[0] == 404
    assert await ask(refusing_api, "GET", "/ops/customers/new") == (
        200,
        {"customer_id": "new", "points": 0, "store_credit": {}},
    )


async def test_the_operators_routes_do_not_exist_on_the_shoppers_port(refusing_api: Api) -> None:
    for operation in OPERATOR_OPERATIONS:
        if operation.path.startswith("/ops") or operation.path == "/metrics":
            answer = await refusing_api.shopper.request(operation.method, operation.path)
            assert (answer.status, answer.content_type) == (404, "application/problem+json"), operation.path
