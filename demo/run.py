"""Sends the demo's orders on their way, side by side, and looks at each until it has ended."""

import asyncio
import time
from dataclasses import dataclass, field
from uuid import uuid4

from demo.cases import CURRENCY, POINTS, STORE_CREDIT, Case
from demo.doors import Doors
from domain.keys import Step, order_id_for
from domain.order import OrderStatus, PaymentStatus
from domain.views import OrderView, TimelineLine
from terminal.follow import is_over

POLL_SECONDS = 0.2
#: Far above what any of them needs: then something is wrong, and the report says so.
PATIENCE_SECONDS = 40.0


@dataclass
class Running:
    """One order of the demo on its way. `money` is kept, open hold and number of intents at the gateway."""

    case: Case
    customer_id: str
    key: str
    view: OrderView | None = None
    timeline: list[TimelineLine] = field(default_factory=list)
    stock_before: int = 0
    stock_after: int = 0
    points_after: int = 0
    credit_after: int = 0
    kept: int = 0
    held: int = 0
    intents: int = 0
    parcels: int = 0

    @property
    def order_id(self) -> str:
        """Known before the order is placed: it follows from caller and key."""
        return order_id_for(self.customer_id, self.key)

    @property
    def over(self) -> bool:
        """Whether nothing more is to come, the sale of a confirmed order's stock included."""
        if self.view is None or not is_over(self.view.status):
            return False
        sold = any(line.step == Step.COMMIT_STOCK for line in self.timeline)
        return sold or self.view.status is not OrderStatus.CONFIRMED

    def differences(self) -> list[str]:
        """What is not as it should be."""
        case, status = self.case, self.view.status if self.view else None
        pairs = {
            "status": (status, case.status),
            "reason": (self.view.reason if self.view else None, case.reason),
            "kept at the gateway": (self.kept, case.kept),
            "held at the gateway": (self.held, 0),
            "payments at the gateway": (self.intents, case.intents),
            "parcels": (self.parcels, case.parcels),
            "stock": (self.stock_after, self.stock_before - (case.quantity if case.sold else 0)),
            "points": (self.points_after, POINTS - (case.points if case.sold else 0)),
            "store credit": (self.credit_after, STORE_CREDIT - (case.store_credit if case.sold else 0)),
        }
        return [f"{name} is {actual}, not {wanted}" for name, (actual, wanted) in pairs.items() if actual != wanted]


async def prepare(doors: Doors, case: Case, run: str) -> Running:
    """A fresh customer, stock on the shelf, and the faults that wait for the order."""
    running = Running(case, f"demo-{run}-{case.name}", str(uuid4()))
    await doors.put_stock(case.sku, case.stock, case.unit_price, CURRENCY)
    await doors.put_customer(running.customer_id, POINTS, {CURRENCY: STORE_CREDIT})
    running.stock_before = await doors.available(case.sku)
    for fault in case.faults:
        await doors.fault({**fault, "order_id": running.order_id})
    return running


async def place_and_follow(doors: Doors, running: Running, *, patience_seconds: float = PATIENCE_SECONDS) -> None:
    """From `POST /orders` to the end, or until patience ends; then reads the others' books about it."""
    await doors.post_order(running.case.document(running.customer_id), running.key)
    deadline = time.monotonic() + patience_seconds
    cancelled = not running.case.cancelled_while_paying
    while not running.over and time.monotonic() < deadline:
        running.view = await doors.order(running.order_id)
        running.timeline = await doors.timeline(running.order_id)
        if not cancelled and running.view.payment.status is PaymentStatus.PROCESSING:
            await doors.cancel(running.order_id)
            assert running.view.payment.id is not None, "it processes, so it is there"
            await doors.late_yes(running.view.payment.id)
            cancelled = True
        await asyncio.sleep(POLL_SECONDS)
    await look_around(doors, running)


async def look_around(doors: Doors, running: Running) -> None:
    """Reads what the others' books say about an order."""
    running.stock_after = await doors.available(running.case.sku)
    running.points_after, credit = await doors.customer(running.customer_id)
    running.credit_after = credit.get(CURRENCY, 0)
    intents = await doors.intents(running.order_id)
    running.intents = len(intents)
    running.kept = sum(intent["captured"] - intent["refunded"] for intent in intents)
    running.held = sum(intent["authorized"] - intent["captured"] for intent in intents)
    running.parcels = await doors.parcels(running.order_id)
