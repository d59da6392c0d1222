"""The operator's refund route."""

from typing import Annotated

import structlog
from aiohttp import web
from pydantic import BaseModel, ConfigDict, Field

from adapters.orders import read_order
from adapters.updates import UpdateRefused
from api.bodies import actor, path_id, read_body, required_idempotency_key
from api.deps import deps
from api.operations import Header, Operation, json_response
from api.orders import no_such_order
from api.problems import Problem
from domain.intake import ShortText
from domain.keys import refund_id_for
from domain.messages import RefundAsked
from domain.money import LARGEST_CHARGE_MINOR
from domain.order import OrderStatus, RefundRefusal
from domain.views import OrderView
from events.refunds import KEY_REUSED, request_refund

log = structlog.get_logger(__name__)

#: What is wrong with the request itself, and not with the order's state.
_UNPROCESSABLE = frozenset({KEY_REUSED, RefundRefusal.ABOVE_REST.value})


class RefundRequest(BaseModel):
    """How much to give back, in the currency's smallest unit; without an amount all that is left."""

    model_config = ConfigDict(extra="forbid")

    amount: Annotated[int, Field(strict=True, gt=0, le=LARGEST_CHARGE_MINOR)] | None = None
    reason: ShortText


class RefundAnswer(BaseModel):
    """The refund is taken; the provider decides when the money is back. `refund_id` names it in the timeline."""

    order_id: str
    refund_id: str
    amount: int
    status: OrderStatus


async def post_refund(request: web.Request) -> web.Response:
    """Takes a refund of captured money. The same key is the same refund."""
    name = refund_id_for(required_idempotency_key(request))
    body = await read_body(request, RefundRequest)
    order = await _order(request)
    asked = RefundAsked(refund_id=name, amount=body.amount, actor=actor(request, "operator"), reason=body.reason)
    try:
        opened = await request_refund(deps(request).client, order.order_id, order.payment.id, asked)
    except UpdateRefused as refusal:
        if refusal.kind in _UNPROCESSABLE:
            raise Problem(422, refusal.kind, str(refusal)) from None
        raise
    log.info("refund_taken", order_id=order.order_id, refund_id=name, amount=opened.amount, actor=asked.actor)
    now = await _order(request)
    answer = RefundAnswer(order_id=order.order_id, refund_id=name, amount=opened.amount, status=now.status)
    return json_response(answer, status=202)


async def _order(request: web.Request) -> OrderView:
    order_id = path_id(request, "order_id")
    order = await read_order(deps(request).database, order_id) if order_id else None
    if order is None:
        raise no_such_order()
    return order


OPERATIONS = (
    Operation(
        "POST",
        "/ops/orders/{order_id}/refund",
        post_refund,
        "Give captured money back",
        {202: RefundAnswer},
        (400, 404, 409, 413, 415, 422, 503),
        body=RefundRequest,
        headers=(
            Header(
                "Idempotency-Key", "The same key is the same refund. X-Idempotency-Key is taken as well.", 255, True
            ),
            Header("X-Actor", "Who acts; `operator` when missing.", 128),
        ),
    ),
)
