"""After the evil: what an operator does until nothing is open or parked any more."""

import asyncio
import time
from contextlib import suppress
from uuid import uuid4

from sqlalchemy import select
from temporalio.client import Client, WorkflowFailureError
from temporalio.service import RPCError

from adapters.database import Database
from adapters.tables import orders, review_items
from domain.keys import Step
from domain.order import CLOSED_STATUSES, OrderStatus
from domain.reconciliation import RunKind
from drill.clients import Shoppers
from drill.shop import Shop
from drill.watch import Watch
from runtime.schedules import run_now

ROUND_SECONDS = 2.0
#: Of suspicious orders, the reviewer lets this part pass.
APPROVED = 0.5
#: Of the orders whose run was ended by force, so many are given up.
UNDONE_AFTER_DEATH = 0.3
#: The guard looks again this often while something is open: what it calls lost has been silent for a minute.
GUARD_EVERY_ROUNDS = 8


class Operator:
    """Decides reviews all the time, and redrives what is parked once the shop is healed."""

    def __init__(self, shop: Shop, client: Client, database: Database, shoppers: Shoppers) -> None:
        self._shop = shop
        self._client = client
        self._database = database
        self._shoppers = shoppers
        self.redriven = 0
        self.reviewed = 0

    async def review_all(self) -> None:
        """Approves or rejects the orders that wait for a person."""
        query = select(orders.c.order_id).where(orders.c.status == OrderStatus.AWAITING_REVIEW)
        async with self._database.begin() as connection:
            waiting = list(await connection.scalars(query))
        for order_id in waiting:
            approved = self._chance(order_id) < APPROVED
            decision = {"decision": "approve" if approved else "reject", "reason": "drill"}
            path = f"{self._shop.operator}/ops/orders/{order_id}/review"
            status, _ = await self._shop.ask("POST", path, decision, key=str(uuid4()))
            self.reviewed += status == 202

    async def guard(self) -> None:
        """Has the guard look now, instead of within five minutes: it finds the runs that were ended by force."""
        with suppress(RPCError, WorkflowFailureError):
            await run_now(self._client, RunKind.GUARD)

    async def redrive_all(self) -> None:
        """Retries every parked step; of the orders whose run was ended, some are undone instead."""
        query = (
            select(review_items.c.order_id, review_items.c.step, review_items.c.item)
            .where(review_items.c.closed_at.is_(None))
            .order_by(review_items.c.opened_at)
        )
        async with self._database.begin() as connection:
            parked = [tuple(row) for row in await connection.execute(query)]
        for order_id, step, item in parked:
            undo = step == Step.OPEN_ORDER and self._chance(order_id) < UNDONE_AFTER_DEATH
            for action in ("compensate", "retry") if undo else ("retry",):
                body = {"step": step, "action": action, "reason": "drill: all is healed", "item": item or None}
                path = f"{self._shop.operator}/ops/orders/{order_id}/redrive"
                status, _ = await self._shop.ask("POST", path, body, key=str(uuid4()))
                if status == 202:
                    self.redriven += 1
                    break

    async def answer_the_banks(self) -> None:
        """The bank decides in the end about every payment that still waits."""
        query = select(orders.c.order_id).where(orders.c.status.not_in(sorted(CLOSED_STATUSES)))
        async with self._database.begin() as connection:
            waiting = list(await connection.scalars(query))
        for order_id in waiting:
            await self._shoppers.answer_the_bank(order_id, self._chance(order_id), at_last=True)

    async def until_quiet(self, watch: Watch, shoppers: asyncio.Task[None], patience_seconds: float) -> bool:
        """Mends until no shopper waits and nothing is open or parked; False when patience ends before."""
        deadline, rounds = time.monotonic() + patience_seconds, 0
        while time.monotonic() < deadline:
            if rounds % GUARD_EVERY_ROUNDS == 0:
                await self.guard()
            await self.review_all()
            await self.redrive_all()
            await self.answer_the_banks()
            await watch.count()
            if shoppers.done() and not watch.open and not watch.parked:
                return True
            rounds += 1
            await asyncio.sleep(ROUND_SECONDS)
        return False

    def _chance(self, order_id: str) -> float:
        return next((one.planned.chance for one in self._shoppers.placed if one.order_id == order_id), 0.0)
