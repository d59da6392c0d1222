"""The tables of the payments party: one row a payment, one a refund, and the movements of money.

Readings of the gateway are recorded, never deltas, and an older reading that arrives late takes nothing back: sums only
grow, a status never returns to an earlier one, and each movement has one key.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import func, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.stripe_answers import Intent, IntentStatus, Refund, RefundStatus
from adapters.tables import money_movements, orders, payments, refund_retries, refunds
from domain.errors import (
    AuthorizationExpired,
    CaptureFailed,
    OrderNotFound,
    PaymentMismatch,
    PaymentServiceUnavailable,
)
from domain.keys import EffectKey
from domain.messages import PaymentView
from domain.order import CancelReason, OrderStatus, PaymentStatus


@dataclass(frozen=True)
class Terms:
    """What the order says about its payment, and the intent that stands for it, if one is stored."""

    order_status: OrderStatus
    amount: int
    currency: str
    payment_method: str
    intent_id: str | None


@dataclass(frozen=True)
class Payment:
    """The recorded payment. Amounts in the smallest unit."""

    status: PaymentStatus
    authorized: int
    captured: int
    refunded: int


_STATUSES = {
    IntentStatus.REQUIRES_CONFIRMATION: PaymentStatus.NONE,
    IntentStatus.REQUIRES_ACTION: PaymentStatus.REQUIRES_ACTION,
    IntentStatus.PROCESSING: PaymentStatus.PROCESSING,
    IntentStatus.REQUIRES_CAPTURE: PaymentStatus.AUTHORIZED,
    IntentStatus.SUCCEEDED: PaymentStatus.CAPTURED,
}

#: A reading is older than the row when its status ranks lower: an intent does not go back.
_RANKS = {
    PaymentStatus.NONE: 0,
    PaymentStatus.REQUIRES_ACTION: 1,
    PaymentStatus.PROCESSING: 1,
    PaymentStatus.AUTHORIZED: 2,
    PaymentStatus.DECLINED: 2,
    PaymentStatus.VOIDED: 3,
}

#: Stripe's words for a hold that ran out.
_EXPIRED = frozenset({"automatic", "expired"})

#: Captured money that is disputed, or that the gateway does not know of any more.
UNSETTLED = frozenset({PaymentStatus.DISPUTED, PaymentStatus.UNKNOWN})

_REFUND_RANKS = {RefundStatus.PENDING: 0, RefundStatus.SUCCEEDED: 1, RefundStatus.FAILED: 2}


async def read_terms(connection: AsyncConnection, order_id: str) -> Terms:
    """The order's own terms, which never change after acceptance. Raises OrderNotFound."""
    row = (
        await connection.execute(
            select(
                orders.c.status,
                orders.c.amount_due,
                orders.c.currency,
                orders.c.payment_method,
                payments.c.intent_id,
            )
            .join_from(orders, payments, payments.c.order_id == orders.c.order_id, isouter=True)
            .where(orders.c.order_id == order_id)
        )
    ).one_or_none()
    if row is None:
        raise OrderNotFound(order_id)
    return Terms(OrderStatus(row.status), row.amount_due, row.currency, row.payment_method or "", row.intent_id)


def require_terms(intent: Intent, order_id: str, terms: Terms) -> None:
    """The intent must be this order's, over its amount, and captured in full if at all. Raises PaymentMismatch."""
    ours = intent.order_id in {None, order_id}
    same = intent.amount == terms.amount and intent.currency == terms.currency
    whole = intent.status is not IntentStatus.SUCCEEDED or intent.amount_received == terms.amount
    if not (ours and same and whole):
        raise PaymentMismatch(f"{order_id} {intent.id}")


