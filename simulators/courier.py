"""The courier: parcels booked, found and cancelled by the shipper's own reference, in JSON.

| route | answer |
|---|---|
| `POST /shipments {reference, warehouse, address: {postcode, country, …}}` | 201 `{id, reference, warehouse, status: "booked"}`; the same reference again: 200 and the same parcel; 409 `cancelled` once it was cancelled; 422 `no_service` |
| `GET /shipments?reference=` | 200 the parcel, 404 `not_found` |
| `GET /shipments?limit=&starting_after=` | `{shipments, has_more}`, oldest first |
| `POST /shipments/{reference}/cancel` | 200 the parcel (again and again), 404 `not_found`, 409 `on_its_way` |

Postcodes: `00000` has no service, `50000` answers 500 and books nothing, `50400` books and never answers.
"""  # noqa: E501 - a table row is one line

import json
from typing import Any

from aiohttp import web

from simulators.calls import Answer, Call, Party, Route
from simulators.clock import Clock
from simulators.ids import new_id
from simulators.store import Store
from simulators.webhooks import Webhooks

NO_SERVICE = "00000"
DOWN = "50000"
ANSWER_LOST = "50400"
STATUSES = ("booked", "dispatched", "delivered", "cancelled")


class Courier(Party):
    """No idempotency keys: the reference is the key. Addresses are read and not kept."""

    name = "courier"

    def __init__(self, store: Store, clock: Clock, webhooks: Webhooks) -> None:
        super().__init__(store, clock)
        self._webhooks = webhooks

    @property
    def routes(self) -> list[Route]:
        """The public routes."""
        return [
            Route("POST", "/shipments", "book", self._book),
            Route("GET", "/shipments", "find", self._find),
            Route("POST", "/shipments/{reference}/cancel", "cancel", self._cancel),
        ]

    async def read(self, request: web.Request, route: Route) -> Call:
        """The order is what stands before the colon of the reference."""
        params: Any = dict(request.query)
        if route.op == "book":
            try:
                params = json.loads(await request.read())
            except ValueError:
                params = None
        params = params if isinstance(params, dict) else {}
        reference = request.match_info.get("reference") or params.get("reference")
        reference = reference if isinstance(reference, str) else None
        order_id = reference.split(":", 1)[0] if reference else None
        return Call(route.op, route.operation, params, subject=reference, key=reference, order_id=order_id)

    def execute(self, call: Call) -> Answer:
        """The operation in one transaction."""
        with self.store.transaction():
            return call.operation(call)

    def problem(self, status: int, code: str) -> dict[str, Any]:
        """The courier's error document for a made-up error."""
        return _error(code, f"answered {status} because a fault asked for it")

    def advance(self, shipment_id: str, status: str) -> dict[str, Any] | None:
        """The parcel moves to a status, with its webhook; None when there is no such parcel."""
        shipment = self.store.doc("SELECT doc FROM shipments WHERE id = ?1 OR reference = ?1", shipment_id)
        if shipment is not None:
            with self.store.transaction():
                self._move(shipment, status)
        return shipment

    def ledger(self, order_id: str | None = None) -> dict[str, Any]:
        """Parcels and calls that reached the courier: all of them, or those of one order."""
        docs = self.store.docs(
            "SELECT doc FROM shipments WHERE ?1 IS NULL OR reference LIKE ?1 || ':%' ORDER BY seq", order_id
        )
        return {"shipments": docs, "calls": [{**call, "subject": None} for call in self.calls(order_id)]}

    def _book(self, call: Call) -> Answer:
        problem = _booking_problem(call.params)
        if problem is not None:
            return Answer(400, _error("invalid_request", problem))
        postcode = call.params["address"]["postcode"]
        if postcode == DOWN:
            return Answer(500, _error("internal", "the courier is down"))
        known = self._by_reference(call.params["reference"])
        if known is not None:
            return self._again(known, lost=postcode == ANSWER_LOST)
        if postcode == NO_SERVICE:
            return Answer(422, _error("no_service", "no service to this address"))
        shipment = {
            "id": new_id("shp"),
            "reference": call.params["reference"],
            "warehouse": call.params["warehouse"],
            "status": "booked",
            "created": int(self.clock.now()),
        }
        self._keep(shipment)
        return Answer(201, shipment, lost=postcode == ANSWER_LOST)

    def _again(self, known: dict[str, Any], *, lost: bool) -> Answer:
        if known["status"] == "cancelled":
            return Answer(409, _error("cancelled", "this reference was cancelled and is not booked again"))
        return Answer(200, known, lost=lost)

    def _find(self, call: Call) -> Answer:
        if call.key is not None:
            known = self._by_reference(call.key)
            return Answer(200, known) if known else _not_found()
        limit = call.params.get("limit", "100")
        if not limit.isdigit() or not 1 <= int(limit) <= 1000:
            return Answer(400, _error("invalid_request", "limit is a number from 1 to 1000"))
        docs = self.store.docs(
            "SELECT doc FROM shipments WHERE seq > COALESCE((SELECT seq FROM shipments WHERE id = ?), 0) "
            "ORDER BY seq LIMIT ?",
            *(call.params.get("starting_after"), int(limit) + 1),
        )
        return Answer(200, {"shipments": docs[: int(limit)], "has_more": len(docs) > int(limit)})

    def _cancel(self, call: Call) -> Answer:
        known = self._by_reference(call.key or "")
        if known is None:
            return _not_found()
        if known["status"] in {"dispatched", "delivered"}:
            return Answer(409, _error("on_its_way", f"the parcel is {known['status']}"))
        if known["status"] != "cancelled":
            known["status"] = "cancelled"
            self._keep(known)
        return Answer(200, known)

    def _move(self, shipment: dict[str, Any], status: str) -> None:
        shipment["status"] = status
        self._keep(shipment)
        order_id = str(shipment["reference"]).split(":", 1)[0]
        self._webhooks.publish(f"shipment.{status}", {"object": "shipment", **shipment}, order_id)

    def _by_reference(self, reference: str) -> dict[str, Any] | None:
        return self.store.doc("SELECT doc FROM shipments WHERE reference = ?", reference)

    def _keep(self, shipment: dict[str, Any]) -> None:
        self.store.write(
            """INSERT INTO shipments (id, reference, doc) VALUES (?, ?, ?)
            ON CONFLICT (id) DO UPDATE SET doc = excluded.doc""",
            *(shipment["id"], shipment["reference"], json.dumps(shipment)),
        )


def _booking_problem(params: dict[str, Any]) -> str | None:
    for name in ("reference", "warehouse"):
        if not isinstance(params.get(name), str) or not params[name]:
            return f"{name} is a string"
    address = params.get("address")
    if not isinstance(address, dict):
        return "address is an object"
    for name in ("postcode", "country"):
        if not isinstance(address.get(name), str) or not address[name]:
            return f"address.{name} is a string"
    return None


def _error(code: str, message: str) -> dict[str, Any]:
    return {"error": {"code": code, "message": message}}


def _not_found() -> Answer:
    return Answer(404, _error("not_found", "no parcel with this reference"))
