"""The payment gateway's idempotency keys, as Stripe documents them ("Idempotent requests").

The first answer under a key is kept, a 500 too, and replayed for the same endpoint and parameters. While the first
call has not answered, another one is told 409; other parameters are told 400; keys are forgotten after 24 hours.
"""

import json
from dataclasses import dataclass, field
from typing import Any

from simulators.clock import Clock
from simulators.refusals import key_in_flight, other_parameters
from simulators.store import Store

KEY_LIFE_SECONDS = 24 * 3600


@dataclass(frozen=True)
class KeptAnswer:
    """What the first call under the key was told."""

    status: int
    body: dict[str, Any]


@dataclass
class KeyBook:
    """Kept answers live in the store; a call in flight ends with the process, as its connection does."""

    store: Store
    clock: Clock
    _in_flight: set[str] = field(default_factory=set)

    def claim(self, key: str, fingerprint: str) -> KeptAnswer | None:
        """The kept answer; or None, and the key is in flight until `release`. Raises Refusal (409, 400)."""
        if key in self._in_flight:
            raise key_in_flight(key)
        self.store.write("DELETE FROM keys WHERE at <= ?", self.clock.now() - KEY_LIFE_SECONDS)
        found = self.store.rows("SELECT fingerprint, status, body FROM keys WHERE key = ?", key)
        if not found:
            self._in_flight.add(key)
            return None
        kept_fingerprint, status, body = found[0]
        if kept_fingerprint != fingerprint:
            raise other_parameters(key)
        return KeptAnswer(status, json.loads(body))

    def keep(self, key: str, fingerprint: str, answer: KeptAnswer) -> None:
        """Keeps the answer, unless the key has one already."""
        self.store.write(
            "INSERT INTO keys VALUES (?, ?, ?, ?, ?) ON CONFLICT (key) DO NOTHING",
            key,
            fingerprint,
            self.clock.now(),
            answer.status,
            json.dumps(answer.body),
        )

    def release(self, key: str) -> None:
        """The call that claimed the key is over."""
        self._in_flight.discard(key)
