"""The views that docs/operating.md tells people to save find what it says that they find."""

import re
from urllib.parse import quote

from domain.keys import Step
from tests.baskets import Basket
from tests.gates import a_bug
from tests.imports import ROOT
from tests.polling import eventually
from tests.workflows.till import Till
from workflows.names import money_workflow_id, order_workflow_id

TEXT = (ROOT / "docs" / "operating.md").read_text(encoding="utf-8")
#: Name, query and link of each view.
VIEWS: list[tuple[str, str, str]] = re.findall(
    r"^\| ([^|]+) \| `([^`]+)` \| \[open\]\(([^)]+)\) \|$", TEXT, re.MULTILINE
)


def query(word: str) -> str:
    """The only view whose name has this word in it."""
    (found,) = [query for name, query, _ in VIEWS if word in name]
    return found


def test_each_link_opens_its_query() -> None:
    assert len(VIEWS) == 7
    for _, asked, link in VIEWS:
        assert link == f"http://127.0.0.1:8233/namespaces/default/workflows?query={quote(asked)}"


async def test_each_view_finds_its_orders_and_no_others(till: Till) -> None:
    shop = till.shop
    parked, waiting, declined, bought = await till.baskets(4)
    suspect = await shop.basket(suffix="-score-95")
    bug = shop.gates.fail(parked.order_id, Step.CAPTURE_PAYMENT, a_bug)
    await shop.place(parked)
    await till.parked(parked, "capture_payment")
    await till.waiting(waiting, "pm_card_authenticationRequired", "REQUIRES_ACTION")
    await shop.place_in_real_time(suspect)
    await shop.reaches(suspect.order_id, "AWAITING_REVIEW")
    await shop.place(declined, payment_method="pm_card_chargeDeclined")
    await shop.place(bought)
    for basket in (declined, bought):
        await shop.ended(basket.order_id)
    paid_late = await with_late_money(till)
    late = money_workflow_id((await till.intent(paid_late))["id"])

    orders = {order_workflow_id(one.order_id) for one in (parked, waiting, declined, bought, suspect, paid_late)}
    for asked, wanted in (
        (query("parked, whatever"), parked),
        (query("parked at one step"), parked),
        (query("payment"), waiting),
        (query("reviewer"), suspect),
        (query("reason"), declined),
        (query("customer").replace("alice-7", bought.customer), bought),
    ):
        await finds(till, asked, {order_workflow_id(wanted.order_id)}, of=orders)
    await finds(till, query("late money"), {late}, of={late, *orders})

    bug.open()
    assert await shop.redrive(parked.order_id, "capture_payment", "retry") == 202
    await shop.ended(parked.order_id)
    await finds(till, query("parked, whatever"), set(), of=orders)
    for basket in (waiting, suspect):
        assert (await shop.cancel(basket.order_id))[0] == 202
        await shop.ended(basket.order_id)


async def with_late_money(till: Till) -> Basket:
    """An order whose money was taken after its undo, and given back."""
    basket = await till.waiting(await till.shop.basket(), "pm_card_authenticationRequired", "REQUIRES_ACTION")
    assert (await till.shop.cancel(basket.order_id))[0] == 202
    await till.shop.ended(basket.order_id)
    await till.force(basket, "succeeded")
    await till.event(basket, "payment_intent.succeeded")
    assert await till.payment_becomes(basket, "REFUNDED")
    await till.settled(basket)
    return basket


async def finds(till: Till, asked: str, wanted: set[str], *, of: set[str]) -> None:
    """Until the list, which lags, shows these of our workflows and no others."""

    async def look() -> bool:
        return {run.id async for run in till.shop.client.list_workflows(asked)} & of == wanted

    await eventually(look)
