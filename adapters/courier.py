"""The courier: bookings are made, found and cancelled by our own reference, which it holds unique."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from urllib.parse import quote

from adapters.holds import BeforeEffect, let_pass
from adapters.http import Answer, HttpParty, refused
from domain.errors import CourierUnavailable, GatewayProtocolError, NoServiceToAddress, NotServed
from domain.order import ShipmentStatus

#: The most that the courier puts on a page.
PAGE = 1000


@dataclass(frozen=True)
class Shipment:
    """One parcel as the courier knows it."""

    id: str
    reference: str
    status: ShipmentStatus


class ReferenceCancelled(Exception):
    """The courier holds this reference as cancelled: it will not be booked again."""


class Courier:
    """Client of the courier's HTTP API.

    Raises CourierUnavailable (outcome unknown), NotServed (certainly no effect) or GatewayProtocolError (an answer
    that is not understood), besides what the methods say. `before_effect` is asked before a booking or a cancel is
    sent: what it raises is raised, and nothing is sent.
    """

    def __init__(self, base_url: str, *, timeout_seconds: float, before_effect: BeforeEffect = let_pass) -> None:
        self._before_effect = before_effect
        self._http = HttpParty(base_url, timeout_seconds=timeout_seconds, unavailable=CourierUnavailable)

    async def book(self, reference: str, warehouse: str, address: dict[str, object]) -> Shipment:
        """Books a parcel. Idempotent by `reference`: asked again, the courier answers with the same shipment.

        Raises NoServiceToAddress, and ReferenceCancelled after a cancel.
        """
        await self._before_effect()
        answer = await self._http.request(
            "POST", "/shipments", json_body={"reference": reference, "warehouse": warehouse, "address": address}
        )
        if answer.ok:
            return _shipment(answer, reference)
        if answer.status == 422 and answer.code() == "no_service":
            raise NoServiceToAddress(reference)
        if answer.status == 409 and answer.code() == "cancelled":
            raise ReferenceCancelled(reference)
        raise _unusable(answer)

    async def find(self, reference: str) -> Shipment | None:
        """The shipment under our reference, or None when the courier has none (yet)."""
        answer = await self._http.request("GET", "/shipments", params={"reference": reference})
        return _found(answer, reference)

    async def cancel(self, reference: str) -> Shipment | None:
        """Cancels by our reference, harmless when done twice; None when the courier has no such shipment."""
        await self._before_effect()
        answer = await self._http.request("POST", f"/shipments/{quote(reference, safe=':')}/cancel")
        shipment = _found(answer, reference)
        if shipment is not None and shipment.status is not ShipmentStatus.CANCELLED:
            raise GatewayProtocolError("still booked after a cancel")
        return shipment

    async def list_shipments(self, *, after: str | None = None) -> AsyncIterator[Shipment]:
        """Every shipment that the courier has, or booked `after` this one, page by page (for the books)."""
        params = {"limit": str(PAGE)} | ({"starting_after": after} if after else {})
        while True:
            answer = await self._http.request("GET", "/shipments", params=params)
            if not answer.ok:
                raise refused(answer)
            body = answer.json_object()
            items, more = body.get("shipments"), body.get("has_more")
            if not isinstance(items, list) or (more and not items):
                raise GatewayProtocolError("shipments")
            shipments = [_parsed(item) for item in items]
            for shipment in shipments:
                yield shipment
            if not more:
                return
            params["starting_after"] = shipments[-1].id

    async def close(self) -> None:
        """Closes the HTTP session."""
        await self._http.close()


def _parsed(body: object) -> Shipment:
    if not isinstance(body, dict):
        raise GatewayProtocolError("shipment")
    identity, reference, status = body.get("id"), body.get("reference"), body.get("status")
    if not isinstance(identity, str) or not isinstance(reference, str) or not isinstance(status, str):
        raise GatewayProtocolError("shipment")
    if status.upper() not in ShipmentStatus.__members__:
        raise GatewayProtocolError("shipment status")
    return Shipment(identity, reference, ShipmentStatus(status.upper()))


def _found(answer: Answer, reference: str) -> Shipment | None:
    # Only the courier's own word means "no such shipment": a proxy's page must not be read as one.
    if answer.status == 404 and answer.code() == "not_found":
        return None
    if not answer.ok:
        raise _unusable(answer)
    return _shipment(answer, reference)


def _unusable(answer: Answer) -> Exception:
    if answer.status == 409 and answer.code() == "in_flight":
        return NotServed("HTTP 409")
    return refused(answer)


def _shipment(answer: Answer, reference: str) -> Shipment:
    shipment = _parsed(answer.json_object())
    if shipment.reference != reference:
        raise GatewayProtocolError("another reference")
    return shipment
