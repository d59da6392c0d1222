"""The payments party in a test: its activities on a real database and the simulated gateway, and both books to read."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from sqlalchemy import select, update
from temporalio.testing import ActivityEnvironment

from activities.late_money import LateMoneyActivities
from activities.payments import PaymentsActivities
from adapters.database import Database
from adapters.payment_gateway import PaymentGateway
from adapters.tables import money_movements, order_steps, orders, payments, refunds
from domain.messages import MoneyInput, PaymentView, StepInput
from domain.order import OrderStatus, PaymentStatus
from tests.builders import an_accepted_order, the_fixture_products
from tests.polling import eventually
from tests.simulated import Desk, a_desk

#: 1×A and 1×B.
DUE = 5000

Activity = Callable[[StepInput], Awaitable[PaymentView]]


class Till:
    """One shop's payments."""

    def __init__(self, database: Database, desk: Desk, gateway: PaymentGateway) -> None:
        self.database = database
        self.desk = desk
        self.gateway = gateway
        self.activities = PaymentsActivities(database, gateway)
        self.late = LateMoneyActivities(database, gateway, self.activities)

    async def order(self, payment_method: str = "pm_card_visa", **changes: Any) -> str:
        """An accepted order of 50.00 EUR."""
        return await an_accepted_order(self.database, payment_method=payment_method, **changes)

    async def run(self, step: Activity, order_id: str, revision: int = 1, *, of_run: str = "first") -> PaymentView:
        """One attempt of a step, by this run of a workflow."""
        environment = ActivityEnvironment()
        environment.info = replace(environment.info, workflow_run_id=of_run)
        view: PaymentView = await environment.run(step, StepInput(order_id=order_id, revision=revision))
        return view

    async def authorize(self, order_id: str, revision: int = 1) -> PaymentView:
        """One attempt."""
        return await self.run(self.activities.authorize_payment, order_id, revision)

    async def read(self, order_id: str) -> PaymentView:
        """One look-up."""
        return await self.run(self.activities.read_payment, order_id)

    async def capture(self, order_id: str, revision: int = 1) -> PaymentView:
        """One attempt."""
        return await self.run(self.activities.capture_payment, order_id, revision)

    async def release(self, order_id: str, revision: int = 1, *, of_run: str = "first") -> PaymentView:
        """One attempt."""
        return await self.run(self.activities.release_payment, order_id, revision, of_run=of_run)

    async def abandon(self, order_id: str) -> PaymentView:
        """One attempt."""
        return await self.run(self.activities.abandon_payment, order_id)

    async def settle(self, order_id: str, intent_id: str | None) -> PaymentView:
        """One attempt at late money."""
        money = MoneyInput(order_id=order_id, intent_id=intent_id or "none")
        view: PaymentView = await ActivityEnvironment().run(self.late.settle_late_money, money)
        return view

    async def read_until(self, order_id: str, status: PaymentStatus) -> PaymentView:
        """Looks up until the gateway says so."""

        async def look() -> PaymentView | None:
            view = await self.read(order_id)
            return view if view.status is status else None

        view = await eventually(look)
        assert view is not None
        return view

    async def a_held_order(self) -> str:
        """An order whose money is held."""
        order_id = await self.order()
        await self.authorize(order_id)
        await self.read_until(order_id, PaymentStatus.AUTHORIZED)
        return order_id

    async def a_captured_order(self) -> str:
        """An order whose money is taken."""
        order_id = await self.a_held_order()
        await self.capture(order_id)
        return order_id

    async def close_undone(self, order_id: str) -> None:
        """The order ends as compensated."""
        for status in (OrderStatus.COMPENSATING, OrderStatus.CANCELLED_COMPENSATED):
            async with self.database.begin() as connection:
                await connection.execute(
                    update(orders).where(orders.c.order_id == order_id).values(status=status.value, stage=status.value)
                )

    async def at_gateway(self, order_id: str) -> dict[str, Any]:
        """The gateway's own book about the order's only intent."""
        intents = await self.intents(order_id)
        assert len(intents) == 1, intents
        return intents[0]

    async def intents(self, order_id: str) -> list[dict[str, Any]]:
        """All of the order's intents at the gateway."""
        ledger = await self.desk.control("GET", f"ledger?order_id={order_id}")
        found: list[dict[str, Any]] = ledger["intents"]
        return found

    async def held(self, order_id: str) -> int:
        """What the gateway holds for the order and has not taken, over all intents."""
        return sum(intent["authorized"] - intent["captured"] for intent in await self.intents(order_id))

    async def kept(self, order_id: str) -> int:
        """What the gateway has taken for the order and not given back, over all intents."""
        return sum(intent["captured"] - intent["refunded"] for intent in await self.intents(order_id))

    async def calls(self, order_id: str, op: str) -> list[dict[str, Any]]:
        """What reached the gateway for the order."""
        ledger = await self.desk.control("GET", f"ledger?order_id={order_id}")
        return [call for call in ledger["calls"] if call["op"] == op]

    async def row(self, order_id: str) -> Any:
        """The order's row in `payments`."""
        async with self.database.begin() as connection:
            return (await connection.execute(select(payments).where(payments.c.order_id == order_id))).one_or_none()

    async def refund_rows(self, order_id: str) -> list[tuple[str, int]]:
        """Status and amount of the order's rows in `refunds`."""
        async with self.database.begin() as connection:
            rows = await connection.execute(
                select(refunds.c.status, refunds.c.amount)
                .where(refunds.c.order_id == order_id)
                .order_by(refunds.c.created_at)
            )
            return [(row.status, row.amount) for row in rows]

    async def movements(self, order_id: str) -> list[tuple[str, int]]:
        """Kind and amount of each movement, in order."""
        async with self.database.begin() as connection:
            rows = await connection.execute(
                select(money_movements.c.kind, money_movements.c.amount)
                .where(money_movements.c.order_id == order_id)
                .order_by(money_movements.c.at)
            )
            return [(row.kind, row.amount) for row in rows]

    async def stamps(self, order_id: str) -> set[tuple[str, str]]:
        """Step and state of each stamp."""
        async with self.database.begin() as connection:
            rows = await connection.execute(
                select(order_steps.c.step, order_steps.c.state).where(order_steps.c.order_id == order_id)
            )
            return {(row.step, row.state) for row in rows}

    async def hanging(self, op: str) -> str:
        """A fault that holds the next call of `op`; returns its id."""
        return await self.desk.fault(op=op, mode="hang")

    async def until_held_up(self, fault_id: str) -> None:
        """Until a call hangs at the gateway."""

        async def look() -> bool:
            faults = await self.desk.control("GET", "faults")
            return any(fault["id"] == fault_id and fault["held"] for fault in faults["faults"])

        await eventually(look)

    async def forget_faults(self) -> None:
        """The gateway is well again; what hangs goes on."""
        await self.desk.control("DELETE", "faults")

    async def let_go(self, fault_id: str) -> None:
        """What hangs goes on."""
        await self.desk.control("DELETE", f"faults/{fault_id}")


@asynccontextmanager
async def a_till(database: Database, *, timeout_seconds: float = 10) -> AsyncIterator[Till]:
    """A till with a gateway of its own and the fixture's products."""
    await the_fixture_products(database)
    async with a_desk() as desk:
        gateway = PaymentGateway(
            "sk_test_simulated", base_url=desk.simulators.gateway_url, timeout_seconds=timeout_seconds
        )
        try:
            yield Till(database, desk, gateway)
        finally:
            await gateway.close()
