"""The shopper's routes: take an order, show it, cancel it."""

import time
from typing import Annotated

import structlog
from aiohttp import web
from pydantic import BaseModel, ConfigDict, Field, RootModel

from adapters.orders import accept_order, read_order, read_timeline
from adapters.tracing import trace_accepted
from api.bodies import actor, idempotency_key, path_id, read_body, required_idempotency_key
from api.deps import deps
from api.edge import correlation_id
from api.operations import Header, Operation, json_response
from api.problems import Problem, intake_held, not_found, refused_at_the_door
from domain.errors import IntakeHeld
from domain.intake import IntakeProblem, OrderRequest, ShortText
from domain.messages import CancelAnswer, CancelOrder
from domain.order import OrderStatus
from domain.views import OrderView, TimelineLine
from events.requests import NoSuchOrder, cancel
from runtime.links import web_ui_link
from runtime.settings import Settings

log = structlog.get_logger(__name__)


class OrderLinks(BaseModel):
    """Where to look further. `web_ui` is the order's page in Temporal's Web UI."""

    self: str
    timeline: str
    web_ui: str


class AcceptedOrder(BaseModel):
    """The order is ours: from here on it ends confirmed or undone."""

    order_id: str
    status: OrderStatus
    links: OrderLinks


class Timeline(RootModel[list[TimelineLine]]):
    """What happened to an order, oldest first."""


class CancelRequest(BaseModel):
    """`reason` is the shopper's own words. They are not kept: they may hold personal data."""

    model_config = ConfigDict(extra="forbid")

    reason: Annotated[ShortText | None, Field(default=None)]


async def post_order(request: web.Request) -> web.Response:
    """Takes the order in; its saga starts after the answer. 202 at first, 200 when the key brings the same again."""
    needs, began_ns = deps(request), time.time_ns()
    try:
        key = required_idempotency_key(request)
        order = await read_body(request, OrderRequest)
        accepted = await accept_order(
            needs.database,
            order,
            caller=order.customer_id,
            key=key,
            correlation_id=correlation_id(request),
            points_currency=needs.settings.points_currency,
            default_payment_method=needs.settings.default_payment_method,
        )
    except IntakeHeld:
        needs.metrics.intake.labels("held").inc()
        raise intake_held() from None
    except (IntakeProblem, Problem) as refusal:
        needs.metrics.intake.labels("refused").inc()
        raise refused_at_the_door(refusal) if isinstance(refusal, IntakeProblem) else refusal from None
    needs.metrics.intake.labels("replayed" if accepted.replayed else "accepted").inc()
    log.info("order_accepted", order_id=accepted.order_id, replayed=accepted.replayed)
    if not accepted.replayed:
        trace_accepted(accepted.order_id, began_ns)
        needs.starts.offer(accepted.order_id)
    links = _links(accepted.order_id, needs.settings)
    return json_response(
        AcceptedOrder(order_id=accepted.order_id, status=accepted.status, links=links),
        status=200 if accepted.replayed else 202,
        headers={"Location": links.self},
    )


def _links(order_id: str, settings: Settings) -> OrderLinks:
    return OrderLinks(
        self=f"/orders/{order_id}",
        timeline=f"/orders/{order_id}/timeline",
        web_ui=web_ui_link(settings, order_id),
    )


async def get_order(request: web.Request) -> web.Response:
    """The order as its row tells it; needs no Temporal."""
    order_id = path_id(request, "order_id")
    view = await read_order(deps(request).database, order_id) if order_id else None
    if view is None:
        raise no_such_order()
    return json_response(view)


async def get_timeline(request: web.Request) -> web.Response:
    """What happened to the order; needs no Temporal."""
    order_id = path_id(request, "order_id")
    lines = await read_timeline(deps(request).database, order_id) if order_id else None
    if lines is None:
        raise no_such_order()
    return json_response(Timeline(lines))


async def post_cancel(request: web.Request) -> web.Response:
    """Asks the order's saga to cancel. Accepted means undone, always; an order already undone is accepted as it is."""
    needs = deps(request)
    order_id = path_id(request, "order_id")
    if order_id is None:
        raise no_such_order()
    await read_body(request, CancelRequest, optional=True)
    message = CancelOrder(actor=actor(request, "customer"))
    key = idempotency_key(request)
    try:
        answer = await cancel(needs.database, needs.client, order_id, message, key=key)
    except NoSuchOrder:
        raise no_such_order() from None
    log.info("cancel_accepted", order_id=order_id, status=answer.status)
    return json_response(answer, status=202)


def no_such_order() -> Problem:
    """404 for an order."""
    return not_found("there is no order with this id")


_KEY = Header("Idempotency-Key", "The same key gives the same order. X-Idempotency-Key is taken as well.", 255, True)
_UPDATE_KEY = Header("Idempotency-Key", "The same key is the same request, however often it is sent.", 255)
_CORRELATION = Header("X-Correlation-Id", "Stands in every log line about this order; made when missing.", 128)
_ACTOR = Header("X-Actor", "Who acts.", 128)

OPERATIONS = (
    Operation(
        "POST",
        "/orders",
        post_order,
        "Place an order",
        {202: AcceptedOrder, 200: AcceptedOrder},
        (400, 413, 415, 422, 503),
        body=OrderRequest,
        headers=(_KEY, _CORRELATION),
        response_headers={"Location": "The order's own address"},
    ),
    Operation("GET", "/orders/{order_id}", get_order, "Look at an order", {200: OrderView}, (404, 503)),
    Operation(
        "GET", "/orders/{order_id}/timeline", get_timeline, "What happened to an order", {200: Timeline}, (404, 503)
    ),
    Operation(
        "POST",
        "/orders/{order_id}/cancel",
        post_cancel,
        "Cancel an order",
        {202: CancelAnswer},
        (400, 404, 409, 413, 415, 422, 503),
        body=CancelRequest,
        body_required=False,
        headers=(_UPDATE_KEY, _ACTOR),
    ),
)
