"""Orders at the door and in the window: `accept_order` writes one, the rest reads them.

Whatever belongs to an accepted order is written in one transaction. The contact is written here and never read here.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from sqlalchemy import RowMapping, func, insert, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.database import Database
from adapters.holds import INTAKE_IS_HELD
from adapters.outbox import append_event
from adapters.tables import (
    idempotency_keys,
    order_contacts,
    order_lines,
    order_steps,
    orders,
    payments,
    products,
    redrives,
    review_items,
    shipments,
)
from domain.errors import IntakeHeld
from domain.events import EventType, OrderFacts, order_event
from domain.intake import (
    CataloguePrice,
    IntakeProblem,
    OrderRequest,
    PricedOrder,
    checked_key,
    fingerprint,
    price_order,
)
from domain.keys import order_id_for
from domain.messages import OrderResult
from domain.order import CLOSED_STATUSES, CancelReason, OrderStatus, PaymentStatus, StepState
from domain.views import (
    LineView,
    NeedsReview,
    OrderSummary,
    OrderView,
    PaymentSummary,
    ShipmentView,
    TimelineLine,
    is_undone,
    shopper_message,
)


@dataclass(frozen=True)
class Accepted:
    """The order is ours. `replayed`: it was before this call, and `status` is its status of now."""

    order_id: str
    status: OrderStatus
    replayed: bool


async def accept_order(
    database: Database,
    request: OrderRequest,
    *,
    caller: str,
    key: str,
    correlation_id: str,
    points_currency: str,
    default_payment_method: str,
) -> Accepted:
    """Takes the order in, priced from the catalogue of now, with the event that gets it going: one transaction.

    Idempotent by (caller, key): the same request again answers with the first order, at the first prices. Any number
    of them at once make one order.

    Raises IntakeProblem (`invalid-key`, `key-reused`, `price-changed`, `invalid-order`), IntakeHeld while an operator
    holds the intake (what was accepted before is answered all the same), or DatabaseUnavailable; nothing was written
    then, except that after DatabaseUnavailable the order may be there: the same key tells.
    """
    order_id = order_id_for(caller, checked_key(key))
    mark = fingerprint(request)
    async with database.begin() as connection:
        held = await _pass_one_by_one(connection, order_id)
        if earlier := await _earlier(connection, caller, key):
            if earlier["fingerprint"] != mark:
                raise IntakeProblem("key-reused", "this key belongs to an order with another content")
            return Accepted(earlier["order_id"], OrderStatus(earlier["status"]), replayed=True)
        if held:
            raise IntakeHeld(order_id)
        priced = price_order(request, await _catalogue(connection, request), points_currency=points_currency)
        facts = OrderFacts(
            order_id=order_id,
            customer_id=request.customer_id,
            currency=request.currency,
            total=priced.total,
            points=priced.points,
            store_credit=priced.store_credit,
            amount_due=priced.amount_due,
        )
        await connection.execute(
            insert(orders).values(
                **facts.model_dump(),
                status=OrderStatus.PENDING.value,
                stage=OrderStatus.PENDING.value,
                payment_method=request.payment_method or default_payment_method,
                channel=request.channel,
                correlation_id=correlation_id,
            )
        )
        await _insert_parts(connection, order_id, request, priced)
        await connection.execute(
            insert(idempotency_keys).values(caller=caller, key=key, fingerprint=mark, order_id=order_id)
        )
        event = order_event(EventType.ORDER_SUBMITTED, facts)
        await append_event(connection, event, correlation_id=correlation_id)
    return Accepted(order_id, OrderStatus.PENDING, replayed=False)


async def _pass_one_by_one(connection: AsyncConnection, order_id: str) -> bool:
    """Requests under one key pass here one after the other. Says, in the same breath, whether the intake is held."""
    lock = select(func.pg_advisory_xact_lock(func.hashtextextended(order_id, 0)), INTAKE_IS_HELD)
    return bool((await connection.execute(lock)).one()[1])


async def _earlier(connection: AsyncConnection, caller: str, key: str) -> RowMapping | None:
    """What this key was used for."""
    found = await connection.execute(
        select(idempotency_keys.c.fingerprint, orders.c.order_id, orders.c.status)
        .join_from(idempotency_keys, orders)
        .where(idempotency_keys.c.caller == caller, idempotency_keys.c.key == key)
    )
    return found.mappings().one_or_none()


async def _catalogue(connection: AsyncConnection, request: OrderRequest) -> dict[str, CataloguePrice]:
    rows = await connection.execute(select(products).where(products.c.sku.in_({line.sku for line in request.lines})))
    return {row.sku: CataloguePrice(row.unit_price, row.currency) for row in rows}


async def _insert_parts(connection: AsyncConnection, order_id: str, request: OrderRequest, priced: PricedOrder) -> None:
    await connection.execute(
        text("""
            INSERT INTO order_lines (order_id, line_no, sku, quantity, unit_price)
            SELECT :order_id, line_no, sku, quantity, unit_price
            FROM unnest(CAST(:skus AS text[]), CAST(:quantities AS integer[]), CAST(:prices AS bigint[]))
                 WITH ORDINALITY AS line (sku, quantity, unit_price, line_no)
        """),
        {
            "order_id": order_id,
            "skus": [line.sku for line in request.lines],
            "quantities": [line.quantity for line in request.lines],
            "prices": list(priced.unit_prices),
        },
    )
    await connection.execute(
        insert(order_contacts).values(
            order_id=order_id,
            email=request.email,
            shipping_address=request.shipping_address.model_dump(exclude_none=True),
            note=request.note,
        )
    )


async def read_order(database: Database, order_id: str) -> OrderView | None:
    """The order as of one instant, or None when there is no such order."""
    async with database.snapshot() as connection:
        order = (await _rows(connection, orders, order_id)).one_or_none()
        if order is None:
            return None
        lines = await _rows(connection, order_lines, order_id, order_lines.c.line_no)
        payment = (await _rows(connection, payments, order_id)).one_or_none()
        parcels = await _rows(connection, shipments, order_id, shipments.c.warehouse)
        reviews = await _rows(connection, review_items, order_id, review_items.c.review_id)
    status = OrderStatus(order["status"])
    reason = CancelReason(order["reason"]) if order["reason"] else None
    paid = _payment(payment, still_wanted=not (status in CLOSED_STATUSES or is_undone(status, reason)))
    return OrderView(
        order_id=order_id,
        customer_id=order["customer_id"],
        status=status,
        reason=reason,
        message=shopper_message(status, reason, paid.status, order["amount_due"]),
        currency=order["currency"],
        total=order["total"],
        amount_due=order["amount_due"],
        lines=[LineView(sku=row["sku"], quantity=row["quantity"], unit_price=row["unit_price"]) for row in lines],
        payment=paid,
        shipments=[
            ShipmentView(id=row["shipment_id"], warehouse=row["warehouse"], status=row["status"]) for row in parcels
        ],
        needs_review=[
            NeedsReview(
                step=row["step"], item=row["item"], kind=row["kind"], error=row["error"], since=row["opened_at"]
            )
            for row in reviews
            if row["closed_at"] is None
        ],
        created_at=order["created_at"],
        updated_at=order["updated_at"],
    )


def _payment(row: RowMapping | None, *, still_wanted: bool) -> PaymentSummary:
    """The shopper is asked to act only while the order still wants the payment."""
    if row is None:
        return PaymentSummary()
    return PaymentSummary(
        id=row["intent_id"],
        status=PaymentStatus(row["status"]),
        authorized=row["authorized"],
        captured=row["captured"],
        refunded=row["refunded"],
        next_action=row["next_action"] if still_wanted else None,
    )


async def read_timeline(database: Database, order_id: str) -> list[TimelineLine] | None:
    """What happened to the order, oldest first, or None when there is no such order. Needs no Temporal.

    A stamp that was written again, as by a further try, stands where it was last written; a tombstone where it has
    stood since.
    """
    async with database.snapshot() as connection:
        if (await _rows(connection, orders, order_id)).one_or_none() is None:
            return None
        stamps = await _rows(connection, order_steps, order_id)
        reviews = await _rows(connection, review_items, order_id)
        words = await _rows(connection, redrives, order_id)
    lines = [
        TimelineLine(
            at=row["at"] if row["state"] == StepState.UNDONE else row["last_at"],
            step=row["step"],
            item=row["item"],
            state=row["state"],
            attempt=row["attempt"],
            actor=row["actor"],
            reason=row["reason"],
        )
        for row in stamps
    ]
    for row in reviews:
        lines += _review_lines(row)
    lines += [
        TimelineLine(
            at=row["at"],
            step=row["step"],
            item=row["item"],
            state=f"came back from {row['action']}",
            attempt=row["number"],
            actor=row["actor"],
            reason=f"{row['error']}: {row['reason']}",
        )
        for row in words
    ]
    return sorted(lines, key=lambda line: line.at)


def _review_lines(row: RowMapping) -> list[TimelineLine]:
    def line(at: Any, state: str, actor: str, reason: str | None) -> TimelineLine:
        return TimelineLine(
            at=at, step=row["step"], item=row["item"], state=state, attempt=1, actor=actor, reason=reason
        )

    opened = line(row["opened_at"], "parked", "system", f"{row['kind']}: {row['error']}")
    if row["closed_at"] is None:
        return [opened]
    return [opened, line(row["closed_at"], f"review closed: {row['action']}", row["closed_by"], row["reason"])]


async def list_orders(database: Database, limit: int, status: OrderStatus | None = None) -> list[OrderSummary]:
    """The newest orders first, all or those with one status."""
    columns = (orders.c[name] for name in OrderSummary.model_fields)
    query = select(*columns).order_by(orders.c.created_at.desc(), orders.c.order_id).limit(limit)
    if status:
        query = query.where(orders.c.status == status.value)
    async with database.begin() as connection:
        return [OrderSummary.model_validate(dict(row)) for row in (await connection.execute(query)).mappings()]


async def read_results(database: Database, order_ids: Collection[str]) -> dict[str, OrderResult]:
    """Status and reason of these orders by id, for following many at once; unknown ids are left out."""
    query = select(orders.c.order_id, orders.c.status, orders.c.reason).where(
        orders.c.order_id == func.any(list(order_ids))
    )
    async with database.begin() as connection:
        rows = (await connection.execute(query)).mappings()
        return {row["order_id"]: OrderResult.model_validate(dict(row)) for row in rows}


async def _rows(connection: AsyncConnection, table: Any, order_id: str, *order_by: Any) -> Any:
    return (await connection.execute(select(table).where(table.c.order_id == order_id).order_by(*order_by))).mappings()
