"""Parcels: booked once, cancelled whatever became of the booking, and looked for again when one may still land."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest
import pytest_asyncio
from sqlalchemy import func, select, text, update
from temporalio.testing import ActivityEnvironment

from activities.shipping import ShippingActivities
from adapters.courier import Courier
from adapters.database import Database
from adapters.tables import order_steps, shipments
from domain.errors import CourierUnavailable, GatewayProtocolError, NoServiceToAddress, NotServed, StepFenced
from domain.messages import ShipmentBooked, ShipmentCancelled, StepInput
from tests.builders import an_accepted_order, an_order_document, the_fixture_products
from tests.polling import eventually
from tests.simulated import Desk, a_desk

ANOTHERS = {"id": "shp_1", "reference": "another:main", "status": "booked"}


@dataclass(frozen=True)
class Dispatch:
    """The shipping party in a test, with the courier's own book to read."""

    database: Database
    desk: Desk
    activities: ShippingActivities
    courier: Courier

    async def order(self, postcode: str = "SW1Y 4JH") -> str:
        """An accepted order to this postcode."""
        address = an_order_document()["shipping_address"] | {"postcode": postcode}
        return await an_accepted_order(self.database, shipping_address=address)

    async def book(self, order_id: str, warehouse: str = "main") -> ShipmentBooked:
        """One attempt."""
        step = StepInput(order_id=order_id, item=warehouse)
        booked: ShipmentBooked = await ActivityEnvironment().run(self.activities.book_shipment, step)
        return booked

    async def cancel(self, order_id: str, warehouse: str = "main") -> ShipmentCancelled:
        """One attempt."""
        step = StepInput(order_id=order_id, item=warehouse)
        cancelled: ShipmentCancelled = await ActivityEnvironment().run(self.activities.cancel_shipment, step)
        return cancelled

    async def fault(self, **fault: Any) -> str:
        """Posts a fault to the courier."""
        return await self.desk.fault(self.desk.simulators.courier_url, **fault)

    async def until_held_up(self) -> None:
        """Until a call hangs at the courier."""

        async def look() -> bool:
            return any(fault["held"] for fault in (await self.desk.control("GET", "faults"))["faults"])

        await eventually(look)

    async def parcels(self, order_id: str) -> list[str]:
        """The order's parcels at the courier, by status."""
        ledger = await self.desk.ledger(self.desk.simulators.courier_url)
        return [one["status"] for one in ledger["shipments"] if one["reference"].startswith(order_id)]

    async def calls(self, order_id: str, op: str) -> int:
        """How often the courier was asked."""
        ledger = await self.desk.ledger(self.desk.simulators.courier_url)
        return sum(call["order_id"] == order_id and call["op"] == op for call in ledger["calls"])

    async def rows(self, order_id: str) -> list[tuple[str, str]]:
        """Warehouse and status of the order's rows."""
        async with self.database.begin() as connection:
            query = select(shipments.c.warehouse, shipments.c.status).where(shipments.c.order_id == order_id)
            return [(row.warehouse, row.status) for row in await connection.execute(query)]

    async def stamps(self, order_id: str) -> set[tuple[str, str]]:
        """Step and state of each stamp."""
        async with self.database.begin() as connection:
            query = select(order_steps.c.step, order_steps.c.state).where(order_steps.c.order_id == order_id)
            return {(row.step, row.state) for row in await connection.execute(query)}

    async def age_attempts(self, order_id: str, seconds: int) -> None:
        """As if everything so far had been done that long ago."""
        async with self.database.begin() as connection:
            earlier = func.clock_timestamp() - text(f"interval '{seconds} seconds'")
            await connection.execute(
                update(order_steps).where(order_steps.c.order_id == order_id).values(last_at=earlier)
            )


@pytest_asyncio.fixture
async def dispatch(database: Database) -> AsyncIterator[Dispatch]:
    await the_fixture_products(database)
    async with a_desk() as desk:
        courier = Courier(desk.simulators.courier_url, timeout_seconds=10)
        yield Dispatch(database, desk, ShippingActivities(database, courier), courier)
        await courier.close()


async def test_each_warehouse_gets_its_own_parcel(dispatch: Dispatch) -> None:
    order_id = await dispatch.order()
    booked = [await dispatch.book(order_id, warehouse) for warehouse in ("north", "south")]
    assert len({one.shipment_id for one in booked}) == 2
    assert sorted(await dispatch.rows(order_id)) == [("north", "BOOKED"), ("south", "BOOKED")]
    assert await dispatch.parcels(order_id) == ["booked", "booked"]
    assert ("book_shipment", "done") in await dispatch.stamps(order_id)


