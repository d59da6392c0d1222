"""The books of the parties: balances with their rules, and movements that nobody can change afterwards."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0002"
down_revision = "0001"

_MOVEMENTS = ("stock_movements", "points_movements", "credit_movements", "money_movements")


def upgrade() -> None:
    """Builds them."""
    _inventory()
    _loyalty()
    _payments()
    _shipping()
    _guard_movements()


def _text(name: str, default: str | None = None, *, nullable: bool = False) -> sa.Column[object]:
    return sa.Column(name, sa.Text(), server_default=default, nullable=nullable)


def _number(name: str, default: str | None = None) -> sa.Column[object]:
    return sa.Column(name, sa.BigInteger(), server_default=default, nullable=False)


def _texts(*names: str) -> list[sa.Column[object]]:
    return [_text(name) for name in names]


def _at(name: str) -> sa.Column[object]:
    """An instant that is always known: now, unless told."""
    return sa.Column(name, sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False)


def _inventory() -> None:
    op.create_table(
        "products",
        _text("sku"),
        _number("unit_price"),
        _text("currency"),
        sa.PrimaryKeyConstraint("sku", name="pk_products"),
        sa.CheckConstraint("unit_price >= 0", name="ck_products_unit_price"),
    )
    op.create_table(
        "stock",
        *_texts("sku", "warehouse"),
        _number("on_hand", "0"),
        _number("reserved", "0"),
        sa.PrimaryKeyConstraint("sku", "warehouse", name="pk_stock"),
        sa.ForeignKeyConstraint(["sku"], ["products.sku"], name="fk_stock_sku"),
        sa.CheckConstraint("on_hand >= 0", name="ck_stock_on_hand"),
        sa.CheckConstraint("reserved >= 0 AND reserved <= on_hand", name="ck_stock_reserved"),
    )
    op.create_table(
        "reservations",
        *_texts("order_id", "sku", "warehouse"),
        _number("quantity"),
        _text("state", "reserved"),
        sa.PrimaryKeyConstraint("order_id", "sku", "warehouse", name="pk_reservations"),
        sa.CheckConstraint("quantity > 0", name="ck_reservations_quantity"),
        sa.CheckConstraint("state IN ('reserved', 'released', 'sold')", name="ck_reservations_state"),
    )
    op.create_table(
        "stock_movements",
        *_texts("key", "sku", "warehouse", "kind"),
        _number("quantity"),
        _text("order_id", nullable=True),
        _text("actor", "system"),
        _at("at"),
        sa.PrimaryKeyConstraint("key", name="pk_stock_movements"),
    )
    op.create_index("ix_stock_movements_order_id", "stock_movements", ["order_id"])
    op.create_index("ix_stock_movements_sku", "stock_movements", ["sku", "warehouse"])


def _loyalty() -> None:
    op.create_table(
        "points_accounts",
        _text("customer_id"),
        _number("points", "0"),
        sa.PrimaryKeyConstraint("customer_id", name="pk_points_accounts"),
        sa.CheckConstraint("points >= 0", name="ck_points_accounts_points"),
    )
    op.create_table(
        "credit_accounts",
        *_texts("customer_id", "currency"),
        _number("balance", "0"),
        sa.PrimaryKeyConstraint("customer_id", "currency", name="pk_credit_accounts"),
        sa.CheckConstraint("balance >= 0", name="ck_credit_accounts_balance"),
    )
    op.create_table(
        "points_movements",
        *_texts("key", "customer_id", "kind"),
        _number("amount"),
        _text("order_id", nullable=True),
        _text("actor", "system"),
        _at("at"),
        sa.PrimaryKeyConstraint("key", name="pk_points_movements"),
    )
    op.create_index("ix_points_movements_customer_id", "points_movements", ["customer_id"])
    op.create_table(
        "credit_movements",
        *_texts("key", "customer_id", "currency", "kind"),
        _number("amount"),
        _text("order_id", nullable=True),
        _text("actor", "system"),
        _at("at"),
        sa.PrimaryKeyConstraint("key", name="pk_credit_movements"),
    )
    op.create_index("ix_credit_movements_customer_id", "credit_movements", ["customer_id"])


def _payments() -> None:
    op.create_table(
        "payments",
        *_texts("order_id", "intent_id"),
        _text("status", "NONE"),
        _text("currency"),
        _number("amount"),
        _number("authorized", "0"),
        _number("captured", "0"),
        _number("refunded", "0"),
        sa.Column("next_action", JSONB(), nullable=True),
        _at("created_at"),
        _at("updated_at"),
        sa.PrimaryKeyConstraint("order_id", name="pk_payments"),
        sa.UniqueConstraint("intent_id", name="uq_payments_intent_id"),
        sa.CheckConstraint("authorized >= 0 AND authorized <= amount", name="ck_payments_authorized"),
        sa.CheckConstraint("captured >= 0 AND captured <= authorized", name="ck_payments_captured"),
        sa.CheckConstraint("refunded >= 0 AND refunded <= captured", name="ck_payments_refunded"),
    )
    op.create_table(
        "money_movements",
        *_texts("key", "order_id", "intent_id", "kind", "currency"),
        _number("amount"),
        _text("actor", "system"),
        _text("reason", nullable=True),
        _at("at"),
        sa.PrimaryKeyConstraint("key", name="pk_money_movements"),
        sa.CheckConstraint("amount >= 0", name="ck_money_movements_amount"),
    )
    op.create_index("ix_money_movements_order_id", "money_movements", ["order_id"])
    op.create_table(
        "refunds",
        *_texts("refund_key", "order_id", "intent_id"),
        _number("amount"),
        _text("status"),
        _text("provider_reference", nullable=True),
        _at("created_at"),
        _at("updated_at"),
        sa.PrimaryKeyConstraint("refund_key", name="pk_refunds"),
        sa.CheckConstraint("amount > 0", name="ck_refunds_amount"),
        sa.CheckConstraint("status IN ('pending', 'succeeded', 'failed')", name="ck_refunds_status"),
    )
    op.create_index("ix_refunds_order_id", "refunds", ["order_id"])


def _shipping() -> None:
    op.create_table(
        "shipments",
        *_texts("order_id", "warehouse", "reference", "shipment_id", "status"),
        _at("created_at"),
        _at("updated_at"),
        sa.PrimaryKeyConstraint("order_id", "warehouse", name="pk_shipments"),
        sa.UniqueConstraint("reference", name="uq_shipments_reference"),
        sa.UniqueConstraint("shipment_id", name="uq_shipments_shipment_id"),
    )


def _guard_movements() -> None:
    op.execute("""
        CREATE FUNCTION refuse_change_of_movement() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            RAISE EXCEPTION '% is append-only: % refused', TG_TABLE_NAME, TG_OP
                USING ERRCODE = 'restrict_violation', TABLE = TG_TABLE_NAME, CONSTRAINT = 'append_only';
        END $$
    """)
    for table in _MOVEMENTS:
        op.execute(
            f"CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON {table} "
            "FOR EACH STATEMENT EXECUTE FUNCTION refuse_change_of_movement()"
        )
