"""The simulated intent's state machine keeps its money straight whatever is asked of it in whatever order."""

from collections.abc import Callable
from contextlib import suppress

from hypothesis import given
from hypothesis import strategies as st

from simulators.intents import PAYMENT_METHODS, Intent
from simulators.refusals import Refusal

ACTIONS: dict[str, Callable[[Intent], object]] = {
    "confirm": lambda intent: intent.confirm(None),
    "settle": lambda intent: intent.settle(0.0),
    "authenticate": lambda intent: intent.authenticate("success", 0.0),
    "fail authentication": lambda intent: intent.authenticate("fail", 0.0),
    "capture": lambda intent: intent.capture(None),
    "capture a part": lambda intent: intent.capture(1000),
    "cancel": lambda intent: intent.cancel(None, 0.0),
    "expire": lambda intent: intent.expire(0.0),
}


@given(method=st.sampled_from(sorted(PAYMENT_METHODS)), names=st.lists(st.sampled_from(sorted(ACTIONS)), max_size=12))
def test_money_is_held_or_taken_once_and_an_end_is_an_end(method: str, names: list[str]) -> None:
    intent = Intent("pi_1", 4500, "eur", 0, "manual", {}, "secret")
    intent.choose(method)
    ended: tuple[str, int] | None = None
    for name in names:
        with suppress(Refusal):
            ACTIONS[name](intent)
        held, taken = intent.amount_capturable, intent.amount_received
        assert (held == 4500) == (intent.status == "requires_capture") == (intent.hold_expires is not None)
        assert (taken > 0) == (intent.status == "succeeded")
        assert held + taken <= intent.amount
        assert ended in {None, (intent.status, taken)}
        if intent.status in {"succeeded", "canceled"}:
            ended = (intent.status, taken)
