"""The payments of a shop that skips time: ways to bring one to a certain point, and the gateway's own book to read."""

import asyncio
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from sqlalchemy import select
from temporalio.client import WorkflowHandle
from temporalio.testing import WorkflowEnvironment

from adapters.tables import money_movements, webhook_inbox
from domain.messages import PaymentView
from domain.views import NeedsReview, OrderView
from tests.baskets import Basket
from tests.polling import eventually
from tests.shop import Shop
from workflows.money import MoneyWorkflow
from workflows.names import money_workflow_id

#: A fault of this many hits outlives every test.
FOREVER = 100_000

#: Who works with the gateway beside us, under a key of their own.
SOMEBODY = {"Authorization": "Bearer sk_test_somebody"}

CAPTURABLE = "payment_intent.amount_capturable_updated"


@dataclass
class Till:
    """One shop, and the clock of its orders."""

    shop: Shop
    environment: WorkflowEnvironment

    async def baskets(self, number: int, *, on_hand: int = 5) -> list[Basket]:
        """Baskets that share nothing."""
        return list(await asyncio.gather(*(self.shop.basket(on_hand=on_hand) for _ in range(number))))

    async def fault(self, basket: Basket, op: str, mode: str, **more: Any) -> str:
        """A fault of the gateway that meets only this basket's order."""
        return await self.shop.fault(op, mode, order_id=basket.order_id, **more)

    async def waiting(self, basket: Basket, payment_method: str, payment: str = "PROCESSING", **changes: Any) -> Basket:
        """Places the order in real time, and waits until it waits for the gateway's word."""
        await self.shop.place_in_real_time(basket, payment_method=payment_method, **changes)

        await self.payment_becomes(basket, payment)
        return basket

    async def forward(self, basket: Basket, seconds: float) -> None:
        """Lets so much of the order's own time go by."""
        await self.environment.fast_forward(self.shop.saga(basket.order_id), timedelta(seconds=seconds))

    async def parked(self, basket: Basket, step: str, *, status: str = "NEEDS_REVIEW") -> NeedsReview:
        """The order's only review item, once this step is parked and the shopper is told of it."""

        async def look() -> OrderView | None:
            view = await self.shop.view(basket.order_id)
            return view if view.status == status and [one.step for one in view.needs_review] == [step] else None

        # Twenty tries of a capture come before its park.
        view = await eventually(look, within_seconds=20)
        assert view is not None
        return view.needs_review[0]

    async def intent(self, basket: Basket) -> dict[str, Any]:
        """The order's only intent in the gateway's own book."""
        intents = await self.shop.intents(basket.order_id)
        assert len(intents) == 1, intents
        return intents[0]

    async def calls(self, basket: Basket, op: str | None = None) -> list[dict[str, Any]]:
        """What of this order reached the gateway, oldest first."""
        url = f"{self.shop.simulators.gateway_url}/_sim/ledger?order_id={basket.order_id}"
        async with self.shop.http.get(url) as answer:
            return [call for call in (await answer.json())["calls"] if op in {None, call["op"]}]

    async def keys(self, basket: Basket, op: str) -> list[str]:
        """The idempotency keys of the calls of one kind."""
        return [call["key"] for call in await self.calls(basket, op)]

    async def authenticate(self, basket: Basket, outcome: str) -> None:
        """The shopper's 3-D Secure, or the bank's late word on a payment that processes."""
        await self.shop.sim(f"intents/{(await self.intent(basket))['id']}/authenticate", outcome=outcome)

    async def force(self, basket: Basket, status: str) -> None:
        """Money moves at the gateway against all rules."""
        await self.shop.sim(f"intents/{(await self.intent(basket))['id']}/force", status=status)

    async def cancel_at_gateway(self, basket: Basket) -> None:
        """Somebody ends the intent in the gateway's own dashboard."""
        await self._by_hand(f"payment_intents/{(await self.intent(basket))['id']}/cancel")

    async def take_at_gateway(self, basket: Basket, amount: int) -> None:
        """Somebody captures so much of the hold in the gateway's own dashboard."""
        await self._by_hand(f"payment_intents/{(await self.intent(basket))['id']}/capture", amount_to_capture=amount)

    async def read(self, basket: Basket) -> dict[str, Any]:
        """The order's intent as the gateway tells it."""
        url = f"{self.shop.simulators.gateway_url}/v1/payment_intents/{(await self.intent(basket))['id']}"
        async with self.shop.http.get(url, headers=SOMEBODY) as answer:
            found: dict[str, Any] = await answer.json()
            return found

    async def refunds(self, basket: Basket) -> list[dict[str, Any]]:
        """The order's refunds at the gateway, the newest first."""
        url = f"{self.shop.simulators.gateway_url}/v1/refunds"
        params = {"payment_intent": (await self.intent(basket))["id"]}
        async with self.shop.http.get(url, params=params, headers=SOMEBODY) as answer:
            found: list[dict[str, Any]] = (await answer.json())["data"]
            return found

    async def money(self, basket: Basket, kind: str) -> list[int]:
        """Our own movements of one kind of the order's money."""
        query = select(money_movements.c.amount).where(
            money_movements.c.order_id == basket.order_id, money_movements.c.kind == kind
        )
        async with self.shop.database.begin() as connection:
            return list(await connection.scalars(query))

    async def decide_refund(self, basket: Basket, status: str) -> None:
        """The bank's word on the order's only refund."""
        [refund] = await self.refunds(basket)
        await self.shop.sim(f"refunds/{refund['id']}", status=status)

    async def payment_becomes(self, basket: Basket, status: str) -> bool:
        """Until the shopper is told this about the money."""

        async def look() -> bool:
            return (await self.shop.view(basket.order_id)).payment.status == status

        return await eventually(look)

    async def redriven(self, basket: Basket, step: str, action: str) -> None:
        """An operator's word on a step that may still be moving from the last one."""

        async def decide() -> bool:
            return await self.shop.redrive(basket.order_id, step, action) == 202

        await eventually(decide)

    async def captured(self, basket: Basket) -> None:
        """Until the gateway has taken the money."""

        async def look() -> bool:
            return bool((await self.intent(basket))["status"] == "succeeded")

        await eventually(look)

    async def stock_is_back(self, basket: Basket) -> None:
        """Until all pieces can be sold again and the points are the customer's own."""

        async def look() -> bool:
            return all([await self.shop.available(sku) == basket.on_hand for sku in (basket.a, basket.b)])

        await eventually(look)

    async def _by_hand(self, path: str, **params: Any) -> None:
        url = f"{self.shop.simulators.gateway_url}/v1/{path}"
        async with self.shop.http.post(url, data=params, headers=SOMEBODY) as answer:
            assert answer.ok, await answer.text()

    async def event(
        self, basket: Basket, kind: str = CAPTURABLE, *, intent: str | None = None, **overrides: Any
    ) -> str:
        """A signed event about the order's intent, stored by the shop when this returns; its id."""
        about = intent or (await self.intent(basket))["id"]
        sent = await self.shop.sim("events", type=kind, intent=about, overrides=overrides)
        assert sent["status"] == 200
        return str(sent["id"])

    async def became(self, event_id: str) -> str:
        """What became of an event, once it does not wait any more."""

        async def look() -> str | None:
            async with self.shop.database.begin() as connection:
                query = select(webhook_inbox.c.state).where(webhook_inbox.c.event_id == event_id)
                state = str((await connection.execute(query)).scalar_one())
            return None if state == "waiting" else state

        state = await eventually(look)
        assert state is not None
        return state

    async def late_money(self, basket: Basket) -> WorkflowHandle[MoneyWorkflow, PaymentView | None]:
        """The workflow of late money on the order's intent."""
        intent = await self.intent(basket)
        return self.shop.client.get_workflow_handle_for(MoneyWorkflow.run, money_workflow_id(intent["id"]))

    async def settled(self, basket: Basket) -> None:
        """Until nobody deals with late money on the order's intent any more."""
        await (await self.late_money(basket)).result()

    async def sent(self, basket: Basket) -> list[str]:
        """Types of the events that the gateway has made about the order, the oldest first."""
        async with self.shop.http.get(f"{self.shop.simulators.gateway_url}/_sim/events") as answer:
            return [one["type"] for one in (await answer.json())["events"] if one["order_id"] == basket.order_id]

    async def held_up(self, fault_id: str) -> None:
        """Until a call hangs at the gateway."""

        async def look() -> bool:
            async with self.shop.http.get(f"{self.shop.simulators.gateway_url}/_sim/faults") as answer:
                faults = (await answer.json())["faults"]
            return any(fault["id"] == fault_id and fault["held"] for fault in faults)

        await eventually(look)

    async def confirmed(self, *baskets: Basket) -> None:
        """Until the orders have ended: each confirmed, paid and shipped once, and told so once."""

        async def one(basket: Basket) -> None:
            await self.shop.ended(basket.order_id)
            await self.shop.assert_clean(basket, basket.order_id)

        await asyncio.gather(*map(one, baskets))

    async def undone(self, *baskets: Basket, reason: str) -> None:
        """Until the orders have ended: each undone in every book, and told so once."""

        async def one(basket: Basket) -> None:
            await self.shop.ended(basket.order_id)
            await self.shop.assert_undone(basket, basket.order_id, reason)

        await asyncio.gather(*map(one, baskets))

    async def pay_at_once(self, *baskets: Basket, **changes: Any) -> None:
        """Places the orders side by side; their waits are skipped."""
        await asyncio.gather(*(self.shop.place(basket, **changes) for basket in baskets))
