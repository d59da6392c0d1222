"""The fraud scorer: one number for an order, from ids and amounts only."""

from adapters.http import HttpParty, refused
from domain.errors import FraudServiceUnavailable, GatewayProtocolError


class FraudScorer:
    """Client of the scorer's HTTP API. Asking changes nothing there, so it may be asked any number of times."""

    def __init__(self, base_url: str, *, timeout_seconds: float) -> None:
        self._http = HttpParty(base_url, timeout_seconds=timeout_seconds, unavailable=FraudServiceUnavailable)

    async def score(self, order_id: str, customer_id: str, amount: int, currency: str) -> int:
        """0 (good) to 100 (bad).

        Raises FraudServiceUnavailable, NotServed, or GatewayProtocolError when the answer is no such number.
        """
        answer = await self._http.request(
            "POST",
            "/score",
            json_body={"order_id": order_id, "customer_id": customer_id, "amount": amount, "currency": currency},
        )
        if not answer.ok:
            raise refused(answer)
        score = answer.json_object().get("score")
        if type(score) is not int or not 0 <= score <= 100:
            raise GatewayProtocolError("score")
        return score

    async def close(self) -> None:
        """Closes the HTTP session."""
        await self._http.close()
