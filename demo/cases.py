"""The orders of the demo: what each one meets on its way, and how it has to end."""

from dataclasses import dataclass, field
from typing import Any

from domain.order import CancelReason, OrderStatus

UNIT_PRICE = 2_000
CURRENCY = "EUR"
#: What each customer of the demo has before the order.
POINTS = 500
STORE_CREDIT = 1_000


@dataclass(frozen=True)
class Case:
    """One order. Amounts in cents; `stock` is what lies in each warehouse before it."""

    name: str
    story: str
    status: OrderStatus = OrderStatus.CONFIRMED
    reason: CancelReason | None = None
    quantity: int = 1
    unit_price: int = UNIT_PRICE
    stock: dict[str, int] = field(default_factory=lambda: {"berlin": 5})
    payment_method: str = "pm_card_visa"
    postcode: str = "10115"
    points: int = 0
    store_credit: int = 0
    #: Faults at the gateway that wait for this order.
    faults: tuple[dict[str, Any], ...] = ()
    #: The shopper cancels once the bank works on the payment, and the bank's yes comes after that.
    cancelled_while_paying: bool = False
    #: Payments that the gateway must know of it.
    intents: int = 1

    @property
    def sold(self) -> bool:
        """Whether the shopper gets the goods."""
        return self.status is OrderStatus.CONFIRMED

    @property
    def kept(self) -> int:
        """What the gateway must have taken and not given back."""
        return self.quantity * self.unit_price - self.points - self.store_credit if self.sold else 0

    @property
    def parcels(self) -> int:
        """Live shipments that the courier must have."""
        return len(self.stock) if self.sold else 0

    @property
    def sku(self) -> str:
        """Its own product, so that its stock can be told apart."""
        return f"demo-{self.name}"

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
            "channel": "demo",
        }


_UNDONE = OrderStatus.CANCELLED_COMPENSATED

CASES = (
    Case("confirmed", "paid by card, sent from two warehouses", quantity=3, stock={"berlin": 2, "porto": 2}),
    Case("points", "points and store credit pay a part of it", quantity=2, points=500, store_credit=300),
    Case(
        "declined",
        "the card is declined",
        _UNDONE,
        CancelReason.CARD_DECLINED,
        payment_method="pm_card_chargeDeclined",
        points=200,
    ),
    Case("sold-out", "one piece too few", _UNDONE, CancelReason.OUT_OF_STOCK, quantity=6, points=200, intents=0),
    Case(
        "no-courier",
        "the courier does not go there",
        _UNDONE,
        CancelReason.NO_SERVICE_TO_ADDRESS,
        postcode="00000",
        points=200,
    ),
    Case("answer-lost", "the gateway's answer gets lost", faults=({"op": "confirm", "mode": "drop"},)),
    Case("webhook-lost", "the gateway's webhook never comes", payment_method="pm_sim_silent"),
    Case(
        "cancelled",
        "cancelled while paying; the bank says yes too late",
        _UNDONE,
        CancelReason.CANCELLED_BY_CUSTOMER,
        payment_method="pm_sim_never",
        points=200,
        cancelled_while_paying=True,
    ),
)
