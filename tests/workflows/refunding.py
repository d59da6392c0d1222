"""Captured money and what becomes of it: an operator's refunds, and the words of the shopper's bank."""

from typing import Any

from tests.baskets import Basket, fresh
from tests.workflows.till import Till
from workflows.names import refund_workflow_id

#: The gateway's events about a dispute.
CREATED, CLOSED = "charge.dispute.created", "charge.dispute.closed"


async def sold(till: Till) -> Basket:
    """A confirmed order, 50.00 captured."""
    basket = await till.shop.basket()
    await till.pay_at_once(basket)
    await till.confirmed(basket)
    return basket


async def refund(till: Till, basket: Basket, amount: int | None = None, *, key: str | None = None) -> tuple[int, str]:
    """Asks the operator's door; the answer's status and its problem's type, if it is one."""
    body: dict[str, Any] = {"reason": "a broken cup"} | ({"amount": amount} if amount else {})
    headers = {"Idempotency-Key": key or fresh("refund"), "X-Actor": "olga"}
    path = f"/ops/orders/{basket.order_id}/refund"
    answer = await till.shop.operator.post(path, json=body, headers=headers)
    return answer.status, str((await answer.json()).get("type", "")).removeprefix("/problems/")


async def over(till: Till, basket: Basket, key: str) -> None:
    """Until the refund's workflow has ended."""
    await till.shop.client.get_workflow_handle(refund_workflow_id(basket.order_id, key)).result()
