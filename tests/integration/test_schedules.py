"""The guard and the nights start by Temporal's clock, also where the clocks of people change."""

from collections.abc import AsyncIterator
from datetime import UTC, date, datetime, timedelta
from uuid import uuid4
from zoneinfo import ZoneInfo

import pytest
import pytest_asyncio
from temporalio.client import (
    Client,
    Schedule,
    ScheduleActionStartWorkflow,
    ScheduleCalendarSpec,
    ScheduleHandle,
    ScheduleOverlapPolicy,
    ScheduleRange,
    ScheduleSpec,
)

from runtime.schedules import ensure_schedules, nightly_spec
from runtime.settings import Settings, SettingsError, load_settings

BERLIN = "Europe/Berlin"
#: The last Sundays of March and October 2027.
SPRING, AUTUMN = date(2027, 3, 28), date(2027, 10, 31)


@pytest_asyncio.fixture
async def schedules(temporal: Client) -> AsyncIterator[dict[str, ScheduleHandle]]:
    """Both schedules as a start of the shop leaves them."""
    await ensure_schedules(temporal, Settings(_env_file=None))
    found = {name: temporal.get_schedule_handle(name) for name in ("guard", "nightly-reconciliation")}
    yield found
    for handle in found.values():
        await handle.delete()


async def begins(temporal: Client, spec: ScheduleSpec, night: date) -> list[datetime]:
    """When Temporal would start it in the three days around a night."""
    middle = datetime(night.year, night.month, night.day, 12, tzinfo=UTC)
    spec.start_at, spec.end_at = middle - timedelta(hours=36), middle + timedelta(hours=36)
    action = ScheduleActionStartWorkflow("Nothing", id="nothing", task_queue="nobody-serves-it")
    handle = await temporal.create_schedule(f"probe-{uuid4()}", Schedule(action=action, spec=spec))
    found = (await handle.describe()).info.next_action_times
    await handle.delete()
    return list(found)


@pytest.mark.parametrize("night", [SPRING, AUTUMN])
async def test_both_nights_in_which_clocks_change_have_one_run(temporal: Client, night: date) -> None:
    found = await begins(temporal, nightly_spec(BERLIN), night)
    local = [at.astimezone(ZoneInfo(BERLIN)) for at in found]
    assert [at.date() for at in local] == [night - timedelta(days=1), night, night + timedelta(days=1)]
    assert {(at.hour, at.minute) for at in local} == {(3, 30)}


async def test_an_hour_that_the_clocks_leave_out_would_have_none(temporal: Client) -> None:
    half_past_two = ScheduleCalendarSpec(hour=[ScheduleRange(2)], minute=[ScheduleRange(30)])
    found = await begins(temporal, ScheduleSpec(calendars=[half_past_two], time_zone_name=BERLIN), SPRING)
    assert SPRING not in [at.astimezone(ZoneInfo(BERLIN)).date() for at in found]


async def test_a_run_that_still_goes_on_is_not_overtaken(schedules: dict[str, ScheduleHandle]) -> None:
    for handle in schedules.values():
        schedule = (await handle.describe()).schedule
        assert schedule.policy.overlap is ScheduleOverlapPolicy.SKIP
    guard = (await schedules["guard"].describe()).schedule
    assert [interval.every for interval in guard.spec.intervals] == [timedelta(minutes=5)]


async def test_a_restart_brings_a_schedule_up_to_the_settings_and_leaves_it_paused(
    temporal: Client, schedules: dict[str, ScheduleHandle]
) -> None:
    nightly = schedules["nightly-reconciliation"]
    await nightly.pause(note="the courier moves house")
    await ensure_schedules(temporal, Settings(_env_file=None, reconcile_time_zone="America/New_York"))
    schedule = (await nightly.describe()).schedule
    assert schedule.spec.time_zone_name == "America/New_York"
    assert (schedule.state.paused, schedule.state.note) == (True, "the courier moves house")


def test_a_time_zone_that_does_not_exist_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECONCILE_TIME_ZONE", "Europe/Atlantis")
    with pytest.raises(SettingsError, match="RECONCILE_TIME_ZONE is wrong: a name of the time zone database"):
        load_settings(from_stack=False)
