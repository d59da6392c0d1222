"""All tables, grouped by the party that writes them. Migrations build them; this is how code speaks of them.

Balances carry their rule as a constraint, movements are append-only with a unique key. Personal data is in
`order_contacts` and nowhere else.
"""

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Date,
    DateTime,
    Double,
    ForeignKey,
    Identity,
    Index,
    Integer,
    MetaData,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.schema import SchemaItem

metadata = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "uq": "uq_%(table_name)s_%(column_0_name)s",
        "ix": "ix_%(table_name)s_%(column_0_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
    }
)


def _at(name: str = "at") -> Column[object]:
    return Column(name, DateTime(timezone=True), nullable=False, server_default=func.clock_timestamp())


# --- orders -----------------------------------------------------------------------------------------------------

orders = Table(
    "orders",
    metadata,
    Column("order_id", Text, primary_key=True),
    Column("customer_id", Text, nullable=False),
    Column("status", Text, nullable=False),
    # The stage that NEEDS_REVIEW covers; equal to the status otherwise.
    Column("stage", Text, nullable=False),
    Column("reason", Text),
    Column("currency", Text, nullable=False),
    Column("total", BigInteger, nullable=False),
    Column("points", BigInteger, nullable=False, server_default="0"),
    Column("store_credit", BigInteger, nullable=False, server_default="0"),
    Column("amount_due", BigInteger, nullable=False),
    # The gateway's token of the shopper's card, never card data.
    Column("payment_method", Text),
    Column("channel", Text),
    Column("correlation_id", Text, nullable=False),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.clock_timestamp()),
    Column("updated_at", DateTime(timezone=True), nullable=False, server_default=func.clock_timestamp()),
    CheckConstraint("total >= 0 AND points >= 0 AND store_credit >= 0 AND amount_due >= 0", name="amounts"),
    CheckConstraint("amount_due = total - points - store_credit", name="amount_due"),
    CheckConstraint("status = stage OR status = 'NEEDS_REVIEW'", name="stage"),
    Index("ix_orders_status", "status", "created_at"),
    Index("ix_orders_created_at", "created_at"),
    Index("ix_orders_updated_at", "updated_at"),
)

#: Filled from `domain.order.ALLOWED` by the migration; a trigger on `orders` refuses any other pair.
status_transitions = Table(
    "status_transitions",
    metadata,
    Column("old_status", Text, primary_key=True),
    Column("new_status", Text, primary_key=True),
)

order_lines = Table(
    "order_lines",
    metadata,
    Column("order_id", Text, ForeignKey("orders.order_id"), primary_key=True),
    Column("line_no", Integer, primary_key=True),
    Column("sku", Text, nullable=False),
    Column("quantity", Integer, nullable=False),
    # The catalogue's price at acceptance; null where the catalogue has no such SKU.
    Column("unit_price", BigInteger),
    CheckConstraint("quantity > 0", name="quantity"),
)

#: The only table with personal data.
order_contacts = Table(
    "order_contacts",
    metadata,
    Column("order_id", Text, ForeignKey("orders.order_id"), primary_key=True),
    Column("email", Text, nullable=False),
    Column("shipping_address", JSONB, nullable=False),
    Column("note", Text),
)

idempotency_keys = Table(
    "idempotency_keys",
    metadata,
    Column("caller", Text, primary_key=True),
    Column("key", Text, primary_key=True),
    Column("fingerprint", Text, nullable=False),
    Column("order_id", Text, ForeignKey("orders.order_id"), nullable=False),
    _at("created_at"),
)

