"""What became of captured money that was thought to be settled: disputed by the shopper's bank, or not there at all."""

from collections.abc import Sequence

from sqlalchemy import func, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.payments import captured_status
from adapters.stripe_answers import Dispute
from adapters.tables import money_movements, payments, refunds
from domain.order import PaymentStatus


async def record_disputes(connection: AsyncConnection, order_id: str, disputes: Sequence[Dispute]) -> bool:
    """Brings the payment up to a reading of its disputes; True while one is open or lost.

    Each dispute is one movement `disputed`, and a won one a `dispute_won` besides: harmless when repeated.
    """
    row = (await connection.execute(select(payments).where(payments.c.order_id == order_id).with_for_update())).one()
    for dispute in disputes:
        kinds = ["disputed", *(["dispute_won"] if dispute.won else [])]
        for kind in kinds:
            await connection.execute(
                insert(money_movements)
                .values(
                    key=f"{dispute.id}:{kind}",
                    order_id=order_id,
                    intent_id=row.intent_id,
                    kind=kind,
                    currency=row.currency,
                    amount=dispute.amount,
                )
                .on_conflict_do_nothing(index_elements=["key"])
            )
    disputed = any(not dispute.won for dispute in disputes)
    pending = select(refunds.c.refund_key).where(refunds.c.order_id == order_id, refunds.c.status == "pending")
    known = captured_status(row.captured, row.refunded, bool((await connection.execute(pending)).first()))
    if row.captured:
        await _set_status(connection, order_id, PaymentStatus.DISPUTED if disputed else known)
    return disputed


async def record_contradiction(connection: AsyncConnection, order_id: str) -> None:
    """Nobody knows where the captured money is: UNKNOWN, until a person has cleared it up."""
    await connection.execute(select(payments).where(payments.c.order_id == order_id).with_for_update())
    await _set_status(connection, order_id, PaymentStatus.UNKNOWN)


async def _set_status(connection: AsyncConnection, order_id: str, status: PaymentStatus) -> None:
    await connection.execute(
        update(payments)
        .where(payments.c.order_id == order_id, payments.c.status != status)
        .values(status=status.value, updated_at=func.clock_timestamp())
    )
