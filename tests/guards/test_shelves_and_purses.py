"""Stock, points and store credit: taken once, given back once, never below zero."""

from pathlib import Path

from tests.guards.removal import MARKS, Removal, assert_missed, each

INVENTORY, STOCK = "activities/inventory.py", "adapters/stock.py"
LOYALTY, LEDGERS = "activities/loyalty.py", "adapters/loyalty.py"
BASKETS = "tests/integration/test_inventory_reservation.py"
CROWDS = "tests/integration/test_inventory_concurrency.py"
PURSES = "tests/integration/test_loyalty_steps.py"

REMOVALS = (
    Removal(
        "a reservation that is there is the answer",
        "a repeated call sets the basket aside once more",
        INVENTORY,
        old="            if stamps.done:\n",
        new="            if False:\n",
        proof=f"{BASKETS}::test_a_repeated_reserve_gives_the_same_answer_and_takes_nothing_more",
    ),
    Removal(
        "out of stock stays out of stock",
        "an order that was told no is reserved by a late attempt, while it is being undone",
        INVENTORY,
        old="[] if StepState.REFUSED in stamps.states else await stock.reserve",
        new="await stock.reserve",
        proof=f"{BASKETS}::test_a_refusal_stays_a_refusal_when_the_shelf_is_filled_later",
    ),
    Removal(
        "out of stock is committed before it is told",
        "the refusal rolls its own stamp back, and the next attempt may say otherwise",
        INVENTORY,
        old="        if not warehouses:\n            raise InventoryUnavailable(str(key))",
        new="            if not warehouses:\n                raise InventoryUnavailable(str(key))",
        proof=f"{BASKETS}::test_a_refusal_stays_a_refusal_when_the_shelf_is_filled_later",
    ),
    Removal(
        "what is sold is not released",
        "a confirmed order is given the tombstone of an undone one",
        INVENTORY,
        old="if (await enter(connection, sale)).done:",
        new="if False:",
        proof=f"{BASKETS}::test_what_was_sold_is_not_released_and_what_was_released_is_not_sold",
    ),
    Removal(
        "only what is reserved is sold",
        "an order is told as sold of which no piece was ever set aside",
        INVENTORY,
        old="if not reserved.done:",
        new="if False:",
        proof=f"{BASKETS}::test_what_was_sold_is_not_released_and_what_was_released_is_not_sold",
    ),
    Removal(
        "a release leaves a tombstone where nothing was",
        "a late reservation sets pieces aside for an order that is undone",
        INVENTORY,
        old="            await stamp(connection, forward, StepState.UNDONE, attempt=activity.info().attempt)\n",
        new="",
        proof=f"{BASKETS}::test_a_late_reserve_after_its_release_is_fenced_and_takes_nothing",
    ),
    Removal(
        "a reservation ends once",
        "a second release, or a second sale, moves the pieces again",
        STOCK,
        old='    reservations.c.state == "reserved",\n)\n',
        new=")\n",
        proof=f"{BASKETS}::test_release_gives_the_pieces_back_once_however_often_it_is_called",
    ),
    Removal(
        "the shelf is locked before it is counted",
        "two orders see the same last piece",
        STOCK,
        old="        .with_for_update()\n    )\n    found:",
        new="    )\n    found:",
        proof=f"{CROWDS}::test_of_fifty_orders_for_the_last_piece_exactly_one_gets_it",
    ),
    Removal(
        "shelves are locked in one order to reserve",
        "orders with crossing baskets wait for each other in a circle",
        STOCK,
        old="        .order_by(stock.c.sku, stock.c.warehouse)\n        .with_for_update()\n",
        new="        .with_for_update()\n",
        proof=f"{CROWDS}::test_orders_with_crossing_baskets_never_wait_in_a_circle",
    ),
    Removal(
        "shelves are locked in one order to release and to sell",
        "orders with crossing baskets wait for each other in a circle",
        STOCK,
        old="        .order_by(stock.c.sku, stock.c.warehouse)\n        .with_for_update(of=stock)\n",
        new="        .with_for_update(of=stock)\n",
        proof=f"{CROWDS}::test_shelves_are_locked_in_one_order_however_their_rows_lie",
    ),
    Removal(
        "an operator cannot take reserved pieces off the shelf",
        "a confirmed order has nothing to send",
        STOCK,
        old="if level.on_hand < before.reserved:",
        new="if False:",
        proof="tests/integration/test_inventory_catalogue.py"
        "::test_pieces_that_open_orders_hold_cannot_be_taken_off_the_shelf",
    ),
    Removal(
        "points and credit are spent once",
        "a repeated call takes them again",
        LOYALTY,
        old="            if stamps.done:\n",
        new="            if False:\n",
        proof=f"{PURSES}::test_what_the_order_spends_is_taken_once_however_often_it_is_called[points]",
    ),
    Removal(
        "too few points stay too few",
        "an order that was told no is paid by a late attempt, while it is being undone",
        LOYALTY,
        old="StepState.REFUSED not in stamps.states and await",
        new="await",
        proof=f"{PURSES}::test_a_refusal_stays_a_refusal[points]",
    ),
    Removal(
        "points and credit are given back once",
        "a repeated undo gives them again",
        LOYALTY,
        old="            if not stamps.undone:\n",
        new="            if True:\n",
        proof=f"{PURSES}::test_what_was_taken_is_given_back_once_however_often_it_is_called[credit]",
    ),
    Removal(
        "an undo of points leaves a tombstone where nothing was",
        "a late attempt takes points for an order that is undone",
        LOYALTY,
        old="            await stamp(connection, forward, StepState.UNDONE, attempt=activity.info().attempt)\n",
        new="",
        proof=f"{PURSES}::test_a_late_attempt_after_the_undo_is_fenced_and_takes_nothing[points]",
    ),
    Removal(
        "a balance covers what is taken of it",
        "an order that spends too much ends in an error of the database, not in a word to the shopper",
        LEDGERS,
        old=".where(ledger.account(holder), ledger.balance >= order.price)",
        new=".where(ledger.account(holder))",
        proof=f"{PURSES}::test_all_of_it_can_be_spent_but_not_one_more[points]",
    ),
)

pytestmark = MARKS


@each(REMOVALS)
def test_without_it_a_test_goes_red(removal: Removal, tmp_path: Path) -> None:
    assert_missed(removal, tmp_path / "copy")