#: Facts, written in the transaction that made them true. The relay publishes them in order of `sequence`.
outbox = Table(
    "outbox",
    metadata,
    Column("sequence", BigInteger, Identity(), primary_key=True),
    # `<order>:<type>`: one fact of a kind an order (refunds add their key).
    Column("event_id", Text, nullable=False, unique=True),
    Column("order_id", Text, nullable=False),
    Column("type", Text, nullable=False),
    Column("data", JSONB, nullable=False),
    Column("correlation_id", Text, nullable=False),
    _at("created_at"),
    Column("published_at", DateTime(timezone=True)),
    Column("attempts", Integer, nullable=False, server_default="0"),
    Column("next_attempt_at", DateTime(timezone=True), nullable=False, server_default=func.clock_timestamp()),
    Column("last_error", Text),
    # Only these are published by the relay; the others have consumers that keep their own place.
    Index("ix_outbox_submitted", "sequence", postgresql_where=text("published_at IS NULL AND type = 'OrderSubmitted'")),
)

#: What is known of every effect, append-only. A row with state `undone` is the tombstone of its key.
order_steps = Table(
    "order_steps",
    metadata,
    Column("order_id", Text, primary_key=True),
    Column("step", Text, primary_key=True),
    Column("item", Text, primary_key=True, server_default=""),
    Column("revision", Integer, primary_key=True, server_default="1"),
    Column("state", Text, primary_key=True),
    Column("attempt", Integer, nullable=False, server_default="1"),
    Column("provider_reference", Text),
    Column("actor", Text, nullable=False, server_default="system"),
    Column("reason", Text),
    _at(),
    # When the newest attempt began (`at` keeps the first).
    _at("last_at"),
)

#: What the saga does not know and people decided: one row a parked step; open while `closed_at` is null.
review_items = Table(
    "review_items",
    metadata,
    Column("review_id", BigInteger, Identity(), primary_key=True),
    Column("order_id", Text, ForeignKey("orders.order_id"), nullable=False),
    Column("step", Text, nullable=False),
    Column("item", Text, nullable=False, server_default=""),
    Column("kind", Text, nullable=False),
    Column("error", Text, nullable=False),
    _at("opened_at"),
    Column("closed_at", DateTime(timezone=True)),
    Column("closed_by", Text),
    Column("action", Text),
    Column("reason", Text),
    Index(
        "uq_review_items_open",
        "order_id",
        "step",
        "item",
        unique=True,
        postgresql_where=text("closed_at IS NULL"),
    ),
    Index("ix_review_items_order_id", "order_id"),
)

