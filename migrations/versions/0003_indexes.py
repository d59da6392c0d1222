"""Indexes that fit the queries of every order, and which refund an operator's retry allows."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Builds them."""
    _orders()
    _webhooks()
    for table in ("points_movements", "credit_movements", "review_items"):
        op.create_index(f"ix_{table}_order_id", table, ["order_id"])
    op.create_table(
        "refund_retries",
        sa.Column("order_id", sa.Text(), nullable=False),
        sa.Column("retry", sa.Text(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False),
        sa.PrimaryKeyConstraint("order_id", "retry", name="pk_refund_retries"),
        sa.CheckConstraint("number > 0", name="ck_refund_retries_number"),
    )


def _orders() -> None:
    op.drop_index("ix_orders_open", "orders")
    op.create_index("ix_orders_status", "orders", ["status", "created_at"])
    op.drop_index("ix_outbox_unpublished", "outbox")
    op.create_index(
        "ix_outbox_submitted",
        "outbox",
        ["sequence"],
        postgresql_where=sa.text("published_at IS NULL AND type = 'OrderSubmitted'"),
    )


def _webhooks() -> None:
    op.create_index(
        "ix_webhook_inbox_set_aside",
        "webhook_inbox",
        ["received_at"],
        postgresql_where=sa.text("state = 'set_aside'"),
    )
    op.create_index(
        "ix_webhook_inbox_settled",
        "webhook_inbox",
        ["settled_at"],
        postgresql_where=sa.text("state IN ('delivered', 'ignored')"),
    )
