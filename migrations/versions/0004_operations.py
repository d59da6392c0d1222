"""What people who run the shop write: refunds they ask for, holds, and what the reconciliation found."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Builds them."""
    _refunds()
    _holds()
    _redrives()
    _reconciliation()


def _refunds() -> None:
    op.drop_constraint("ck_refunds_status", "refunds", type_="check")
    op.create_check_constraint(
        "ck_refunds_status", "refunds", "status IN ('requested', 'pending', 'succeeded', 'failed')"
    )
    op.add_column("refunds", sa.Column("actor", sa.Text(), server_default="system", nullable=False))
    op.add_column("refunds", sa.Column("reason", sa.Text()))
    op.add_column("refunds", sa.Column("asked_amount", sa.BigInteger()))


def _holds() -> None:
    op.create_table(
        "holds",
        sa.Column("hold_id", sa.BigInteger(), sa.Identity(), nullable=False),
        sa.Column("party", sa.Text(), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        _at(),
        sa.Column("released_at", sa.DateTime(timezone=True)),
        sa.Column("released_by", sa.Text()),
        sa.Column("release_reason", sa.Text()),
        sa.PrimaryKeyConstraint("hold_id", name="pk_holds"),
        sa.CheckConstraint("party IN ('gateway', 'courier', 'intake')", name="ck_holds_party"),
    )
    op.create_index("uq_holds_open", "holds", ["party"], unique=True, postgresql_where=sa.text("released_at IS NULL"))


def _redrives() -> None:
    op.create_table(
        "redrives",
        sa.Column("order_id", sa.Text(), nullable=False),
        sa.Column("step", sa.Text(), nullable=False),
        sa.Column("item", sa.Text(), server_default="", nullable=False),
        sa.Column("parked_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("error", sa.Text(), nullable=False),
        _at(),
        sa.PrimaryKeyConstraint("order_id", "step", "item", "parked_at", "number", name="pk_redrives"),
        sa.ForeignKeyConstraint(["order_id"], ["orders.order_id"], name="fk_redrives_order_id"),
    )


def _reconciliation() -> None:
    op.create_index("ix_orders_updated_at", "orders", ["updated_at"])
    op.create_index(
        "ix_refunds_unsettled",
        "refunds",
        ["order_id"],
        postgresql_where=sa.text("status IN ('requested', 'pending')"),
    )
    op.create_table(
        "reconciliation_runs",
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("night", sa.Date()),
        _at("started_at"),
        sa.Column("finished_at", sa.DateTime(timezone=True)),
        sa.Column("checked", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("complete", sa.Boolean(), server_default="false", nullable=False),
        sa.Column("last_parcel", sa.Text()),
        sa.PrimaryKeyConstraint("run_id", name="pk_reconciliation_runs"),
        sa.CheckConstraint("kind IN ('guard', 'nightly')", name="ck_reconciliation_runs_kind"),
    )
    op.create_index("ix_reconciliation_runs_kind", "reconciliation_runs", ["kind", "started_at"])
    _of_run(
        "reconciliation_findings",
        ["subject", "kind"],
        _text("subject"),
        _text("kind"),
        _text("detail"),
        sa.Column("action", sa.Text()),
        _at(),
    )
    _of_run(
        "reconciliation_orders",
        ["order_id"],
        _text("order_id"),
        _text("status"),
        _text("currency"),
        _number("amount_due"),
        sa.Column("changed_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("whole", sa.Boolean(), nullable=False),
    )
    _providers_books()


def _providers_books() -> None:
    _of_run(
        "reconciliation_intents",
        ["intent_id"],
        _text("intent_id"),
        _text("order_id"),
        _text("currency"),
        _number("held"),
        _number("captured"),
    )
    _of_run(
        "reconciliation_refunds",
        ["refund_id"],
        _text("refund_id"),
        _text("intent_id"),
        _text("refund_key"),
        _number("amount"),
        _text("status"),
    )
    _of_run(
        "reconciliation_parcels",
        ["shipment_id"],
        _text("shipment_id"),
        _text("order_id"),
        _text("warehouse"),
        _text("status"),
    )
    for table, column in (("intents", "order_id"), ("refunds", "intent_id"), ("parcels", "order_id")):
        op.create_index(f"ix_reconciliation_{table}_{column}", f"reconciliation_{table}", ["run_id", column])


def _of_run(name: str, key: list[str], *columns: sa.Column[object]) -> None:
    """What belongs to one run and goes with it."""
    op.create_table(
        name,
        _text("run_id"),
        *columns,
        sa.PrimaryKeyConstraint("run_id", *key, name=f"pk_{name}"),
        sa.ForeignKeyConstraint(
            ["run_id"], ["reconciliation_runs.run_id"], name=f"fk_{name}_run_id", ondelete="CASCADE"
        ),
    )


def _text(name: str) -> sa.Column[object]:
    return sa.Column(name, sa.Text(), nullable=False)


def _number(name: str) -> sa.Column[object]:
    return sa.Column(name, sa.BigInteger(), nullable=False)


def _at(name: str = "at") -> sa.Column[object]:
    return sa.Column(name, sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False)
