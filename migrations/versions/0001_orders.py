"""Orders and what belongs to them; the table of allowed statuses, and the trigger that holds an order to it."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0001"
down_revision = None

#: As the code had it when this was written; a migration does not change with the code. A later change of the
#: table of allowed pairs is a migration of its own.
_TRANSITIONS = {
    "PENDING": "AWAITING_REVIEW AWAITING_PAYMENT CONFIRMED COMPENSATING REJECTED NEEDS_REVIEW",
    "AWAITING_REVIEW": "AWAITING_PAYMENT CONFIRMED COMPENSATING REJECTED NEEDS_REVIEW",
    "AWAITING_PAYMENT": "CONFIRMED COMPENSATING NEEDS_REVIEW",
    "COMPENSATING": "CANCELLED_COMPENSATED NEEDS_REVIEW",
    "CONFIRMED": "REFUNDED",
    "NEEDS_REVIEW": "PENDING AWAITING_REVIEW AWAITING_PAYMENT COMPENSATING CONFIRMED REJECTED CANCELLED_COMPENSATED",
}


def upgrade() -> None:
    """Builds them."""
    _orders()
    _order_parts()
    _order_records()
    _webhooks()
    _guard_statuses()


def _text(name: str, default: str | None = None, *, nullable: bool = False) -> sa.Column[object]:
    return sa.Column(name, sa.Text(), server_default=default, nullable=nullable)


def _number(name: str, default: str | None = None) -> sa.Column[object]:
    return sa.Column(name, sa.BigInteger(), server_default=default, nullable=False)


def _texts(*names: str) -> list[sa.Column[object]]:
    return [_text(name) for name in names]


def _small(name: str, default: str | None = None) -> sa.Column[object]:
    return sa.Column(name, sa.Integer(), server_default=default, nullable=False)


def _at(name: str) -> sa.Column[object]:
    """An instant that is always known: now, unless told."""
    return sa.Column(name, sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False)


def _later(name: str) -> sa.Column[object]:
    """An instant that has not come yet while it is null."""
    return sa.Column(name, sa.DateTime(timezone=True), nullable=True)


def _orders() -> None:
    op.create_table(
        "orders",
        *_texts("order_id", "customer_id", "status", "stage"),
        _text("reason", nullable=True),
        _text("currency"),
        _number("total"),
        _number("points", "0"),
        _number("store_credit", "0"),
        _number("amount_due"),
        _text("payment_method", nullable=True),
        _text("channel", nullable=True),
        _text("correlation_id"),
        _at("created_at"),
        _at("updated_at"),
        sa.PrimaryKeyConstraint("order_id", name="pk_orders"),
        sa.CheckConstraint(
            "total >= 0 AND points >= 0 AND store_credit >= 0 AND amount_due >= 0", name="ck_orders_amounts"
        ),
        sa.CheckConstraint("amount_due = total - points - store_credit", name="ck_orders_amount_due"),
        sa.CheckConstraint("status = stage OR status = 'NEEDS_REVIEW'", name="ck_orders_stage"),
    )
    op.create_index(
        "ix_orders_open",
        "orders",
        ["status"],
        postgresql_where=sa.text("status NOT IN ('CANCELLED_COMPENSATED', 'REJECTED')"),
    )
    op.create_index("ix_orders_created_at", "orders", ["created_at"])
    op.create_table(
        "status_transitions",
        *_texts("old_status", "new_status"),
        sa.PrimaryKeyConstraint("old_status", "new_status", name="pk_status_transitions"),
    )


def _order_parts() -> None:
    op.create_table(
        "order_lines",
        _text("order_id"),
        _small("line_no"),
        _text("sku"),
        _small("quantity"),
        sa.Column("unit_price", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("order_id", "line_no", name="pk_order_lines"),
        sa.ForeignKeyConstraint(["order_id"], ["orders.order_id"], name="fk_order_lines_order_id"),
        sa.CheckConstraint("quantity > 0", name="ck_order_lines_quantity"),
    )
    op.create_table(
        "order_contacts",
        *_texts("order_id", "email"),
        sa.Column("shipping_address", JSONB(), nullable=False),
        _text("note", nullable=True),
        sa.PrimaryKeyConstraint("order_id", name="pk_order_contacts"),
        sa.ForeignKeyConstraint(["order_id"], ["orders.order_id"], name="fk_order_contacts_order_id"),
    )
    op.create_table(
        "idempotency_keys",
        *_texts("caller", "key", "fingerprint", "order_id"),
        _at("created_at"),
        sa.PrimaryKeyConstraint("caller", "key", name="pk_idempotency_keys"),
        sa.ForeignKeyConstraint(["order_id"], ["orders.order_id"], name="fk_idempotency_keys_order_id"),
    )


def _order_records() -> None:
    op.create_table(
        "outbox",
        sa.Column("sequence", sa.BigInteger(), sa.Identity(), nullable=False),
        *_texts("event_id", "order_id", "type"),
        sa.Column("data", JSONB(), nullable=False),
        _text("correlation_id"),
        _at("created_at"),
        _later("published_at"),
        _small("attempts", "0"),
        _at("next_attempt_at"),
        _text("last_error", nullable=True),
        sa.PrimaryKeyConstraint("sequence", name="pk_outbox"),
        sa.UniqueConstraint("event_id", name="uq_outbox_event_id"),
    )
    op.create_index(
        "ix_outbox_unpublished",
        "outbox",
        ["type", "next_attempt_at"],
        postgresql_where=sa.text("published_at IS NULL"),
    )
    op.create_table(
        "order_steps",
        *_texts("order_id", "step"),
        _text("item", ""),
        _small("revision", "1"),
        _text("state"),
        _small("attempt", "1"),
        _text("provider_reference", nullable=True),
        _text("actor", "system"),
        _text("reason", nullable=True),
        _at("at"),
        _at("last_at"),
        sa.PrimaryKeyConstraint("order_id", "step", "item", "revision", "state", name="pk_order_steps"),
    )
    op.create_table(
        "review_items",
        sa.Column("review_id", sa.BigInteger(), sa.Identity(), nullable=False),
        *_texts("order_id", "step"),
        _text("item", ""),
        *_texts("kind", "error"),
        _at("opened_at"),
        _later("closed_at"),
        _text("closed_by", nullable=True),
        _text("action", nullable=True),
        _text("reason", nullable=True),
        sa.PrimaryKeyConstraint("review_id", name="pk_review_items"),
        sa.ForeignKeyConstraint(["order_id"], ["orders.order_id"], name="fk_review_items_order_id"),
    )
    op.create_index(
        "uq_review_items_open",
        "review_items",
        ["order_id", "step", "item"],
        unique=True,
        postgresql_where=sa.text("closed_at IS NULL"),
    )


def _webhooks() -> None:
    op.create_table(
        "webhook_inbox",
        *_texts("source", "event_id", "type"),
        _text("object_id", nullable=True),
        _text("order_id", nullable=True),
        _text("state", "waiting"),
        _small("attempts", "0"),
        _at("next_attempt_at"),
        _text("last_error", nullable=True),
        _at("received_at"),
        _later("settled_at"),
        sa.PrimaryKeyConstraint("source", "event_id", name="pk_webhook_inbox"),
        sa.CheckConstraint("state IN ('waiting', 'delivered', 'ignored', 'set_aside')", name="ck_webhook_inbox_state"),
    )
    op.create_index(
        "ix_webhook_inbox_waiting",
        "webhook_inbox",
        ["next_attempt_at"],
        postgresql_where=sa.text("state = 'waiting'"),
    )


def _guard_statuses() -> None:
    op.bulk_insert(
        sa.table("status_transitions", sa.column("old_status", sa.Text), sa.column("new_status", sa.Text)),
        [{"old_status": old, "new_status": new} for old, news in _TRANSITIONS.items() for new in news.split()],
    )
    op.execute("""
        CREATE FUNCTION refuse_status_transition() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            IF NOT EXISTS (
                SELECT FROM status_transitions WHERE old_status = OLD.status AND new_status = NEW.status
            ) THEN
                RAISE EXCEPTION 'order % may not go from % to %', OLD.order_id, OLD.status, NEW.status
                    USING ERRCODE = 'check_violation', TABLE = 'orders', CONSTRAINT = 'status_transitions';
            END IF;
            RETURN NEW;
        END $$
    """)
    op.execute("""
        CREATE TRIGGER status_transitions BEFORE UPDATE ON orders
        FOR EACH ROW WHEN (OLD.status IS DISTINCT FROM NEW.status) EXECUTE FUNCTION refuse_status_transition()
    """)
