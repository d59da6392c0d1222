"""Cancelling over HTTP: the saga's word, or an honest "no answer"."""

import asyncio
import json
from typing import Any

import pytest
from temporalio.client import Client

from adapters.database import Database
from domain.order import OrderStatus
from tests.builders import an_accepted_order, unique
from tests.integration.conftest import Api
from tests.integration.sagas import a_closed_order, a_running_order, move, seen
from tests.polling import eventually
from workflows.names import order_workflow_id

CONFIRMED = (OrderStatus.AWAITING_PAYMENT, OrderStatus.CONFIRMED)
CANCELLED = (OrderStatus.COMPENSATING, OrderStatus.CANCELLED_COMPENSATED)


async def cancel(api: Api, order_id: str, **request: Any) -> tuple[int, dict[str, Any], Any]:
    answer = await api.shopper.post(f"/orders/{order_id}/cancel", **request)
    return answer.status, json.loads(await answer.read()), answer.headers


async def test_an_open_order_takes_the_cancel(api: Api, database: Database, sagas: Client) -> None:
    order_id, saga = await a_running_order(database, sagas)
    status, body, _ = await cancel(api, order_id)
    assert (status, body) == (202, {"order_id": order_id, "status": "AWAITING_PAYMENT"})
    status, _, _ = await cancel(api, order_id, json={"reason": "I am Ada"}, headers={"X-Actor": "desk-3"})
    assert status == 202
    assert await seen(saga) == ["cancel_order customer", "cancel_order desk-3"]
    history = (await saga.fetch_history()).to_json()
    assert "I am Ada" not in history


async def test_the_same_key_is_the_same_cancel(api: Api, database: Database, sagas: Client) -> None:
    order_id, saga = await a_running_order(database, sagas)
    headers = {"Idempotency-Key": unique("cancel")}
    first = await cancel(api, order_id, headers=headers)
    again = await cancel(api, order_id, headers=headers)
    assert first[:2] == again[:2]
    assert await seen(saga) == ["cancel_order customer"]


async def test_past_the_pivot_it_is_too_late(api: Api, database: Database, sagas: Client) -> None:
    order_id, _ = await a_running_order(database, sagas, "TooLate")
    status, problem, _ = await cancel(api, order_id)
    assert (status, problem["type"], problem["detail"]) == (409, "/problems/too-late", "in the saga's own words")


@pytest.mark.parametrize(("path", "expected"), [(CONFIRMED, 409), (CANCELLED, 202), ((OrderStatus.REJECTED,), 202)])
async def test_a_closed_order_answers_from_its_row(
    api: Api, lonely_api: Api, database: Database, sagas: Client, path: tuple[OrderStatus, ...], expected: int
) -> None:
    order_id = await a_closed_order(database, sagas, *path)
    for one in (api, lonely_api):
        status, body, _ = await cancel(one, order_id)
        assert status == expected
        assert body.get("type") == ("/problems/too-late" if expected == 409 else None)
        assert body["status"] == (409 if expected == 409 else path[-1])


async def test_an_order_that_ends_while_it_is_asked_answers_from_its_row(
    api: Api, database: Database, sagas: Client
) -> None:
    order_id, saga = await a_running_order(database, sagas, "silent")
    asking = asyncio.create_task(cancel(api, order_id))

    async def asked() -> bool:
        events = (await saga.fetch_history()).events
        return any(event.HasField("workflow_execution_update_accepted_event_attributes") for event in events)

    await eventually(asked)
    await move(database, order_id, *CANCELLED)
    await saga.signal("finish")
    status, body, _ = await asking
    assert (status, body["order_id"]) == (202, order_id)


async def test_an_order_that_nobody_has_started_yet_is_started_and_cancelled(
    api: Api, database: Database, sagas: Client
) -> None:
    order_id = await an_accepted_order(database)
    status, _, _ = await cancel(api, order_id)
    assert status == 202
    assert await seen(sagas.get_workflow_handle(order_workflow_id(order_id))) == ["cancel_order customer"]


async def test_a_saga_that_is_gone_without_a_result_is_no_answer(api: Api, database: Database, sagas: Client) -> None:
    order_id, saga = await a_running_order(database, sagas)
    await saga.terminate()
    status, problem, headers = await cancel(api, order_id)
    assert (status, problem["type"]) == (503, "/problems/no-answer")
    assert headers["Retry-After"] == "2"


async def test_a_saga_that_does_not_answer_in_five_seconds_is_no_answer(
    api: Api, database: Database, sagas: Client
) -> None:
    order_id, saga = await a_running_order(database, sagas, "silent")
    async with asyncio.timeout(8):
        status, problem, headers = await cancel(api, order_id)
    assert (status, problem["type"], headers["Retry-After"]) == (503, "/problems/no-answer", "2")
    await saga.signal("finish")


async def test_without_temporal_there_is_no_answer(lonely_api: Api, database: Database) -> None:
    order_id = await an_accepted_order(database)
    async with asyncio.timeout(8):
        status, problem, headers = await cancel(lonely_api, order_id)
    assert (status, problem["type"], headers["Retry-After"]) == (503, "/problems/no-answer", "2")


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        ({"json": {"reason": 5}}, 422),
        ({"json": {"why": "x"}}, 422),
        ({"json": []}, 422),
        ({"data": b"{"}, 415),
        ({"data": b"{", "headers": {"Content-Type": "application/json"}}, 400),
        ({"headers": {"X-Actor": "two words"}}, 400),
        ({"headers": {"Idempotency-Key": ""}}, 400),
    ],
)
async def test_a_bad_cancel_reaches_nobody(
    api: Api, database: Database, sagas: Client, request_: dict[str, Any], expected: int
) -> None:
    order_id, saga = await a_running_order(database, sagas)
    status, _, headers = await cancel(api, order_id, **request_)
    assert (status, headers["Content-Type"]) == (expected, "application/problem+json")
    assert await seen(saga) == []
