"""Totals for metrics, counted in the transaction of the fact."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"

#: Seconds: `adapters.tallies.BOUNDS` as it was when this was written.
_BOUNDS = "ARRAY[1, 2.5, 5, 10, 30, 60, 300, 900, 1800, 3600, 21600, 86400]::double precision[]"
_AGE = "extract(epoch FROM fact.created_at - orders.created_at)::double precision"

_ADD = """
    ON CONFLICT (name, label, other, bucket, shard)
    DO UPDATE SET count = tallies.count + excluded.count, seconds = tallies.seconds + excluded.seconds
"""

#: Where a fact's row is inserted: what it adds to which total. `fact` is the inserted row.
_EVENTS = f"""
    SELECT 'event', fact.type, coalesce(fact.data ->> 'reason', ''), width_bucket(coalesce({_AGE}, 0), {_BOUNDS}),
           {{shard}}, count(*), coalesce(sum({_AGE}), 0)
    FROM {{facts}} AS fact LEFT JOIN orders USING (order_id) GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4
"""  # noqa: S608 (constants)
_OUTCOMES = """
    SELECT CASE state WHEN 'unknown' THEN 'unknown' ELSE 'resolved' END, step,
           CASE state WHEN 'unknown' THEN '' ELSE state END, 0, {shard}, count(*), 0
    FROM {facts} AS fact
    WHERE (state = 'unknown' AND NOT EXISTS (
               SELECT FROM order_steps AS other
               WHERE (other.order_id, other.step, other.item) = (fact.order_id, fact.step, fact.item)
                 AND other.state = 'unknown' AND other.revision <> fact.revision))
       OR (state IN ('done', 'refused', 'undone', 'waived')
           AND EXISTS (
               SELECT FROM order_steps AS other
               WHERE (other.order_id, other.step, other.item) = (fact.order_id, fact.step, fact.item)
                 AND other.state = 'unknown')
           AND NOT EXISTS (
               SELECT FROM order_steps AS other
               WHERE (other.order_id, other.step, other.item) = (fact.order_id, fact.step, fact.item)
                 AND other.state IN ('done', 'refused', 'undone', 'waived')
                 AND (other.revision, other.state) <> (fact.revision, fact.state)))
    GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
"""
_LATE_MONEY = """
    SELECT 'late_money', fact.kind, '', 0, {shard}, count(*), 0
    FROM {facts} AS fact JOIN orders USING (order_id)
    WHERE orders.status IN ('CANCELLED_COMPENSATED', 'REJECTED') GROUP BY 1, 2 ORDER BY 1, 2
"""


def upgrade() -> None:
    """Builds them, and counts what has happened so far."""
    op.create_table(
        "tallies",
        *(sa.Column(name, sa.Text(), nullable=False) for name in ("name", "label")),
        sa.Column("other", sa.Text(), server_default="", nullable=False),
        sa.Column("bucket", sa.SmallInteger(), server_default="0", nullable=False),
        sa.Column("shard", sa.SmallInteger(), server_default="0", nullable=False),
        sa.Column("count", sa.BigInteger(), nullable=False),
        sa.Column("seconds", sa.Double(), server_default="0", nullable=False),
        sa.PrimaryKeyConstraint("name", "label", "other", "bucket", "shard", name="pk_tallies"),
    )
    # Room beside each row for its next versions.
    op.execute("ALTER TABLE tallies SET (fillfactor = 20)")
    for table, facts in (("outbox", _EVENTS), ("order_steps", _OUTCOMES), ("money_movements", _LATE_MONEY)):
        op.execute(f"INSERT INTO tallies {facts.format(facts=table, shard='0')} {_ADD}")
        _count(table, facts)


def _count(table: str, facts: str) -> None:
    """Whoever inserts into the table counts, in any role: the totals themselves nobody else may write."""
    schema = op.get_bind().exec_driver_sql("SELECT quote_ident(current_schema())").scalar_one()
    # Connections side by side add to rows of their own, so that none waits for another's transaction.
    counted = facts.format(facts="added", shard="pg_backend_pid() % 8")
    op.execute(f"""
        CREATE FUNCTION tally_{table}() RETURNS trigger LANGUAGE plpgsql
        SECURITY DEFINER SET search_path = {schema}, pg_temp AS $$
        BEGIN
            INSERT INTO tallies {counted} {_ADD};
            RETURN NULL;
        END $$
    """)
    op.execute(f"""
        CREATE TRIGGER tally AFTER INSERT ON {table} REFERENCING NEW TABLE AS added
        FOR EACH STATEMENT EXECUTE FUNCTION tally_{table}()
    """)