async def test_booking_twice_gives_the_same_parcel_and_asks_the_courier_once(dispatch: Dispatch) -> None:
    order_id = await dispatch.order()
    first, second = await dispatch.book(order_id), await dispatch.book(order_id)
    assert first == second
    assert await dispatch.calls(order_id, "book") == 1


async def test_bookings_at_once_make_one_parcel(dispatch: Dispatch) -> None:
    order_id = await dispatch.order()
    booked = await asyncio.gather(*(dispatch.book(order_id) for _ in range(5)))
    assert len(set(booked)) == 1
    assert await dispatch.parcels(order_id) == ["booked"]


async def test_a_booking_whose_answer_was_lost_is_found_by_the_next_attempt(dispatch: Dispatch) -> None:
    order_id = await dispatch.order(postcode="50400")
    with pytest.raises(CourierUnavailable):
        await dispatch.book(order_id)
    await dispatch.book(order_id)
    assert await dispatch.parcels(order_id) == ["booked"]
    assert await dispatch.calls(order_id, "book") == 1


async def test_an_address_without_service_is_a_refusal_and_needs_no_second_look(dispatch: Dispatch) -> None:
    order_id = await dispatch.order(postcode="00000")
    with pytest.raises(NoServiceToAddress):
        await dispatch.book(order_id)
    assert ("book_shipment", "refused") in await dispatch.stamps(order_id)
    cancelled = await dispatch.cancel(order_id)
    assert cancelled == ShipmentCancelled()


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        ({"mode": "error", "status": 500}, CourierUnavailable),
        ({"mode": "drop"}, CourierUnavailable),
        ({"mode": "error", "status": 503, "retry_after": 4}, NotServed),
        ({"mode": "conflict"}, NotServed),
        ({"mode": "answer", "body": "<html>Welcome</html>"}, GatewayProtocolError),
        (
            {"mode": "answer", "body": ANOTHERS},
            GatewayProtocolError,
        ),
    ],
)
async def test_what_the_courier_did_not_clearly_say_is_asked_again(
    dispatch: Dispatch, fault: dict[str, Any], error: type[Exception]
) -> None:
    order_id = await dispatch.order()
    await dispatch.fault(op="book", **fault)
    with pytest.raises(error):
        await dispatch.book(order_id)
    assert await dispatch.rows(order_id) == []
    await dispatch.book(order_id)
    assert await dispatch.parcels(order_id) == ["booked"]


async def test_a_booked_parcel_is_cancelled_once_however_often_it_is_undone(dispatch: Dispatch) -> None:
    order_id = await dispatch.order()
    await dispatch.book(order_id)
    for _ in range(2):
        assert await dispatch.cancel(order_id) == ShipmentCancelled()
    assert await dispatch.parcels(order_id) == ["cancelled"]
    assert await dispatch.rows(order_id) == [("main", "CANCELLED")]
    assert {("book_shipment", "undone"), ("cancel_shipment", "done")} <= await dispatch.stamps(order_id)


async def test_a_booking_whose_answer_was_lost_is_cancelled_by_our_reference(dispatch: Dispatch) -> None:
    order_id = await dispatch.order(postcode="50400")
    with pytest.raises(CourierUnavailable):
        await dispatch.book(order_id)
    assert await dispatch.cancel(order_id) == ShipmentCancelled()
    assert await dispatch.parcels(order_id) == ["cancelled"]


async def test_where_nothing_was_ever_booked_the_undo_is_done_at_once(dispatch: Dispatch) -> None:
    order_id = await dispatch.order()
    assert await dispatch.cancel(order_id) == ShipmentCancelled()
    with pytest.raises(StepFenced):
        await dispatch.book(order_id)
    assert await dispatch.calls(order_id, "book") == 0


async def test_a_booking_that_hangs_and_lands_after_the_undo_is_cancelled_by_its_attempt(
    dispatch: Dispatch,
) -> None:
    order_id = await dispatch.order()
    fault = await dispatch.fault(op="book", mode="hang")
    late = asyncio.create_task(dispatch.book(order_id))
    await dispatch.until_held_up()
    cancelled = await dispatch.cancel(order_id)
    assert cancelled.look_again_after_seconds is not None
    assert 50 < cancelled.look_again_after_seconds <= 60
    await dispatch.desk.control("DELETE", f"faults/{fault}")
    with pytest.raises(StepFenced):
        await late
    assert await dispatch.parcels(order_id) == ["cancelled"]
    assert await dispatch.rows(order_id) == []


