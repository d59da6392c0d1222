"""The fraud scorer: `POST /score {order_id, customer_id, amount, currency}` → `{order_id, score}`, 0 good to 100 bad.

A customer id that ends in `-score-NN` scores NN; any other scores low, and always the same.
"""

import hashlib
import json
import re
from typing import Any

from aiohttp import web

from simulators.calls import Answer, Call, Party, Route

_TOLD = re.compile(r"-score-(\d{1,3})$")
#: Scores without being told stay below this: no review asks for less than 90.
_HARMLESS_BELOW = 30


def score_of(customer_id: str) -> int:
    """The customer's score."""
    told = _TOLD.search(customer_id)
    if told:
        return min(int(told[1]), 100)
    return hashlib.sha256(customer_id.encode()).digest()[0] % _HARMLESS_BELOW


class FraudScorer(Party):
    """Keeps nothing but the ledger of its calls."""

    name = "fraud"

    @property
    def routes(self) -> list[Route]:
        """The public route."""
        return [Route("POST", "/score", "score", self._score)]

    async def read(self, request: web.Request, route: Route) -> Call:
        """The order is the one in the body."""
        try:
            document = json.loads(await request.read())
        except ValueError:
            document = None
        params: dict[str, Any] = document if isinstance(document, dict) else {}
        order_id = params.get("order_id")
        order_id = order_id if isinstance(order_id, str) else None
        return Call(route.op, route.operation, params, subject=order_id, key=order_id, order_id=order_id)

    def execute(self, call: Call) -> Answer:
        """The operation."""
        return call.operation(call)

    def problem(self, status: int, code: str) -> dict[str, Any]:
        """The scorer's error document."""
        return {"error": {"code": code, "message": f"answered {status} because a fault asked for it"}}

    def ledger(self) -> dict[str, Any]:
        """Every call that reached the scorer."""
        return {"calls": self.calls()}

    def _score(self, call: Call) -> Answer:
        strings = all(isinstance(call.params.get(name), str) for name in ("order_id", "customer_id", "currency"))
        amount = call.params.get("amount")
        if not strings or isinstance(amount, bool) or not isinstance(amount, int):
            return Answer(
                400, {"error": {"code": "invalid_request", "message": "order_id, customer_id, amount, currency"}}
            )
        return Answer(200, {"order_id": call.order_id, "score": score_of(call.params["customer_id"])})
