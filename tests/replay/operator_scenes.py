"""Open orders that an operator has in hand: providers on hold, and a retry that mends nothing."""

from domain.holds import Held
from domain.keys import Step
from tests.baskets import Basket
from tests.gates import a_bug
from tests.holding import held
from tests.polling import eventually
from tests.replay.order_scenes import DEADLINE
from tests.replay.scene import Play, Scene
from tests.workflows.till import Till

#: An order looks whether a hold is over this often at the least (`tests.shop.QUICK`).
HOLD_LOOK = 14_400


def parked_again(*, mended: bool = False) -> Play:
    """The order comes back after an operator's retry, and goes on after a second one."""
    step = Step.BOOK_SHIPMENT

    async def play(till: Till, basket: Basket) -> None:
        gate = till.shop.gates.fail(basket.order_id, step, a_bug)
        await till.shop.place_in_real_time(basket)
        await till.shop.until_parked(basket.order_id, step)
        await till.redriven(basket, step, "retry")

        async def came_back() -> bool:
            return "came back from retry" in [line.state for line in await till.shop.timeline(basket.order_id)]

        await eventually(came_back)
        if mended:
            gate.open()
            await till.redriven(basket, step, "retry")
            await till.shop.ended(basket.order_id)

    return play


def while_held(party: Held, step: Step, *, released: bool = False) -> Play:
    """An operator holds a provider, and the order looks again some time after it is released."""

    async def play(till: Till, basket: Basket) -> None:
        async with held(till.shop, party):
            await till.shop.place_in_real_time(basket)
            await till.shop.gates.ended(basket.order_id, step, 1)
            if released:
                await till.forward(basket, DEADLINE)
        if released:
            await till.forward(basket, HOLD_LOOK)
            await till.shop.ended(basket.order_id)

    return play


OPERATOR_SCENES: dict[str, Scene] = {
    "confirmed-after-a-second-retry": Scene(parked_again(mended=True)),
    "confirmed-after-a-hold": Scene(while_held(Held.GATEWAY, Step.AUTHORIZE_PAYMENT, released=True)),
    "waits-for-held-gateway": Scene(while_held(Held.GATEWAY, Step.AUTHORIZE_PAYMENT)),
    "waits-for-held-courier": Scene(while_held(Held.COURIER, Step.BOOK_SHIPMENT)),
    "parked-booking-again": Scene(parked_again()),
}
