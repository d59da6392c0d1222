"""The kinds of orders that stream in, and how often each comes."""

from dataclasses import dataclass, field
from typing import Any

CURRENCY = "EUR"
UNIT_PRICE = 2_000
#: What each customer begins with. Few customers share many orders, so that they compete for it.
POINTS = 500
STORE_CREDIT = 1_000

#: Its stock lies in two warehouses, and no order of a few pieces can be sent from one alone.
SPREAD = "drill-spread"
PLENTY = "drill-plenty"
#: It costs nothing: the gateway is not asked.
GIFT = "drill-gift"
#: Fewer pieces than are wanted: whoever oversells shows it here.
SCARCE = "drill-scarce"


@dataclass(frozen=True)
class Kind:
    """One kind of order. `weight`: how often it comes among all; faults wait at a provider for this order alone."""

    name: str
    weight: int
    sku: str = PLENTY
    quantity: int = 1
    payment_method: str = "pm_card_visa"
    postcode: str = "10115"
    customer_suffix: str = ""
    points: int = 0
    store_credit: int = 0
    faults: tuple[dict[str, Any], ...] = field(default=())

    def document(self, customer_id: str) -> dict[str, Any]:
        """The body of `POST /orders`."""
        return {
            "customer_id": customer_id,
            "currency": CURRENCY,
            "lines": [{"sku": self.sku, "quantity": self.quantity}],
            "payment_method": self.payment_method,
            "points": self.points,
            "store_credit": self.store_credit,
            "email": f"{customer_id}@example.com",
            "shipping_address": {
                "name": "Alice Example",
                "line1": "Invalidenstraße 116",
                "city": "Berlin",
                "postcode": self.postcode,
                "country": "DE",
            },
            "channel": "drill",
        }


KINDS = (
    Kind("card", 30),
    Kind("points and credit", 10, quantity=2, points=300, store_credit=400),
    Kind("nothing to pay", 3, sku=GIFT),
    Kind("two warehouses", 8, sku=SPREAD, quantity=3),
    Kind("scarce goods", 12, sku=SCARCE, points=100),
    Kind("webhook lost", 6, payment_method="pm_sim_silent"),
    Kind("3-D Secure", 6, payment_method="pm_card_authenticationRequired"),
    Kind("bank takes its time", 4, payment_method="pm_sim_never"),
    Kind("declined", 6, payment_method="pm_card_chargeDeclined", points=100),
    Kind("fraud", 3, payment_method="pm_card_radarBlock", store_credit=100),
    Kind("suspicious", 5, customer_suffix="-score-95"),
    Kind("no service", 4, postcode="00000", points=100),
    Kind("courier down", 2, postcode="50000"),
    Kind("booking answer lost", 5, postcode="50400"),
    Kind("hold answer lost", 4, faults=({"op": "confirm", "mode": "drop"},)),
    Kind("capture answer lost", 4, faults=({"op": "capture", "mode": "drop"},)),
    Kind("capture fails at first", 3, faults=({"op": "capture", "mode": "error"},)),
)