#: Operators' words that a parked step followed, to stand where it stood: one row each.
redrives = Table(
    "redrives",
    metadata,
    Column("order_id", Text, ForeignKey("orders.order_id"), primary_key=True),
    Column("step", Text, primary_key=True),
    Column("item", Text, primary_key=True, server_default=""),
    # The park's own `opened_at`: numbers start anew with each park.
    Column("parked_at", DateTime(timezone=True), primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("actor", Text, nullable=False),
    Column("action", Text, nullable=False),
    Column("reason", Text, nullable=False),
    # What it came back with.
    Column("error", Text, nullable=False),
    _at(),
)

# --- inventory --------------------------------------------------------------------------------------------------

products = Table(
    "products",
    metadata,
    Column("sku", Text, primary_key=True),
    Column("unit_price", BigInteger, nullable=False),
    Column("currency", Text, nullable=False),
    CheckConstraint("unit_price >= 0", name="unit_price"),
)

stock = Table(
    "stock",
    metadata,
    Column("sku", Text, ForeignKey("products.sku"), primary_key=True),
    Column("warehouse", Text, primary_key=True),
    Column("on_hand", BigInteger, nullable=False, server_default="0"),
    Column("reserved", BigInteger, nullable=False, server_default="0"),
    CheckConstraint("on_hand >= 0", name="on_hand"),
    CheckConstraint("reserved >= 0 AND reserved <= on_hand", name="reserved"),
)

reservations = Table(
    "reservations",
    metadata,
    Column("order_id", Text, primary_key=True),
    Column("sku", Text, primary_key=True),
    Column("warehouse", Text, primary_key=True),
    Column("quantity", BigInteger, nullable=False),
    # 'reserved' is live; 'released' and 'sold' are ends.
    Column("state", Text, nullable=False, server_default="reserved"),
    CheckConstraint("quantity > 0", name="quantity"),
    CheckConstraint("state IN ('reserved', 'released', 'sold')", name="state"),
)

#: kind: stocked (on hand, may be negative), reserved, released, sold. `quantity` is what moved.
stock_movements = Table(
    "stock_movements",
    metadata,
    Column("key", Text, primary_key=True),
    Column("sku", Text, nullable=False),
    Column("warehouse", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("quantity", BigInteger, nullable=False),
    Column("order_id", Text),
    Column("actor", Text, nullable=False, server_default="system"),
    _at(),
    Index("ix_stock_movements_order_id", "order_id"),
    Index("ix_stock_movements_sku", "sku", "warehouse"),
)

# --- loyalty ----------------------------------------------------------------------------------------------------

points_accounts = Table(
    "points_accounts",
    metadata,
    Column("customer_id", Text, primary_key=True),
    Column("points", BigInteger, nullable=False, server_default="0"),
    CheckConstraint("points >= 0", name="points"),
)

credit_accounts = Table(
    "credit_accounts",
    metadata,
    Column("customer_id", Text, primary_key=True),
    Column("currency", Text, primary_key=True),
    Column("balance", BigInteger, nullable=False, server_default="0"),
    CheckConstraint("balance >= 0", name="balance"),
)

#: kind: granted (by an operator, may be negative), burned, restored, earned. `amount` is signed.
points_movements = Table(
    "points_movements",
    metadata,
    Column("key", Text, primary_key=True),
    Column("customer_id", Text, nullable=False, index=True),
    Column("kind", Text, nullable=False),
    Column("amount", BigInteger, nullable=False),
    Column("order_id", Text, index=True),
    Column("actor", Text, nullable=False, server_default="system"),
    _at(),
)

#: kind: granted (by an operator, may be negative), applied, refunded. `amount` is signed.
credit_movements = Table(
    "credit_movements",
    metadata,
    Column("key", Text, primary_key=True),
    Column("customer_id", Text, nullable=False, index=True),
    Column("currency", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("amount", BigInteger, nullable=False),
    Column("order_id", Text, index=True),
    Column("actor", Text, nullable=False, server_default="system"),
    _at(),
)

# --- payments ---------------------------------------------------------------------------------------------------

payments = Table(
    "payments",
    metadata,
    Column("order_id", Text, primary_key=True),
    Column("intent_id", Text, nullable=False, unique=True),
    Column("status", Text, nullable=False, server_default="NONE"),
    Column("currency", Text, nullable=False),
    Column("amount", BigInteger, nullable=False),
    Column("authorized", BigInteger, nullable=False, server_default="0"),
    Column("captured", BigInteger, nullable=False, server_default="0"),
    Column("refunded", BigInteger, nullable=False, server_default="0"),
    Column("next_action", JSONB),
    _at("created_at"),
    _at("updated_at"),
    CheckConstraint("authorized >= 0 AND authorized <= amount", name="authorized"),
    CheckConstraint("captured >= 0 AND captured <= authorized", name="captured"),
    CheckConstraint("refunded >= 0 AND refunded <= captured", name="refunded"),
)

#: kind: authorized, captured, voided, refunded, refund_failed (what came back after it was refunded), waived.
#: `amount` is what moved, never negative.
money_movements = Table(
    "money_movements",
    metadata,
    Column("key", Text, primary_key=True),
    Column("order_id", Text, nullable=False, index=True),
    Column("intent_id", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("currency", Text, nullable=False),
    Column("amount", BigInteger, nullable=False),
    Column("actor", Text, nullable=False, server_default="system"),
    Column("reason", Text),
    _at(),
    CheckConstraint("amount >= 0", name="amount"),
)

refunds = Table(
    "refunds",
    metadata,
    # Our key, in the provider's metadata too: the refund is found again by it.
    Column("refund_key", Text, primary_key=True),
    Column("order_id", Text, nullable=False, index=True),
    Column("intent_id", Text, nullable=False),
    Column("amount", BigInteger, nullable=False),
    # 'requested' by an operator; then 'pending', 'succeeded' or 'failed', as the provider says.
    Column("status", Text, nullable=False),
    Column("provider_reference", Text),
    Column("actor", Text, nullable=False, server_default="system"),
    Column("reason", Text),
    # What the operator asked for; null: all that was left, or nobody asked.
    Column("asked_amount", BigInteger),
    _at("created_at"),
    _at("updated_at"),
    CheckConstraint("amount > 0", name="amount"),
    CheckConstraint("status IN ('requested', 'pending', 'succeeded', 'failed')", name="status"),
    Index("ix_refunds_unsettled", "order_id", postgresql_where=text("status IN ('requested', 'pending')")),
)

#: An operator's retry (a workflow run and its revision) and the one refund that it allows, counted from 1.
refund_retries = Table(
    "refund_retries",
    metadata,
    Column("order_id", Text, primary_key=True),
    Column("retry", Text, primary_key=True),
    Column("number", Integer, nullable=False),
    _at(),
    CheckConstraint("number > 0", name="number"),
)

#: Webhook events under their provider's id: ids and types only, never their body.
webhook_inbox = Table(
    "webhook_inbox",
    metadata,
    Column("source", Text, primary_key=True),
    Column("event_id", Text, primary_key=True),
    Column("type", Text, nullable=False),
    # Intent or shipment the event is about, and the order that it claims to be about.
    Column("object_id", Text),
    Column("order_id", Text),
    # 'waiting', 'delivered', 'ignored' or 'set_aside' (nobody's).
    Column("state", Text, nullable=False, server_default="waiting"),
    Column("attempts", Integer, nullable=False, server_default="0"),
    Column("next_attempt_at", DateTime(timezone=True), nullable=False, server_default=func.clock_timestamp()),
    Column("last_error", Text),
    _at("received_at"),
    Column("settled_at", DateTime(timezone=True)),
    CheckConstraint("state IN ('waiting', 'delivered', 'ignored', 'set_aside')", name="state"),
    Index("ix_webhook_inbox_waiting", "next_attempt_at", postgresql_where=text("state = 'waiting'")),
    Index("ix_webhook_inbox_set_aside", "received_at", postgresql_where=text("state = 'set_aside'")),
    Index("ix_webhook_inbox_settled", "settled_at", postgresql_where=text("state IN ('delivered', 'ignored')")),
)

# --- shipping ---------------------------------------------------------------------------------------------------

shipments = Table(
    "shipments",
    metadata,
    Column("order_id", Text, primary_key=True),
    Column("warehouse", Text, primary_key=True),
    # Our reference at the courier, and the courier's own id.
    Column("reference", Text, nullable=False, unique=True),
    Column("shipment_id", Text, nullable=False),
    Column("status", Text, nullable=False),
    _at("created_at"),
    _at("updated_at"),
    UniqueConstraint("shipment_id"),
)

# --- operations -------------------------------------------------------------------------------------------------

#: What operators held, and hold while `released_at` is null: nothing new is attempted at this party.
holds = Table(
    "holds",
    metadata,
    Column("hold_id", BigInteger, Identity(), primary_key=True),
    Column("party", Text, nullable=False),
    Column("actor", Text, nullable=False),
    Column("reason", Text, nullable=False),
    _at(),
    Column("released_at", DateTime(timezone=True)),
    Column("released_by", Text),
    Column("release_reason", Text),
    CheckConstraint("party IN ('gateway', 'courier', 'intake')", name="party"),
    Index("uq_holds_open", "party", unique=True, postgresql_where=text("released_at IS NULL")),
)

#: One comparison of all books: the guard's (every few minutes) or the nightly one (one a day).
reconciliation_runs = Table(
    "reconciliation_runs",
    metadata,
    Column("run_id", Text, primary_key=True),
    Column("kind", Text, nullable=False),
    # Which night a nightly run is about, in the time zone of the settings.
    Column("night", Date),
    _at("started_at"),
    Column("finished_at", DateTime(timezone=True)),
    Column("checked", BigInteger, nullable=False, server_default="0"),
    # Whether every part was read: the next run looks back no further than to the last complete ones.
    Column("complete", Boolean, nullable=False, server_default="false"),
    # The newest parcel in the courier's list: the next run begins after it.
    Column("last_parcel", Text),
    CheckConstraint("kind IN ('guard', 'nightly')", name="kind"),
    Index("ix_reconciliation_runs_kind", "kind", "started_at"),
)


def _of_run(name: str, *columns: SchemaItem) -> Table:
    """What belongs to one run and goes with it."""
    run = ForeignKey("reconciliation_runs.run_id", ondelete="CASCADE")
    return Table(name, metadata, Column("run_id", Text, run, primary_key=True), *columns)


reconciliation_findings = _of_run(
    "reconciliation_findings",
    # An order's id, or a provider's object that no order knows.
    Column("subject", Text, primary_key=True),
    Column("kind", Text, primary_key=True),
    Column("detail", Text, nullable=False),
    # What was sent to repair it; null where only a person can decide.
    Column("action", Text),
    _at(),
)

#: The closed orders that a run compares, as they were before the providers were asked; gone when the run ends.
reconciliation_orders = _of_run(
    "reconciliation_orders",
    Column("order_id", Text, primary_key=True),
    Column("status", Text, nullable=False),
    Column("currency", Text, nullable=False),
    Column("amount_due", BigInteger, nullable=False),
    Column("changed_at", DateTime(timezone=True), nullable=False),
    # Whether all that the providers have of it is read, so that what is missing is missing.
    Column("whole", Boolean, nullable=False),
)

#: What the providers told the workers of their parties in a run; gone when the run ends.
reconciliation_intents = _of_run(
    "reconciliation_intents",
    Column("intent_id", Text, primary_key=True),
    Column("order_id", Text, nullable=False),
    Column("currency", Text, nullable=False),
    Column("held", BigInteger, nullable=False),
    Column("captured", BigInteger, nullable=False),
    Index("ix_reconciliation_intents_order_id", "run_id", "order_id"),
)

reconciliation_refunds = _of_run(
    "reconciliation_refunds",
    Column("refund_id", Text, primary_key=True),
    Column("intent_id", Text, nullable=False),
    Column("refund_key", Text, nullable=False),
    Column("amount", BigInteger, nullable=False),
    Column("status", Text, nullable=False),
    Index("ix_reconciliation_refunds_intent_id", "run_id", "intent_id"),
)

reconciliation_parcels = _of_run(
    "reconciliation_parcels",
    Column("shipment_id", Text, primary_key=True),
    Column("order_id", Text, nullable=False),
    Column("warehouse", Text, nullable=False),
    Column("status", Text, nullable=False),
    Index("ix_reconciliation_parcels_order_id", "run_id", "order_id"),
)

#: Totals for metrics: how many, and of how many seconds in all. Triggers add to them in the transaction that inserts a
#: fact; `shard` keeps connections from waiting for each other.
tallies = Table(
    "tallies",
    metadata,
    Column("name", Text, primary_key=True),
    Column("label", Text, primary_key=True),
    Column("other", Text, primary_key=True, server_default=""),
    # Of a histogram: how many of its bounds are reached.
    Column("bucket", SmallInteger, primary_key=True, server_default="0"),
    Column("shard", SmallInteger, primary_key=True, server_default="0"),
    Column("count", BigInteger, nullable=False),
    Column("seconds", Double, nullable=False, server_default="0"),
)
