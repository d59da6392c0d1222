"""An order's status and its parked steps, and what the database holds to by itself."""

from pathlib import Path

from tests.guards.removal import MARKS, Removal, assert_missed, each

REVIEWS, MIGRATIONS = "adapters/reviews.py", "migrations/versions"
STAGES = "tests/integration/test_orders_stages.py"
SCHEMA = "tests/integration/test_migrations.py"

REMOVALS = (
    Removal(
        "an order's row is locked before its status is read",
        "a confirmation and a cancel at once both count",
        REVIEWS,
        old=".where(orders.c.order_id == order_id).with_for_update(key_share=True)",
        new=".where(orders.c.order_id == order_id)",
        proof=f"{STAGES}::test_a_cancel_waits_for_the_confirmation_that_is_under_way",
    ),
    Removal(
        "a stage only moves forward",
        "a late step takes a confirmed order back",
        REVIEWS,
        old="    if change.status not in FORWARD.get(stage, frozenset()):\n",
        new="    if False:\n",
        proof=f"{STAGES}::test_a_stage_cannot_be_jumped_over",
    ),
    Removal(
        "an undone order is not confirmed",
        "an order is told as sold whose goods were given back",
        "activities/orders.py",
        old="            if recorded.status not in SOLD_STATUSES:\n",
        new="            if False:\n",
        proof="tests/integration/test_orders_activities.py"
        "::test_confirming_again_changes_nothing_and_an_undone_order_is_not_confirmed",
    ),
    Removal(
        "a park that was closed is not opened by its own late attempt",
        "an order that went on shows a question that nobody can answer",
        REVIEWS,
        old="    if await _was_closed(connection, parked):\n",
        new="    if False:\n",
        proof=f"{STAGES}::test_a_park_that_arrives_after_it_was_closed_opens_nothing",
    ),
    Removal(
        "a late close leaves a newer park open",
        "a question that waits for an operator vanishes",
        REVIEWS,
        old="            review_items.c.opened_at <= closed.since,\n",
        new="",
        proof=f"{STAGES}::test_closing_an_old_park_late_leaves_the_new_one_open",
    ),
    Removal(
        "the status returns with the last park",
        "an order looks well while a step of it still waits for an operator",
        REVIEWS,
        old=" and not await _has_open_items(connection, closed.order_id):",
        new=":",
        proof=f"{STAGES}::test_the_status_returns_only_when_the_last_item_is_closed",
    ),
    Removal(
        "the database refuses an impossible change of status",
        "a bug, or a person with SQL, brings a cancelled order back",
        f"{MIGRATIONS}/0001_orders.py",
        old="WHEN (OLD.status IS DISTINCT FROM NEW.status)",
        new="WHEN (false)",
        proof=f"{SCHEMA}::test_the_database_takes_allowed_changes_of_status_and_refuses_all_others"
        "[CANCELLED_COMPENSATED]",
    ),
    Removal(
        "no movement is changed or taken out of its book",
        "the books can be made to agree",
        f"{MIGRATIONS}/0002_books.py",
        old="    for table in _MOVEMENTS:\n",
        new="    for table in ():\n",
        proof=f"{SCHEMA}::test_a_movement_cannot_be_changed_or_taken_out_of_its_book[money_movements]",
    ),
    Removal(
        "the database never reserves more than there is",
        "a bug sells a piece twice",
        f"{MIGRATIONS}/0002_books.py",
        old='sa.CheckConstraint("reserved >= 0 AND reserved <= on_hand", name="ck_stock_reserved")',
        new='sa.CheckConstraint("reserved >= 0", name="ck_stock_reserved")',
        proof=f"{SCHEMA}::test_constraints_and_indexes_have_the_names_and_rules_of_the_code",
    ),
    Removal(
        "the database never lets points go below zero",
        "a bug spends points twice",
        f"{MIGRATIONS}/0002_books.py",
        old='        sa.CheckConstraint("points >= 0", name="ck_points_accounts_points"),\n',
        new="",
        proof=f"{SCHEMA}::test_constraints_and_indexes_have_the_names_and_rules_of_the_code",
    ),
    Removal(
        "the database never gives back more than was taken",
        "a bug refunds twice, and the books look well",
        f"{MIGRATIONS}/0002_books.py",
        old='        sa.CheckConstraint("refunded >= 0 AND refunded <= captured", name="ck_payments_refunded"),\n',
        new="",
        proof=f"{SCHEMA}::test_constraints_and_indexes_have_the_names_and_rules_of_the_code",
    ),
    Removal(
        "migrations run one by one",
        "two processes that start at once break the schema",
        "migrations/__init__.py",
        old="SELECT pg_advisory_xact_lock(:lock)",
        new="SELECT :lock",
        proof=f"{SCHEMA}::test_a_migration_waits_for_the_one_that_is_under_way",
    ),
)

pytestmark = MARKS


@each(REMOVALS)
def test_without_it_a_test_goes_red(removal: Removal, tmp_path: Path) -> None:
    assert_missed(removal, tmp_path / "copy")
