"""Goods and customers to try the shop with."""

from adapters.database import Database
from adapters.loyalty import CustomerLevel, put_customer
from adapters.stock import StockLevel, put_stock, read_stock

ACTOR = "seed"
PLENTY = 1_000_000

#: SKU → where it lies. Prices in the currency's smallest unit; `sold-out` has a price and nothing to sell.
GOODS: dict[str, list[StockLevel]] = {
    "tea-green": [StockLevel(warehouse="berlin", on_hand=PLENTY, unit_price=1_250, currency="EUR")],
    "mug-blue": [
        StockLevel(warehouse="berlin", on_hand=PLENTY, unit_price=990, currency="EUR"),
        StockLevel(warehouse="porto", on_hand=PLENTY, unit_price=990, currency="EUR"),
    ],
    "kettle-steel": [StockLevel(warehouse="porto", on_hand=PLENTY, unit_price=4_900, currency="EUR")],
    "sold-out": [StockLevel(warehouse="berlin", on_hand=0, unit_price=1_500, currency="EUR")],
    "tea-sencha": [StockLevel(warehouse="osaka", on_hand=PLENTY, unit_price=1_800, currency="JPY")],
    "coffee-cardamom": [StockLevel(warehouse="kuwait", on_hand=PLENTY, unit_price=2_750, currency="KWD")],
    "mug-enamel": [StockLevel(warehouse="austin", on_hand=PLENTY, unit_price=1_400, currency="USD")],
}

CUSTOMERS: dict[str, CustomerLevel] = {
    "alice": CustomerLevel(points=500, store_credit={"EUR": 500}),
    "bob": CustomerLevel(points=0),
    "yuki": CustomerLevel(points=300, store_credit={"JPY": 1_000}),
}


async def seed(url: str) -> None:
    """Once for a database: the last of the goods marks it as done. What somebody changed since stays as it is."""
    database = Database(url, application="seed", pool_size=2)
    try:
        if await read_stock(database, list(GOODS)[-1]):
            return
        for customer_id, customer in CUSTOMERS.items():
            await put_customer(database, customer_id, customer, ACTOR)
        for sku, levels in GOODS.items():
            for level in levels:
                await put_stock(database, sku, level, ACTOR)
    finally:
        await database.close()
