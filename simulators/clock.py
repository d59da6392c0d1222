"""The simulators' clock: real time plus what a test has advanced it by. Holds and idempotency keys age by it."""

import time

from simulators.store import Store

_OFFSET = "clock_offset_seconds"


class Clock:
    """Runs on over a restart; never goes back."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._offset = float(store.recall(_OFFSET) or 0)

    def now(self) -> float:
        """Seconds since the epoch, as the providers see them."""
        return time.time() + self._offset

    def advance(self, seconds: float) -> float:
        """Moves on by `seconds` and returns the new time. Raises ValueError for a negative number."""
        if seconds < 0:
            raise ValueError("the clock never goes back: advance_seconds must be 0 or more")
        self._offset += seconds
        self._store.remember(_OFFSET, repr(self._offset))
        return self.now()
