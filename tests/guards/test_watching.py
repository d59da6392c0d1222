"""Those who watch over the shop: holds, the guard, and the parties' own rights."""

from pathlib import Path

from tests.guards.removal import MARKS, Removal, assert_missed, each

OUTCOMES = "tests/unit/test_http_outcomes.py"
COURIER = "adapters/courier.py"

REMOVALS = (
    Removal(
        "nothing is sent to a gateway that is held",
        "money moves while an operator keeps the gateway closed",
        "adapters/payment_gateway.py",
        old='        if method.upper() != "GET":\n            await self._before_effect()\n',
        new="",
        proof=f"{OUTCOMES}::test_nothing_is_sent_to_a_party_that_is_held[gateway]",
    ),
    Removal(
        "no booking is sent to a courier that is held",
        "parcels are booked while an operator keeps the courier closed",
        COURIER,
        old='        await self._before_effect()\n        answer = await self._http.request(\n            "POST"',
        new='        answer = await self._http.request(\n            "POST"',
        proof=f"{OUTCOMES}::test_nothing_is_sent_to_a_party_that_is_held[courier]",
    ),
    Removal(
        "no cancel is sent to a courier that is held",
        "parcels are cancelled while an operator keeps the courier closed",
        COURIER,
        old='        await self._before_effect()\n        answer = await self._http.request("POST", f"/shipments/',
        new='        answer = await self._http.request("POST", f"/shipments/',
        proof=f"{OUTCOMES}::test_a_cancel_is_not_sent_to_a_courier_that_is_held",
    ),
    Removal(
        "an order whose run was ended asks a person first",
        "an order that somebody stopped by hand goes on by itself",
        "workflows/order.py",
        old="        if self._found_dead:\n            await ask_what_to_do(self._steps, order)\n",
        new="",
        proof="tests/workflows/test_guard.py::test_nothing_moves_between_the_end_of_a_run_and_the_operators_word",
    ),
    Removal(
        "the guard starts no order again that has ended well",
        "an order that ended while the guard looked at it runs a second time",
        "events/runs.py",
        old="else policy.ALLOW_DUPLICATE_FAILED_ONLY,",
        new="else policy.ALLOW_DUPLICATE,",
        proof="tests/integration/test_relay.py::test_an_order_that_ended_well_meanwhile_is_not_started_again",
    ),
    Removal(
        "a party writes its own books only",
        "a bug in one party changes what another one knows",
        "migrations/roles.py",
        old='"order_lines": "SELECT (order_id, sku, quantity)",',
        new='"order_lines": "SELECT, UPDATE",',
        proof="tests/integration/test_roles.py::test_a_party_cannot[inventory cannot change an order's lines]",
    ),
)

pytestmark = MARKS


@each(REMOVALS)
def test_without_it_a_test_goes_red(removal: Removal, tmp_path: Path) -> None:
    assert_missed(removal, tmp_path / "copy")
