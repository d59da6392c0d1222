"""The stamps of effects: what an attempt may conclude from them, and what it may not."""

from adapters.database import Database
from adapters.steps import begun_effects, enter, stamp, stamp_not_served
from domain.keys import EffectKey, Step
from domain.order import StepState


async def test_not_now_says_nothing_about_an_attempt_that_began_meanwhile(database: Database) -> None:
    key = EffectKey("order", Step.BOOK_SHIPMENT, "main")
    async with database.begin() as connection:
        before = await enter(connection, key)
        first = await stamp(connection, key, StepState.INTENDED)
    async with database.begin() as connection:
        second = await stamp(connection, key, StepState.INTENDED, attempt=2)
    for began, unanswered in ((first, True), (second, False)):
        async with database.begin() as connection:
            await stamp_not_served(connection, key, before, began)
        async with database.begin() as connection:
            assert (await enter(connection, key)).unanswered is unanswered


async def test_an_order_that_ran_has_begun_everything_though_its_books_know_nothing_of_it(database: Database) -> None:
    """The books were restored to an older time."""
    async with database.begin() as connection:
        assert await begun_effects(connection, "order") == []
        begun = await begun_effects(connection, "order", ran=True)
    assert [effect.step for effect in begun] == [
        Step.RESERVE_STOCK,
        Step.BURN_POINTS,
        Step.APPLY_STORE_CREDIT,
        Step.AUTHORIZE_PAYMENT,
    ]
