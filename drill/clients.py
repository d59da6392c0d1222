"""The shoppers of a drill: they place their orders, answer their bank, and change their minds."""

import asyncio
import time
from contextlib import suppress
from dataclasses import dataclass, field

from temporalio.client import Client
from temporalio.service import RPCError

from domain.keys import order_id_for
from drill.kinds import CURRENCY, GIFT, PLENTY, POINTS, SCARCE, SPREAD, STORE_CREDIT, UNIT_PRICE
from drill.plan import Canceller, Plan, PlannedOrder
from drill.shop import Shop
from runtime.entry import EntryError
from workflows.names import order_workflow_id

#: One scarce piece for so many orders of the drill.
SCARCE_ONE_IN = 16
#: The bank is answered within this part of the payment's deadline by most shoppers; the others leave it.
AUTHENTICATED, REFUSED = 0.6, 0.8
WATCH_SECONDS = 1.0
#: Cancelling through Temporal is one request; the server may be down.
CANCEL_TRIES = 60


@dataclass
class Placed:
    """One order that was answered with 202, and what its shopper was told about a cancel."""

    planned: PlannedOrder
    order_id: str
    cancel_accepted: bool = False
    cancel_refused: bool = False


@dataclass
class Shoppers:
    """All shoppers of one drill. `clients` of them are at the door at a time."""

    shop: Shop
    client: Client
    plan: Plan
    clients: int
    placed: list[Placed] = field(default_factory=list)
    #: Ids in order of acceptance, shared with whoever wants to strike them.
    begun: list[str] = field(default_factory=list)

    async def stock_the_shelves(self) -> dict[str, int]:
        """Goods, points and credit for all. Returns the pieces on the shelf, by SKU."""
        scarce = max(1, len(self.plan.orders) // SCARCE_ONE_IN)
        shelf = {PLENTY: {"berlin": 10_000}, GIFT: {"berlin": 1_000}, SCARCE: {"berlin": scarce}}
        shelf[SPREAD] = {"berlin": 10_000, "porto": 10_000}
        for sku, levels in shelf.items():
            for warehouse, pieces in levels.items():
                level = {"warehouse": warehouse, "on_hand": pieces, "currency": CURRENCY}
                level["unit_price"] = 0 if sku == GIFT else UNIT_PRICE
                await self.shop.expect("PUT", f"{self.shop.operator}/ops/stock/{sku}", level)
        wanted = {self._customer(order) for order in self.plan.orders}
        level = {"points": POINTS, "store_credit": {CURRENCY: STORE_CREDIT}}
        for customer in sorted(wanted):
            await self.shop.expect("PUT", f"{self.shop.operator}/ops/customers/{customer}", level)
        return {sku: sum(levels.values()) for sku, levels in shelf.items()}

    async def stream(self) -> None:
        """Places every order at its time, and sees to it until its shopper has nothing more to do."""
        began, queue = time.monotonic(), iter(self.plan.orders)
        at_the_bank: set[asyncio.Task[None]] = set()

        async def client() -> None:
            for order in queue:
                await asyncio.sleep(max(0.0, began + order.at_seconds - time.monotonic()))
                placed = await self._place(order)
                at_the_bank.add(asyncio.create_task(self._see_to(placed)))

        async with asyncio.TaskGroup() as group:
            for _ in range(self.clients):
                group.create_task(client())
        await asyncio.gather(*at_the_bank)

    async def answer_the_bank(self, order_id: str, chance: float, *, at_last: bool = False) -> bool:
        """What the order's shopper or bank does about a payment that waits; False: there is nothing to do.

        `at_last`: nobody leaves it open any more. A payment that processes is asked after for a day otherwise.
        """
        payment = (await self.shop.order(order_id))["payment"]
        if payment["status"] not in {"REQUIRES_ACTION", "PROCESSING"}:
            return False
        outcome = "success" if chance < AUTHENTICATED else "fail" if at_last or chance < REFUSED else "abandon"
        await self.shop.ask(
            "POST", f"{self.shop.gateway}/_sim/intents/{payment['id']}/authenticate", {"outcome": outcome}
        )
        return True

    def _customer(self, order: PlannedOrder) -> str:
        return f"drill-{self.plan.seed}-{order.customer}{order.kind.customer_suffix}"

    async def _place(self, order: PlannedOrder) -> Placed:
        """Orders as an app does: under one key until the answer is there."""
        customer, key = self._customer(order), f"drill-{self.plan.seed}-{order.number}"
        document = order.kind.document(customer)
        for fault in order.kind.faults:
            about = {**fault, "order_id": order_id_for(customer, key)}
            await self.shop.expect("POST", f"{self.shop.gateway}/_sim/faults", about)
        answer = await self.shop.expect("POST", f"{self.shop.shopper}/orders", document, key=key)
        placed = Placed(order, str(answer["order_id"]))
        self.placed.append(placed)
        self.begun.append(placed.order_id)
        return placed

    async def _see_to(self, placed: Placed) -> None:
        order = placed.planned
        if order.cancel_after_seconds is not None:
            await asyncio.sleep(order.cancel_after_seconds)
            await self._cancel(placed)
        if order.kind.payment_method in {"pm_card_authenticationRequired", "pm_sim_never"}:
            await asyncio.sleep(WATCH_SECONDS + order.chance)
            await self.answer_the_bank(placed.order_id, order.chance)

    async def _cancel(self, placed: Placed) -> None:
        if placed.planned.canceller is Canceller.SHOPPER:
            path = f"{self.shop.shopper}/orders/{placed.order_id}/cancel"
            with suppress(EntryError):  # told neither yes nor no: nothing is promised
                status, _ = await self.shop.ask("POST", path, {}, key=f"cancel-{placed.order_id}")
                placed.cancel_accepted, placed.cancel_refused = status == 202, status == 409
            return
        for _ in range(CANCEL_TRIES):
            try:
                await self.client.get_workflow_handle(order_workflow_id(placed.order_id)).cancel()
                return
            except RPCError:  # not started yet, or nobody answers
                await asyncio.sleep(WATCH_SECONDS)
