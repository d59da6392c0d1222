"""What becomes of an order, step by step: one test a row of docs/failure-table.md."""

from tests.shop import Shop


async def test_an_order_is_confirmed_paid_and_shipped_once(shop: Shop) -> None:
    basket = await shop.basket()
    order_id = await shop.order(basket.document())
    await shop.ended(order_id)
    await shop.assert_clean(basket, order_id)


async def test_a_declined_card_releases_the_stock_and_cancels_the_order(shop: Shop) -> None:
    basket = await shop.basket()
    order_id = await shop.order(basket.document(payment_method="pm_card_chargeDeclined"))
    await shop.ended(order_id)
    await shop.assert_undone(basket, order_id, "CARD_DECLINED")
