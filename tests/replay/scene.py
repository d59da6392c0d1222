"""What a scene is: one order's way to the point at which a history is kept, and whose history that is."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from temporalio.client import WorkflowHandle

from adapters.loyalty import CustomerLevel, put_customer
from tests.baskets import Basket
from tests.shop import Shop
from tests.workflows.till import Till
from workflows.names import leftovers_workflow_id, refund_workflow_id

Play = Callable[[Till, Basket], Awaitable[None]]
Handle = WorkflowHandle[Any, Any]

#: The key of a scene's refund.
REFUND = "refund"


async def the_order(till: Till, basket: Basket) -> Handle:
    """The saga, its newest run."""
    return till.shop.saga(basket.order_id)


async def late_money(till: Till, basket: Basket) -> Handle:
    """What moves on the order's intent after its saga."""
    return await till.late_money(basket)


async def the_refund(till: Till, basket: Basket) -> Handle:
    """What an operator gives back."""
    return till.shop.client.get_workflow_handle(refund_workflow_id(basket.order_id, REFUND))


async def leftovers(till: Till, basket: Basket) -> Handle:
    """What the guard found of an undone order."""
    return till.shop.client.get_workflow_handle(leftovers_workflow_id(basket.order_id))


async def the_run(till: Till, basket: Basket) -> Handle:
    """The scene's reconciliation."""
    return till.shop.client.get_workflow_handle(run_id_of(basket))


def run_id_of(basket: Basket) -> str:
    """The id of the scene's reconciliation."""
    return f"run-{basket.order_id}"


@dataclass(frozen=True)
class Scene:
    """One order's way, what its shopper has, and whose history is `kept`. All ids come from the scene's name."""

    play: Play
    kept: Callable[[Till, Basket], Awaitable[Handle]] = the_order
    on_hand: int = 5
    points: int = 500
    credit: int = 1000
    suffix: str = ""

    async def stage(self, till: Till, name: str) -> Handle:
        """Plays the scene; the workflow of interest."""
        basket = await self._basket(till.shop, name)
        await self.play(till, basket)
        return await self.kept(till, basket)

    async def _basket(self, shop: Shop, name: str) -> Basket:
        customer = f"customer-{name}{self.suffix}"
        basket = Basket(f"A-{name}", f"B-{name}", customer, self.on_hand, self.points, self.credit, f"key-{name}")
        for sku, price in ((basket.a, 3000), (basket.b, 2000)):
            await shop.put_stock(sku, price, self.on_hand)
        level = CustomerLevel(points=self.points, store_credit={"EUR": self.credit})
        await put_customer(shop.database, customer, level, "tests")
        return basket
