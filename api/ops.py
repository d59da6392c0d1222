"""The operator's routes: decide, redrive, stock and customers. Only on the operator port."""

from typing import Annotated, Literal

import structlog
from aiohttp import web
from pydantic import BaseModel, BeforeValidator, ConfigDict, TypeAdapter, ValidationError, WithJsonSchema

from adapters.loyalty import CustomerLevel, CustomerView, put_customer, read_customer
from adapters.orders import read_order
from adapters.stock import StockBelowReserved, StockLevel, StockView, put_stock, read_stock
from api.bodies import actor, idempotency_key, path_id, read_body
from api.deps import deps
from api.operations import Header, Operation, json_response
from api.orders import no_such_order
from api.problems import FieldError, Problem, not_found
from domain.intake import CustomerId, ShortText, Sku
from domain.keys import PARKING, Step
from domain.messages import DecideReview, RedriveStep
from domain.order import OrderStatus, RedriveAction
from domain.views import OrderView
from events.requests import decide_review, redrive

log = structlog.get_logger(__name__)

_SKU: TypeAdapter[str] = TypeAdapter(Sku)
_CUSTOMER: TypeAdapter[str] = TypeAdapter(CustomerId)


def _can_be_parked(step: object) -> object:
    if step not in PARKING:
        raise ValueError(f"one of {', '.join(PARKING)}")
    return step


ParkedAt = Annotated[
    Step, BeforeValidator(_can_be_parked), WithJsonSchema({"type": "string", "enum": [step.value for step in PARKING]})
]


class _OperatorRequest(BaseModel):
    model_config = ConfigDict(extra="forbid")


class ReviewRequest(_OperatorRequest):
    """A reviewer's decision about an order that waits for one."""

    decision: Literal["approve", "reject"]
    reason: ShortText


class RedriveRequest(_OperatorRequest):
    """What a parked step should do. `item` tells the shipments of one order apart (their warehouse)."""

    step: ParkedAt
    action: RedriveAction
    reason: ShortText
    item: ShortText | None = None


class OperatorAnswer(BaseModel):
    """The decision has arrived; `status` is the order's status of now."""

    order_id: str
    status: OrderStatus


async def post_review(request: web.Request) -> web.Response:
    """Hands a reviewer's decision to the saga that waits for it."""
    body = await read_body(request, ReviewRequest)
    message = DecideReview(approve=body.decision == "approve", actor=actor(request, "operator"), reason=body.reason)
    order = await _order(request)
    await decide_review(deps(request).client, order.order_id, message, key=idempotency_key(request))
    return await _accepted(request, "decide_review", message)


async def post_redrive(request: web.Request) -> web.Response:
    """Hands an operator's decision to a parked step: of the saga, or of what works on an order after its end."""
    body = await read_body(request, RedriveRequest)
    order = await _order(request)
    item = body.item or _only_refund(order, body.step)
    message = RedriveStep(
        step=body.step, action=body.action, actor=actor(request, "operator"), reason=body.reason, item=item
    )
    await redrive(deps(request).client, order.order_id, order.payment.id, message, key=idempotency_key(request))
    return await _accepted(request, "redrive_step", message)


def _only_refund(order: OrderView, step: Step) -> str | None:
    """Each refund is a workflow of its own; one at a time is under way."""
    parked = [item.item for item in order.needs_review if step is Step.REFUND_PAYMENT and item.step == step]
    return next(iter(parked), None)


async def _order(request: web.Request) -> OrderView:
    order_id = path_id(request, "order_id")
    order = await read_order(deps(request).database, order_id) if order_id else None
    if order is None:
        raise no_such_order()
    return order


async def _accepted(request: web.Request, name: str, message: DecideReview | RedriveStep) -> web.Response:
    now = await _order(request)
    log.info(f"{name}_accepted", order_id=now.order_id, actor=message.actor)
    return json_response(OperatorAnswer(order_id=now.order_id, status=now.status), status=202)


async def put_sku(request: web.Request) -> web.Response:
    """Sets price and pieces on hand in one warehouse; the difference is a movement."""
    sku = _checked(request, "sku", _SKU)
    level = await read_body(request, StockLevel)
    try:
        return json_response(await put_stock(deps(request).inventory, sku, level, actor(request, "operator")))
    except StockBelowReserved:
        detail = "open orders have more than this reserved in this warehouse"
        raise Problem(409, "below-reserved", detail) from None


async def get_sku(request: web.Request) -> web.Response:
    """Price and pieces of one SKU."""
    sku = request.match_info["sku"]
    view = await read_stock(deps(request).inventory, sku) if _is(sku, _SKU) else None
    if view is None:
        raise not_found("there is no such SKU")
    return json_response(view)


async def put_balances(request: web.Request) -> web.Response:
    """Sets points and store credit; the differences are movements."""
    customer_id = _checked(request, "customer_id", _CUSTOMER)
    level = await read_body(request, CustomerLevel)
    return json_response(await put_customer(deps(request).loyalty, customer_id, level, actor(request, "operator")))


async def get_balances(request: web.Request) -> web.Response:
    """Points and store credit of one customer; zero for one that was never given any."""
    customer_id = request.match_info["customer_id"]
    if not _is(customer_id, _CUSTOMER):
        raise not_found("this cannot be a customer's id")
    return json_response(await read_customer(deps(request).loyalty, customer_id))


def _is(value: str, kind: TypeAdapter[str]) -> bool:
    try:
        kind.validate_python(value)
    except ValidationError:
        return False
    return True


def _checked(request: web.Request, name: str, kind: TypeAdapter[str]) -> str:
    value = request.match_info[name]
    if not _is(value, kind):
        wrong = FieldError(field=name, detail="letters, digits, dot, dash and underscore only")
        raise Problem(422, "invalid-request", f"the {name} in the path cannot be one", errors=[wrong])
    return value


_ACTOR = Header("X-Actor", "Who acts; `operator` when missing.", 128)
_KEY = Header("Idempotency-Key", "The same key is the same request, however often it is sent.", 255)
_WRITE = (400, 413, 415, 422, 503)

OPERATIONS = (
    Operation(
        "POST",
        "/ops/orders/{order_id}/review",
        post_review,
        "Approve or reject an order that waits for a reviewer",
        {202: OperatorAnswer},
        (404, 409, *_WRITE),
        body=ReviewRequest,
        headers=(_KEY, _ACTOR),
    ),
    Operation(
        "POST",
        "/ops/orders/{order_id}/redrive",
        post_redrive,
        "Retry, skip or compensate a parked step",
        {202: OperatorAnswer},
        (404, 409, *_WRITE),
        body=RedriveRequest,
        headers=(_KEY, _ACTOR),
    ),
    Operation(
        "PUT",
        "/ops/stock/{sku}",
        put_sku,
        "Set price and stock of a SKU in one warehouse",
        {200: StockView},
        (409, *_WRITE),
        body=StockLevel,
        headers=(_ACTOR,),
    ),
    Operation("GET", "/ops/stock/{sku}", get_sku, "Price and stock of a SKU", {200: StockView}, (404, 503)),
    Operation(
        "PUT",
        "/ops/customers/{customer_id}",
        put_balances,
        "Set a customer's points and store credit",
        {200: CustomerView},
        _WRITE,
        body=CustomerLevel,
        headers=(_ACTOR,),
    ),
    Operation(
        "GET",
        "/ops/customers/{customer_id}",
        get_balances,
        "A customer's points and store credit",
        {200: CustomerView},
        (404, 503),
    ),
)
