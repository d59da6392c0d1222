"""An order is taken for its run once, and only when the shop can sell what it names."""

from domain.keys import Step
from tests.shop import Shop, fresh


async def test_an_unknown_sku_rejects_the_order_before_anything_is_taken(shop: Shop) -> None:
    basket = await shop.basket()
    order_id = await shop.place(
        basket, lines=[{"sku": basket.a, "quantity": 1}, {"sku": fresh("ghost"), "quantity": 1}]
    )
    view = await shop.ended(order_id)
    assert (view.status, view.reason) == ("REJECTED", "UNKNOWN_SKU")
    assert shop.gates.calls(order_id, Step.OPEN_ORDER) == 1
    assert shop.gates.calls(order_id, Step.RESERVE_STOCK) == 0
    await shop.assert_undone(basket, order_id, "UNKNOWN_SKU")
