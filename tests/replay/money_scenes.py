"""Money after an order's saga: what moves by itself, what the saga hands over, and what an operator gives back."""

from datetime import timedelta

from domain.keys import Step
from tests.baskets import Basket
from tests.gates import a_bug
from tests.replay.order_scenes import authenticating, cancelled_by_customer, ends, unavailable
from tests.replay.scene import REFUND, Play, Scene, late_money, the_refund
from tests.workflows.refunding import CLOSED, CREATED, over, refund
from tests.workflows.till import FOREVER, Till

#: Money that is on its way is asked after once a day (`workflows.money`).
LOOK = timedelta(days=1, seconds=10)
#: By then a refund has had its tries, and does not look again yet (`domain.policy`).
ALL_TRIES = timedelta(minutes=2)


def money_came(status: str, *, broken: bool = False) -> Play:
    """Money moves at the gateway after the order was undone."""

    async def play(till: Till, basket: Basket) -> None:
        await cancelled_by_customer(till, basket)
        if broken:
            till.shop.gates.fail(basket.order_id, Step.SETTLE_LATE_MONEY, a_bug)
        await till.force(basket, status)
        if broken:
            await till.shop.until_parked(basket.order_id, Step.SETTLE_LATE_MONEY)
        else:
            await till.shop.gates.ended(basket.order_id, Step.SETTLE_LATE_MONEY, 1)
            await till.settled(basket)

    return play


def disputed(ending: str | None = None) -> Play:
    """The shopper's bank takes the money back, and gives it again where the dispute is won; or an operator skips it."""

    async def play(till: Till, basket: Basket) -> None:
        await ends()(till, basket)
        await till.event(basket, CREATED)
        await till.parked(basket, Step.SETTLE_LATE_MONEY, status="CONFIRMED")
        if ending == "skip":
            await till.redriven(basket, Step.SETTLE_LATE_MONEY, "skip")
        elif ending:
            await till.event(basket, CLOSED, status=ending)
        if ending:
            await till.settled(basket)

    return play


async def contradicted(till: Till, basket: Basket) -> None:
    """The gateway does not know of the captured money any more."""
    await ends()(till, basket)
    await till.force(basket, "requires_payment_method")
    await till.parked(basket, Step.SETTLE_LATE_MONEY, status="CONFIRMED")


def undone_with_a_refund_on_its_way(word: str | None = None, action: str | None = None) -> Play:
    """The saga's own refund is pending when the saga ends; days later no webhook tells the bank's word."""

    async def play(till: Till, basket: Basket) -> None:
        await till.fault(basket, "webhook", "lose", times=FOREVER)
        await till.waiting(basket, "pm_sim_never")
        await till.force(basket, "succeeded")
        await till.fault(basket, "refund", "pending")
        with till.shop.standing_still():
            assert (await till.shop.cancel(basket.order_id))[0] == 202
            await till.shop.ended(basket.order_id)
            await till.shop.gates.ended(basket.order_id, Step.SETTLE_LATE_MONEY, 1)
        if word:
            await till.decide_refund(basket, word)
            await till.environment.fast_forward(await till.late_money(basket), LOOK)
        if action:
            await till.parked(basket, Step.SETTLE_LATE_MONEY, status="CANCELLED_COMPENSATED")
            await till.redriven(basket, Step.SETTLE_LATE_MONEY, action)
        if word:
            await till.settled(basket)

    return play


async def bad_news_while_confirming(till: Till, basket: Basket) -> None:
    """A dispute that the gateway tells of after it was last asked."""
    gate = till.shop.gates.hold(basket.order_id, Step.COMMIT_STOCK)
    await till.shop.place_in_real_time(basket)
    await gate.reached()
    assert await till.became(await till.event(basket, CREATED)) == "delivered"
    gate.open()
    await till.shop.ended(basket.order_id)


def refunded(amount: int | None = None) -> Play:
    """An operator gives money back at once."""

    async def play(till: Till, basket: Basket) -> None:
        await ends()(till, basket)
        assert await refund(till, basket, amount, key=REFUND) == (202, "")
        await over(till, basket, REFUND)

    return play


