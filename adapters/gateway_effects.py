"""Effects at the payment gateway, asked until they have an answer that may be trusted.

The gateway keeps the first answer under an idempotency key and replays it: a 500 for ever, a refusal or a success of
then. Within one attempt the key stays whatever is unknown. Only where the gateway itself replays an old answer, so that
nothing is in flight under the key, and a look-up says that the effect is certainly not there, is the next key asked.
"""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress

from adapters.payment_gateway import AlreadyRefunded, PaymentGateway, Replayed, UnexpectedState
from adapters.stripe_answers import Intent, IntentStatus, Refund
from domain.errors import AuthorizationExpired, CaptureFailed, PaymentServiceUnavailable, Refusal

#: A gateway that keeps this many failures for one effect is down: the step's own tries go on later.
KEYS = 5


class GatewayEffects:
    """The gateway's effects with their look-ups. Raises what PaymentGateway raises, but for its answers about state."""

    def __init__(self, gateway: PaymentGateway) -> None:
        self._gateway = gateway

    async def create(self, order_id: str, amount: int, currency: str, payment_method: str, *, key: str) -> Intent:
        """An intent that has not ended. A second one may come of an answer that was lost for good, or of one that was
        ended before we knew it: unconfirmed, it holds nothing.
        """
        for provider_key in _keys(key):
            with suppress(Replayed):
                intent = await self._gateway.create_intent(order_id, amount, currency, payment_method, provider_key)
                if intent.status is not IntentStatus.CANCELED:
                    return intent
        raise PaymentServiceUnavailable(key)

    async def confirm(self, intent: Intent, *, key: str) -> Intent:
        """Confirms an intent that was just read; answers with the intent as it then is."""
        return await self._ask(self._gateway.confirm_intent, intent, key)

    async def capture(self, intent: Intent, *, key: str) -> Intent:
        """Captures an intent that was just read; answers with the intent as it then is.

        Raises AuthorizationExpired, and CaptureFailed for any other refusal.
        """
        try:
            return await self._ask(self._gateway.capture_intent, intent, key)
        except AuthorizationExpired:
            raise
        except Refusal:
            raise CaptureFailed(key) from None

    async def cancel(self, intent: Intent, *, key: str) -> Intent:
        """Cancels an intent that was just read; answers with the intent as it then is."""
        return await self._ask(self._gateway.cancel_intent, intent, key)

    async def refund(self, intent: Intent, amount: int, known: Sequence[Refund], *, refund_key: str, key: str) -> None:
        """Asks for a refund; `known` is the list just read. What came of it, the list tells when it is read again."""
        for provider_key in _keys(key):
            try:
                await self._gateway.refund_intent(intent.id, amount, refund_key, provider_key)
            except AlreadyRefunded:
                return
            except Replayed:
                if await self._gateway.list_refunds(intent.id) == list(known):
                    continue
            return
        raise PaymentServiceUnavailable(key)

    async def _ask(self, effect: Callable[[str, str], Awaitable[Intent]], intent: Intent, key: str) -> Intent:
        for provider_key in _keys(key):
            try:
                return await effect(intent.id, provider_key)
            except UnexpectedState as unexpected:
                now = unexpected.intent
                if now == intent:
                    break
            except Replayed:
                now = await self._gateway.read_intent(intent.id)
            if now != intent:
                return now
        raise PaymentServiceUnavailable(key)


def _keys(key: str) -> Iterator[str]:
    yield key
    for number in range(2, KEYS + 1):
        yield f"{key}:{number}"
