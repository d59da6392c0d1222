"""Books that were not made call by call: thousands of payments and parcels at once, as after years of business.

`POST /_sim/books` on the gateway's port takes `{intents: [{id, order_id, amount, currency, status, refunded?,
created?}]}`, on the courier's `{shipments: [{id, reference, warehouse, status}]}`. What is there under the same id is
replaced. No webhook tells of it.
"""

import json
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from aiohttp import web

from simulators.clock import Clock
from simulators.control import bad_request, read_object
from simulators.intents import HOLD_SECONDS, Intent
from simulators.store import Store

_STATUSES = ("requires_capture", "succeeded", "canceled")


def add_bulk(app: web.Application, store: Store, clock: Clock, name: str) -> None:
    """The route, for `intents` or `shipments`."""
    keep: Callable[[Store, float, dict[str, Any]], None] = {"intents": _keep_intent, "shipments": _keep_shipment}[name]

    async def take(request: web.Request) -> web.Response:
        rows = (await read_object(request)).get(name)
        if not isinstance(rows, list):
            raise bad_request(f"{name} is a list")
        try:
            with store.transaction():
                for row in rows:
                    keep(store, clock.now(), row)
        except (KeyError, TypeError, ValueError) as error:
            raise bad_request(f"one of {name} is wrong: {error}") from None
        return web.json_response({name: len(rows)})

    app.router.add_post("/_sim/books", take)


def _keep_intent(store: Store, now: float, row: dict[str, Any]) -> None:
    if row["status"] not in _STATUSES:
        raise ValueError(f"status is one of {', '.join(_STATUSES)}")
    held, taken = row["status"] == "requires_capture", row["status"] == "succeeded"
    intent = Intent(
        id=row["id"],
        amount=row["amount"],
        currency=row["currency"].lower(),
        created=row.get("created", int(now)),
        capture_method="manual",
        metadata={"order_id": row["order_id"]},
        client_secret=f"{row['id']}_secret",
        status=row["status"],
        payment_method="pm_card_visa",
        amount_capturable=row["amount"] if held else 0,
        amount_received=row["amount"] if taken else 0,
        amount_refunded=row.get("refunded", 0),
        latest_charge=f"ch_{row['id']}",
        hold_expires=now + HOLD_SECONDS if held else None,
    )
    store.write(
        "INSERT OR REPLACE INTO intents (id, order_id, created, settling, hold_expires, doc) VALUES (?, ?, ?, 0, ?, ?)",
        *(intent.id, intent.order_id, intent.created, intent.hold_expires, json.dumps(asdict(intent))),
    )
    if intent.amount_refunded:
        refund = {
            "id": f"re_{intent.id}",
            "object": "refund",
            "amount": intent.amount_refunded,
            "charge": intent.latest_charge,
            "created": intent.created,
            "currency": intent.currency,
            "metadata": {},
            "payment_intent": intent.id,
            "reason": None,
            "status": "succeeded",
            "failure_reason": None,
        }
        store.write(
            "INSERT OR REPLACE INTO refunds (id, intent_id, doc) VALUES (?, ?, ?)",
            *(refund["id"], intent.id, json.dumps(refund)),
        )


def _keep_shipment(store: Store, now: float, row: dict[str, Any]) -> None:
    shipment = {name: row[name] for name in ("id", "reference", "warehouse", "status")} | {"created": int(now)}
    store.write(
        "INSERT OR REPLACE INTO shipments (id, reference, doc) VALUES (?, ?, ?)",
        *(shipment["id"], shipment["reference"], json.dumps(shipment)),
    )
