"""What a test orders, under ids that no other test has."""

import uuid
from dataclasses import dataclass, field
from typing import Any

from domain.keys import order_id_for
from tests.builders import an_order_document


def fresh(name: str) -> str:
    """An id nobody else uses."""
    return f"{name}-{uuid.uuid4().hex[:12]}"


@dataclass
class Basket:
    """One test's own A at 30.00 and B at 20.00, so many on hand of each, and its customer with points and credit."""

    a: str
    b: str
    customer: str
    on_hand: int = 5
    points: int = 500
    credit: int = 0
    key: str = field(default_factory=lambda: fresh("key"))

    @property
    def order_id(self) -> str:
        """The id that the order will have, known before it is placed."""
        return order_id_for(self.customer, self.key)

    def document(self, **changes: Any) -> dict[str, Any]:
        """1×A + 1×B for 50.00."""
        lines = [{"sku": self.a, "quantity": 1}, {"sku": self.b, "quantity": 1}]
        return an_order_document(**{"customer_id": self.customer, "lines": lines} | changes)
