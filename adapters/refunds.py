"""Operators' refunds: one row each, written before the gateway is asked, all under one cap.

A refund is found by its name within the order. One that failed is followed, when an operator wants it, by the next
number of the same refund: `<order>:refund_payment:<name>:<number>` is the key in the provider's metadata.
"""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row, Select, func, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.payments import Terms, authorize_refund
from adapters.stripe_answers import RefundStatus
from adapters.tables import payments, refunds
from domain.keys import EffectKey, Step
from domain.messages import RefundAsked, RefundOpened
from domain.order import SOLD_STATUSES, PaymentStatus, RefundRefusal

REQUESTED = "requested"
_UNDECIDED = (REQUESTED, RefundStatus.PENDING.value)


@dataclass(frozen=True)
class Numbered:
    """One number of a refund. Amount in the smallest unit."""

    refund_key: str
    intent_id: str
    amount: int
    number: int


async def open_refund(connection: AsyncConnection, order_id: str, terms: Terms, asked: RefundAsked) -> RefundOpened:
    """Takes the refund, or says why not. Locks the order's payment: refunds of one order pass here one by one."""
    locked = select(payments).where(payments.c.order_id == order_id).with_for_update()
    payment = (await connection.execute(locked)).one_or_none()
    key = str(EffectKey(order_id, Step.REFUND_PAYMENT, item=asked.refund_id))
    rows = {
        row.refund_key: row for row in await connection.execute(select(refunds).where(refunds.c.order_id == order_id))
    }
    if first := rows.get(key):
        return _again(first, asked)
    if terms.order_status not in SOLD_STATUSES:
        return RefundOpened(refusal=RefundRefusal.NOT_CONFIRMED)
    left = payment.captured - sum(r.amount for r in rows.values() if r.status != RefundStatus.FAILED) if payment else 0
    amount = left if asked.amount is None else asked.amount
    refusal = _refusal(PaymentStatus(payment.status), rows) if payment else None
    if refusal is None and not 0 < amount <= left:
        refusal = RefundRefusal.ABOVE_REST
    if refusal or payment is None:
        return RefundOpened(refusal=refusal, left=left)
    await connection.execute(
        insert(refunds).values(
            refund_key=key,
            order_id=order_id,
            intent_id=payment.intent_id,
            amount=amount,
            status=REQUESTED,
            actor=asked.actor,
            reason=asked.reason,
            asked_amount=asked.amount,
        )
    )
    return RefundOpened(amount=amount, left=left - amount, asked=asked)


def _again(row: Row[Any], asked: RefundAsked) -> RefundOpened:
    first = RefundAsked(refund_id=asked.refund_id, amount=row.asked_amount, actor=row.actor, reason=row.reason)
    return RefundOpened(amount=row.amount, asked=first)


def _refusal(status: PaymentStatus, rows: dict[str, Row[Any]]) -> RefundRefusal | None:
    if status is PaymentStatus.DISPUTED:
        return RefundRefusal.DISPUTED
    if status is PaymentStatus.UNKNOWN:
        return RefundRefusal.CONTRADICTED
    return RefundRefusal.REFUND_OPEN if any(row.status in _UNDECIDED for row in rows.values()) else None


async def newest_number(connection: AsyncConnection, key: EffectKey) -> Numbered:
    """The number of the refund that stands for it now."""
    rows = await connection.execute(_numbers_of(key).order_by(refunds.c.created_at.desc(), refunds.c.refund_key.desc()))
    newest = rows.first()
    assert newest is not None, "a refund is opened before it is asked for"
    number = int(newest.refund_key.rpartition(":")[2])
    return Numbered(newest.refund_key, newest.intent_id, newest.amount, number)


async def next_number(
    connection: AsyncConnection, key: EffectKey, failed: Numbered, retry: str | None
) -> Numbered | None:
    """The number after one that failed, where an operator's `retry` allows it and the cap has room for it.

    Idempotent by `retry`: it allows one number, whenever it is asked.
    """
    if retry is None:
        return None
    allowed = await authorize_refund(connection, key.order_id, f"{key.item}:{retry}", failed.number)
    if allowed <= failed.number:
        return None
    locked = select(payments.c.captured).where(payments.c.order_id == key.order_id).with_for_update()
    captured = (await connection.execute(locked)).scalar_one()
    others = select(func.coalesce(func.sum(refunds.c.amount), 0)).where(
        refunds.c.order_id == key.order_id, refunds.c.status != RefundStatus.FAILED
    )
    if (await connection.execute(others)).scalar_one() + failed.amount > captured:
        return None
    first = (await connection.execute(_numbers_of(key).order_by(refunds.c.created_at))).first()
    assert first is not None, "there is the one that failed"
    following = Numbered(
        str(EffectKey(key.order_id, Step.REFUND_PAYMENT, item=key.item, revision=allowed)),
        failed.intent_id,
        failed.amount,
        allowed,
    )
    await connection.execute(
        insert(refunds)
        .values(
            refund_key=following.refund_key,
            order_id=key.order_id,
            intent_id=failed.intent_id,
            amount=failed.amount,
            status=REQUESTED,
            actor=first.actor,
            reason=first.reason,
            asked_amount=first.asked_amount,
        )
        .on_conflict_do_nothing(index_elements=["refund_key"])
    )
    return following


async def refund_under_way(connection: AsyncConnection, order_id: str) -> str | None:
    """The name of the order's newest refund by an operator, decided or not; None: there is none."""
    query = (
        select(refunds.c.refund_key)
        .where(
            refunds.c.order_id == order_id,
            refunds.c.refund_key.startswith(f"{order_id}:{Step.REFUND_PAYMENT}:", autoescape=True),
        )
        .order_by(refunds.c.created_at.desc())
        .limit(1)
    )
    newest = (await connection.execute(query)).scalar_one_or_none()
    return newest.split(":")[2] if newest else None


def _numbers_of(key: EffectKey) -> Select[Any]:
    prefix = f"{key.order_id}:{Step.REFUND_PAYMENT}:{key.item}:"
    return select(refunds).where(
        refunds.c.order_id == key.order_id, refunds.c.refund_key.startswith(prefix, autoescape=True)
    )