def refund_on_its_way(word: str | None = None, action: str | None = None) -> Play:
    """The bank takes its time, and an operator decides about what it sends back."""

    async def play(till: Till, basket: Basket) -> None:
        await ends()(till, basket)
        await till.fault(basket, "refund", "pending")
        with till.shop.standing_still():
            assert await refund(till, basket, key=REFUND) == (202, "")
            await till.payment_becomes(basket, "REFUND_PENDING")
            if word:
                await till.decide_refund(basket, word)
            if word == "failed":
                await till.parked(basket, Step.REFUND_PAYMENT, status="CONFIRMED")
            if action:
                await till.redriven(basket, Step.REFUND_PAYMENT, action)
            if action or word == "succeeded":
                await over(till, basket, REFUND)
                await till.settled(basket)

    return play


async def refund_asked_after(till: Till, basket: Basket) -> None:
    """The webhook of a pending refund is lost."""
    await refund_on_its_way()(till, basket)
    await till.fault(basket, "webhook", "lose", times=FOREVER)
    await till.decide_refund(basket, "succeeded")
    handle = await the_refund(till, basket)
    await till.environment.fast_forward(handle, LOOK)
    await handle.result()


async def refund_unanswered(till: Till, basket: Basket) -> None:
    """The gateway gives no answer: the refund looks again by itself."""
    await ends()(till, basket)
    till.shop.gates.fail(basket.order_id, Step.REFUND_PAYMENT, unavailable)
    with till.shop.standing_still():
        assert await refund(till, basket, key=REFUND) == (202, "")
        await till.shop.gates.ended(basket.order_id, Step.REFUND_PAYMENT, 1)
    await till.environment.fast_forward(await the_refund(till, basket), ALL_TRIES)
    await till.parked(basket, Step.REFUND_PAYMENT, status="CONFIRMED")


async def refund_refused(till: Till, basket: Basket) -> None:
    """Nothing was taken yet."""
    await authenticating(None)(till, basket)
    assert await refund(till, basket, key=REFUND) == (409, "not-confirmed")


MONEY_SCENES: dict[str, Scene] = {
    # Money that moves after its order has ended.
    "late-money-refunded": Scene(money_came("succeeded"), late_money),
    "late-money-freed": Scene(money_came("requires_capture"), late_money),
    "late-money-parked": Scene(money_came("succeeded", broken=True), late_money),
    "late-money-disputed": Scene(disputed(), late_money),
    "late-money-dispute-won": Scene(disputed("won"), late_money),
    "late-money-dispute-skipped": Scene(disputed("skip"), late_money),
    "late-money-contradicted": Scene(contradicted, late_money),
    "late-money-tells-a-refund": Scene(refund_on_its_way("succeeded"), late_money),
    # What a saga hands over at its end.
    "handed-over-a-refund": Scene(undone_with_a_refund_on_its_way()),
    "handed-over-bad-news": Scene(bad_news_while_confirming),
    "late-money-waits-for-bank": Scene(undone_with_a_refund_on_its_way(), late_money),
    "late-money-asked-after": Scene(undone_with_a_refund_on_its_way("succeeded"), late_money),
    "late-money-refunded-anew": Scene(undone_with_a_refund_on_its_way("failed", "retry"), late_money),
    # What an operator gives back.
    "refund-full": Scene(refunded(), the_refund),
    "refund-partial": Scene(refunded(1000), the_refund),
    "refund-refused": Scene(refund_refused, the_refund),
    "refund-waits-for-bank": Scene(refund_on_its_way(), the_refund),
    "refund-arrived": Scene(refund_on_its_way("succeeded"), the_refund),
    "refund-asked-after": Scene(refund_asked_after, the_refund),
    "refund-parked": Scene(refund_on_its_way("failed"), the_refund),
    "refund-parked-unanswered": Scene(refund_unanswered, the_refund),
    "refund-redriven": Scene(refund_on_its_way("failed", "retry"), the_refund),
    "refund-skipped": Scene(refund_on_its_way("failed", "skip"), the_refund),
}