def require_captured(intent: Intent, key: EffectKey) -> None:
    """The money must be taken. Raises AuthorizationExpired or CaptureFailed when it certainly is not.

    Raises PaymentServiceUnavailable while it may yet be.
    """
    match intent.status:
        case IntentStatus.SUCCEEDED:
            return
        case IntentStatus.CANCELED:
            raise AuthorizationExpired(str(key))
        case IntentStatus.REQUIRES_CAPTURE | IntentStatus.PROCESSING:
            raise PaymentServiceUnavailable(str(key))
        case _:
            raise CaptureFailed(str(key))


async def store_intent(connection: AsyncConnection, order_id: str, intent: Intent) -> str:
    """Makes the intent the order's own and returns the id that stands: an earlier one is never replaced."""
    await connection.execute(
        insert(payments)
        .values(order_id=order_id, intent_id=intent.id, currency=intent.currency, amount=intent.amount)
        .on_conflict_do_nothing(index_elements=["order_id"])
    )
    found = await connection.execute(select(payments.c.intent_id).where(payments.c.order_id == order_id))
    return str(found.scalar_one())


async def mark_declined(connection: AsyncConnection, order_id: str) -> None:
    """The gateway refused the card outright. Nothing where no intent was stored or money has moved."""
    await connection.execute(
        update(payments)
        .where(payments.c.order_id == order_id, payments.c.authorized == 0)
        .values(status=PaymentStatus.DECLINED.value, next_action=None, updated_at=func.clock_timestamp())
    )


async def record_reading(
    connection: AsyncConnection, order_id: str, intent: Intent, found_refunds: Sequence[Refund]
) -> Payment:
    """Brings the payment up to a reading of its intent and refunds, with its movements. Harmless when repeated."""
    row = (await connection.execute(select(payments).where(payments.c.order_id == order_id).with_for_update())).one()
    held = intent.amount_capturable if intent.status is IntentStatus.REQUIRES_CAPTURE else 0
    captured = max(row.captured, intent.amount_received)
    authorized = max(row.authorized, held, captured)
    refunded, pending = await _record_refunds(connection, order_id, intent, found_refunds)
    status = _status(PaymentStatus(row.status), intent, authorized)
    if captured:
        recorded = PaymentStatus(row.status)
        # What people must clear up, a reading of the intent alone does not.
        status = recorded if recorded in UNSETTLED else captured_status(captured, refunded, pending)
    if authorized:
        await _move(connection, order_id, intent, key=f"{order_id}:authorized", kind="authorized", amount=authorized)
    if captured:
        await _move(connection, order_id, intent, key=f"{order_id}:captured", kind="captured", amount=captured)
    elif authorized and intent.status is IntentStatus.CANCELED:
        await _move(connection, order_id, intent, key=f"{order_id}:voided", kind="voided", amount=authorized)
    await connection.execute(
        update(payments)
        .where(payments.c.order_id == order_id)
        .values(
            status=status.value,
            # An intent over another amount than ours is recorded as it is: the books must not lose sight of it.
            amount=max(row.amount, authorized),
            authorized=authorized,
            captured=captured,
            refunded=refunded,
            next_action=intent.next_action if status is PaymentStatus.REQUIRES_ACTION else None,
            updated_at=func.clock_timestamp(),
        )
    )
    return Payment(status, authorized, captured, refunded)


def view_of(intent: Intent, payment: Payment) -> PaymentView:
    """What a recorded reading says to the saga."""
    reason = None
    if payment.status is PaymentStatus.DECLINED and intent.refusal is not None:
        reason = intent.refusal.reason
    elif payment.status is PaymentStatus.VOIDED and intent.cancellation_reason in _EXPIRED:
        reason = CancelReason.AUTHORIZATION_EXPIRED
    return PaymentView(
        status=payment.status,
        intent_id=intent.id,
        captured=payment.captured,
        refunded=payment.refunded,
        reason=reason,
    )