async def test_a_booking_that_lands_when_its_attempt_is_gone_is_found_by_the_second_look(dispatch: Dispatch) -> None:
    order_id = await dispatch.order()
    fault = await dispatch.fault(op="book", mode="hang")
    gone = asyncio.create_task(dispatch.book(order_id))
    await dispatch.until_held_up()
    gone.cancel()
    await asyncio.wait([gone])
    assert (await dispatch.cancel(order_id)).look_again_after_seconds is not None
    await dispatch.desk.control("DELETE", f"faults/{fault}")

    async def landed() -> bool:
        return await dispatch.parcels(order_id) == ["booked"]

    await eventually(landed)
    assert await dispatch.cancel(order_id) == ShipmentCancelled()
    assert await dispatch.parcels(order_id) == ["cancelled"]


async def test_a_minute_after_the_last_attempt_nobody_needs_to_look_again(dispatch: Dispatch) -> None:
    order_id = await dispatch.order(postcode="50000")
    with pytest.raises(CourierUnavailable):
        await dispatch.book(order_id)
    await dispatch.age_attempts(order_id, 61)
    assert await dispatch.cancel(order_id) == ShipmentCancelled()


async def test_a_courier_that_only_said_not_now_has_no_parcel_that_could_still_appear(dispatch: Dispatch) -> None:
    order_id = await dispatch.order()
    await dispatch.fault(op="*", mode="error", status=503, times=2)
    for _ in range(2):
        with pytest.raises(NotServed):
            await dispatch.book(order_id)
    assert ("book_shipment", "not_served") in await dispatch.stamps(order_id)
    assert await dispatch.cancel(order_id) == ShipmentCancelled()


async def test_not_now_says_nothing_about_an_attempt_before_or_after_it_that_was_not_answered(
    dispatch: Dispatch,
) -> None:
    before, after = await dispatch.order(), await dispatch.order()
    lost: dict[str, Any] = {"op": "book", "mode": "error", "status": 500}
    not_now: dict[str, Any] = {"op": "*", "mode": "error", "status": 503}
    for order_id, faults in ((before, (lost, not_now)), (after, (not_now, lost))):
        for fault in faults:
            await dispatch.fault(**fault)
            with pytest.raises((CourierUnavailable, NotServed)):
                await dispatch.book(order_id)
        assert ("book_shipment", "unknown") in await dispatch.stamps(order_id)
        assert (await dispatch.cancel(order_id)).look_again_after_seconds is not None


@pytest.mark.parametrize("fault", [{"mode": "drop"}, {"mode": "error", "status": 500}, {"mode": "answer", "body": "?"}])
async def test_a_cancel_without_a_clear_answer_is_repeated(dispatch: Dispatch, fault: dict[str, Any]) -> None:
    order_id = await dispatch.order()
    await dispatch.book(order_id)
    await dispatch.fault(op="cancel", **fault)
    with pytest.raises((CourierUnavailable, GatewayProtocolError)):
        await dispatch.cancel(order_id)
    assert ("cancel_shipment", "done") not in await dispatch.stamps(order_id)
    assert await dispatch.cancel(order_id) == ShipmentCancelled()
    assert await dispatch.parcels(order_id) == ["cancelled"]


async def test_a_parcel_that_the_courier_has_cancelled_is_not_taken_for_booked(dispatch: Dispatch) -> None:
    order_id = await dispatch.order(postcode="50400")
    with pytest.raises(CourierUnavailable):
        await dispatch.book(order_id)
    await dispatch.courier.cancel(f"{order_id}:main")
    with pytest.raises(StepFenced):
        await dispatch.book(order_id)
    assert await dispatch.rows(order_id) == []


async def test_the_couriers_book_lists_every_parcel(dispatch: Dispatch) -> None:
    order_ids = [await dispatch.order() for _ in range(3)]
    for order_id in order_ids:
        await dispatch.book(order_id)
    listed = [shipment.reference async for shipment in dispatch.courier.list_shipments()]
    assert listed == [f"{order_id}:main" for order_id in order_ids]
