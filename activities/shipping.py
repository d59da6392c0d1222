"""The shipping party: one parcel a warehouse, booked and cancelled at the courier.

Idempotent by our own reference, which the courier holds unique, and by the stamps: a booking that is already ours is
answered from them, and a cancelled one leaves a tombstone that refuses a late attempt.
"""

from contextlib import suppress

from temporalio import activity

from adapters.courier import Courier, ReferenceCancelled, Shipment
from adapters.database import Database
from adapters.http import ProviderRequestRefused
from adapters.shipments import mark_cancelled, read_address, store_shipment
from adapters.steps import Stamps, asking, enter, enter_forward, stamp, stamp_not_served
from domain.errors import NoServiceToAddress, NotServed, OrderError, StepFenced
from domain.keys import EffectKey, Step, shipment_reference
from domain.messages import ShipmentBooked, ShipmentCancelled, StepInput
from domain.order import ShipmentStatus, StepState

#: An answerless booking may land this long after it began (DESIGN, "Fences").
LOOK_AGAIN_SECONDS = 60.0


class ShippingActivities:
    """The step and the undo of the shipping queue. `item` is the warehouse."""

    def __init__(self, database: Database, courier: Courier) -> None:
        self._database = database
        self._courier = courier

    @activity.defn
    async def book_shipment(self, step: StepInput) -> ShipmentBooked:
        """Books the warehouse's parcel. Idempotent by the reference, looked up first once an attempt was made.

        Raises NoServiceToAddress; CourierUnavailable, GatewayProtocolError (unknown); NotServed; StepFenced after the
        cancel.
        """
        key = EffectKey(step.order_id, Step.BOOK_SHIPMENT, step.item, step.revision)
        reference = shipment_reference(step.order_id, step.item)
        async with self._database.begin() as connection:
            stamps = await enter_forward(connection, key)
            if stamps.done and stamps.provider_reference:
                return ShipmentBooked(warehouse=step.item, shipment_id=stamps.provider_reference)
            address = await read_address(connection, step.order_id)
            began = await stamp(connection, key, StepState.INTENDED, attempt=activity.info().attempt)
        try:
            async with asking(self._database, key, activity.info().attempt):
                shipment = await self._courier.find(reference) if StepState.INTENDED in stamps.states else None
                shipment = shipment or await self._courier.book(reference, step.item, address)
        except NotServed:
            async with self._database.begin() as connection:
                await stamp_not_served(connection, key, stamps, began)
            raise
        except NoServiceToAddress as refusal:
            async with self._database.begin() as connection:
                await stamp(connection, key, StepState.REFUSED, reason=refusal.reason.value)
            raise
        except ReferenceCancelled:
            raise StepFenced(str(key)) from None
        if shipment.status is ShipmentStatus.CANCELLED:
            raise StepFenced(str(key))
        return await self._book(key, shipment)

    @activity.defn
    async def cancel_shipment(self, step: StepInput) -> ShipmentCancelled:
        """Undoes a booking, whether its answer came or not. Harmless twice and when nothing was booked.

        Idempotent by the reference. Says when to look again if nothing was found although a booking was sent and never
        answered: seconds until LOOK_AGAIN_SECONDS have passed since it began. Raises CourierUnavailable,
        GatewayProtocolError, NotServed.
        """
        forward = EffectKey(step.order_id, Step.BOOK_SHIPMENT, step.item)
        undo = EffectKey(step.order_id, Step.CANCEL_SHIPMENT, step.item, step.revision)
        async with self._database.begin() as connection:
            stamps = await enter(connection, forward)
            await stamp(connection, forward, StepState.UNDONE)
            await stamp(connection, undo, StepState.INTENDED, attempt=activity.info().attempt)
        async with asking(self._database, undo, activity.info().attempt):
            shipment = await self._courier.cancel(shipment_reference(step.order_id, step.item))
        async with self._database.begin() as connection:
            await mark_cancelled(connection, step.order_id, step.item)
            await stamp(connection, undo, StepState.DONE, provider_reference=shipment.id if shipment else None)
        return ShipmentCancelled(look_again_after_seconds=None if shipment else _look_again_after(stamps))

    async def _book(self, key: EffectKey, shipment: Shipment) -> ShipmentBooked:
        """Makes the booking ours, unless the cancel came in between: then it is ended at the courier."""
        async with self._database.begin() as connection:
            undone = (await enter(connection, key)).undone
            if not undone:
                await store_shipment(connection, key.order_id, key.item, shipment)
                await stamp(connection, key, StepState.DONE, provider_reference=shipment.id)
        if undone:
            with suppress(OrderError, ProviderRequestRefused):
                await self._courier.cancel(shipment.reference)
            raise StepFenced(str(key))
        return ShipmentBooked(warehouse=key.item, shipment_id=shipment.id)


def _look_again_after(stamps: Stamps) -> float | None:
    """None when no booking is unanswered, or when the newest one began long enough ago."""
    if not stamps.unanswered or stamps.seconds_since_intended is None:
        return None
    left = LOOK_AGAIN_SECONDS - stamps.seconds_since_intended
    return left if left > 0 else None