async def is_refunded(connection: AsyncConnection, order_id: str) -> bool:
    """Whether all that was captured has arrived back."""
    found = select(payments.c.order_id).where(
        payments.c.order_id == order_id, payments.c.captured > 0, payments.c.refunded == payments.c.captured
    )
    return bool((await connection.execute(select(found.exists()))).scalar_one())


async def authorize_refund(connection: AsyncConnection, order_id: str, retry: str, failed: int) -> int:
    """Which refund of the order this retry by an operator may make: the one after the `failed` that are known now.

    Idempotent by `retry`: what it was given first stands, however many have failed since.
    """
    row = insert(refund_retries).values(order_id=order_id, retry=retry, number=failed + 1)
    await connection.execute(row.on_conflict_do_nothing(index_elements=["order_id", "retry"]))
    given = select(refund_retries.c.number).where(
        refund_retries.c.order_id == order_id, refund_retries.c.retry == retry
    )
    return int((await connection.execute(given)).scalar_one())


def _status(recorded: PaymentStatus, intent: Intent, authorized: int) -> PaymentStatus:
    told = _STATUSES.get(intent.status)
    if told is None:
        declined = intent.refusal is not None and not authorized
        ended = PaymentStatus.VOIDED if intent.status is IntentStatus.CANCELED else PaymentStatus.NONE
        told = PaymentStatus.DECLINED if declined else ended
    return told if _RANKS.get(told, 0) >= _RANKS.get(recorded, 0) else recorded


def captured_status(captured: int, refunded: int, pending: bool) -> PaymentStatus:
    """What captured money is by the refunds alone."""
    if pending:
        return PaymentStatus.REFUND_PENDING
    return PaymentStatus.REFUNDED if refunded >= captured else PaymentStatus.CAPTURED


async def _record_refunds(
    connection: AsyncConnection, order_id: str, intent: Intent, found: Sequence[Refund]
) -> tuple[int, bool]:
    """What is refunded by now, and whether a refund is still pending."""
    query = select(refunds).where(refunds.c.order_id == order_id, refunds.c.intent_id == intent.id)
    rows = await connection.execute(query)
    known = {row.refund_key: (RefundStatus(row.status), int(row.amount)) for row in rows if row.status != "requested"}
    for refund in found:
        before = known[refund.refund_key][0] if refund.refund_key in known else None
        if before is not None and _REFUND_RANKS[refund.status] <= _REFUND_RANKS[before]:
            continue
        known[refund.refund_key] = (refund.status, refund.amount)
        row = insert(refunds).values(
            refund_key=refund.refund_key,
            order_id=order_id,
            intent_id=intent.id,
            amount=refund.amount,
            status=refund.status.value,
            provider_reference=refund.id,
        )
        await connection.execute(
            row.on_conflict_do_update(
                index_elements=["refund_key"],
                set_={
                    "status": row.excluded.status,
                    "provider_reference": row.excluded.provider_reference,
                    "updated_at": func.clock_timestamp(),
                },
            )
        )
        if refund.status is RefundStatus.SUCCEEDED:
            await _move(
                connection, order_id, intent, key=f"{refund.refund_key}:refunded", kind="refunded", amount=refund.amount
            )
        elif refund.status is RefundStatus.FAILED and before is RefundStatus.SUCCEEDED:
            await _move(
                connection,
                order_id,
                intent,
                key=f"{refund.refund_key}:failed",
                kind="refund_failed",
                amount=refund.amount,
            )
    refunded = sum(amount for status, amount in known.values() if status is RefundStatus.SUCCEEDED)
    return refunded, any(status is RefundStatus.PENDING for status, _ in known.values())


async def _move(
    connection: AsyncConnection, order_id: str, intent: Intent, *, key: str, kind: str, amount: int
) -> None:
    await connection.execute(
        insert(money_movements)
        .values(
            key=key,
            order_id=order_id,
            intent_id=intent.id,
            kind=kind,
            currency=intent.currency,
            amount=amount,
        )
        .on_conflict_do_nothing(index_elements=["key"])
    )
