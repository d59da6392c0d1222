"""What people who run the shop write: refunds they ask for, holds, and what the reconciliation found."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Builds them."""
    _refunds()
    _holds()
    _reconciliation()


def _refunds() -> None:
    op.drop_constraint("ck_refunds_status", "refunds", type_="check")
    op.create_check_constraint(
        "ck_refunds_status", "refunds", "status IN ('requested', 'pending', 'succeeded', 'failed')"
    )
    op.add_column("refunds", sa.Column("actor", sa.Text(), server_default="system", nullable=False))
    op.add_column("refunds", sa.Column("reason", sa.Text()))


def _holds() -> None:
    op.create_table(
        "holds",
        sa.Column("party", sa.Text(), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        _at(),
        sa.PrimaryKeyConstraint("party", name="pk_holds"),
        sa.CheckConstraint("party IN ('gateway', 'courier', 'intake')", name="ck_holds_party"),
    )


def _reconciliation() -> None:
    op.create_table(
        "reconciliation_runs",
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        _at("started_at"),
        sa.Column("finished_at", sa.DateTime(timezone=True)),
        sa.Column("checked", sa.BigInteger(), server_default="0", nullable=False),
        sa.PrimaryKeyConstraint("run_id", name="pk_reconciliation_runs"),
        sa.CheckConstraint("kind IN ('guard', 'nightly')", name="ck_reconciliation_runs_kind"),
    )
    op.create_index("ix_reconciliation_runs_kind", "reconciliation_runs", ["kind", "started_at"])
    op.create_table(
        "reconciliation_findings",
        sa.Column("run_id", sa.Text(), nullable=False),
        # An order's id, or a provider's object that no order knows.
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("detail", sa.Text(), nullable=False),
        # What was sent to repair it; null where only a person can decide.
        sa.Column("action", sa.Text()),
        _at(),
        sa.PrimaryKeyConstraint("run_id", "subject", "kind", name="pk_reconciliation_findings"),
        sa.ForeignKeyConstraint(
            ["run_id"],
            ["reconciliation_runs.run_id"],
            name="fk_reconciliation_findings_run_id",
            ondelete="CASCADE",
        ),
    )


def _at(name: str = "at") -> sa.Column[object]:
    return sa.Column(name, sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False)
