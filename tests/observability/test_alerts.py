"""Each alert fires in a run in which a real shop gets into that trouble, and is quiet before it and after it."""

import asyncio

import pytest

from tests.observability.conftest import Grounds
from tests.observability.replay import Replay, alerts
from tests.observability.troubles import HOUR, STORIES

ALERTS = alerts()
#: What a machine that is busy with other things fires too, however well the shop is: a simulator that has no CPU for
#: half a second, the time-out of these shops, has given no answer.
OF_SPEED = {"ApiSlow", "StepsWaitForWorkers", "OutcomeUnknown"}


@pytest.mark.parametrize("name", sorted(ALERTS))
async def test_an_alert_fires_in_its_trouble_and_at_no_other_time(grounds: Grounds, name: str) -> None:
    trouble = await STORIES[name](grounds)
    replay = Replay()
    # Longer than any alert looks back.
    replay.hold(trouble.before, 1.5 * HOUR)
    begin = replay.scrapes[-1].at
    for samples in trouble.during:
        replay.hold(samples, trouble.each_seconds)
    end = replay.scrapes[-1].at
    replay.hold(trouble.after, 1.5 * HOUR)
    fired = replay.fires(ALERTS[name])
    assert fired, "it never fires"
    assert fired[0] > begin
    assert fired[-1] < end + 1.1 * HOUR, "it never ends"


async def test_a_shop_that_is_well_calls_nobody(grounds: Grounds) -> None:
    shop, replay = grounds.shop, Replay()

    async def ordered(payment_method: str) -> None:
        basket = await shop.basket()
        await shop.place(basket, payment_method=payment_method)
        await shop.ended(basket.order_id)

    for _ in range(2):
        replay.hold(await grounds.scrape(), 20 * 60)
        some = ["pm_card_visa"] * 5 + ["pm_card_chargeDeclined"]
        await asyncio.gather(*map(ordered, some))
    replay.hold(await grounds.scrape(), 1.5 * HOUR)
    assert {name for name, alert in ALERTS.items() if replay.fires(alert)} - OF_SPEED == set()


def test_every_alert_says_whom_it_calls_and_what_for() -> None:
    assert STORIES.keys() == ALERTS.keys()
    for alert in ALERTS.values():
        assert alert.severity in {"page", "ticket"}
        assert alert.summary
