"""The plan of a drill and the judgement at its end."""

from collections import Counter
from dataclasses import replace
from typing import Any

from domain.books import Books, Failure, LineKind, LineResult
from domain.order import OrderStatus
from drill.clients import Placed
from drill.evil import FAULTS
from drill.kinds import KINDS
from drill.plan import JUMP_SECONDS, MOST_JUMPS, Evil, Plan, make_plan
from drill.verdict import Evidence, Verdict, judge

HOLDS_LAST_SECONDS = 7 * 24 * 3600
GOOD_BOOKS = Books((LineResult("captured ≤ authorized", LineKind.ALWAYS, 1),))


def a_plan(seed: int = 1) -> Plan:
    return make_plan(seed, orders=300, seconds=200)


def found(status: OrderStatus | None = OrderStatus.CONFIRMED, **changes: Any) -> Evidence:
    """One order, kept 20.00 and sent once."""
    placed = Placed(a_plan().orders[0], "o1")
    good = Evidence(
        placed=[placed],
        statuses={"o1": status} if status else {},
        parked=[],
        intents=[an_intent()],
        parcels=[a_parcel()],
        sold={"tea": 1},
        shelf={"tea": 1},
        victims=frozenset(),
    )
    return replace(good, **changes)


def an_intent(captured: int = 2000, refunded: int = 0, authorized: int = 2000) -> dict[str, Any]:
    return {"order_id": "o1", "captured": captured, "refunded": refunded, "authorized": authorized}


def a_parcel(status: str = "booked") -> dict[str, Any]:
    return {"reference": "o1:book_shipment:berlin:1", "status": status}


def line(verdict: Verdict) -> str:
    return verdict.last_line(GOOD_BOOKS)


def test_the_same_seed_makes_the_same_plan_and_another_seed_another() -> None:
    assert a_plan(1) == a_plan(1)
    assert a_plan(1).strikes != a_plan(2).strikes
    assert a_plan(1).orders != a_plan(2).orders


def test_a_plan_of_a_small_drill_has_each_kind_of_order() -> None:
    plan = make_plan(7, orders=len(KINDS), seconds=20)
    assert {order.kind.name for order in plan.orders} == {kind.name for kind in KINDS}


def test_each_evil_comes_in_one_of_the_first_seeds() -> None:
    met = Counter(strike.evil for seed in (1, 2, 3) for strike in a_plan(seed).strikes)
    assert set(met) == set(Evil)


def test_clock_jumps_never_end_a_hold() -> None:
    assert MOST_JUMPS * JUMP_SECONDS < HOLDS_LAST_SECONDS
    for seed in range(20):
        jumps = [one for one in a_plan(seed).strikes if one.evil is Evil.CLOCK_JUMP]
        assert len(jumps) <= MOST_JUMPS


def test_every_evil_of_providers_and_webhooks_has_its_fault() -> None:
    by_hand = {Evil.KILL, Evil.FREEZE, Evil.CLOCK_JUMP, Evil.TERMINATE, Evil.RESET}
    assert set(FAULTS) == set(Evil) - by_hand


def test_a_sold_and_a_given_back_order_pass() -> None:
    sold = judge(found())
    undone = judge(
        found(
            OrderStatus.CANCELLED_COMPENSATED,
            intents=[an_intent(refunded=2000)],
            parcels=[a_parcel("cancelled")],
            sold={},
        )
    )
    assert line(sold) == ("verdict: PASS accepted=1 confirmed=1 cancelled=0 parked=0 double=0 stranded=0 oversold=0")
    assert line(undone).startswith("verdict: PASS accepted=1 confirmed=0 cancelled=1")


def test_an_order_that_is_charged_or_sent_twice_is_named() -> None:
    charged = judge(found(intents=[an_intent(), an_intent()]))
    sent = judge(found(parcels=[a_parcel(), a_parcel()]))
    for verdict in (charged, sent):
        assert verdict.double[0].startswith("o1:")
        assert "FAIL" in line(verdict)
        assert "double=1" in line(verdict)


def test_an_accepted_order_that_is_lost_open_or_undone_with_money_kept_is_stranded() -> None:
    undone = OrderStatus.CANCELLED_COMPENSATED
    kept = judge(found(undone, parcels=[]))
    held = judge(found(undone, intents=[an_intent(captured=0)], parcels=[]))
    sent = judge(found(undone, intents=[]))
    lost, still_open = judge(found(None)), judge(found(OrderStatus.AWAITING_PAYMENT))
    for verdict in (kept, held, sent, lost, still_open):
        assert verdict.stranded[0].startswith("o1:")
        assert "FAIL" in line(verdict)
        assert "stranded=1" in line(verdict)


def test_a_parked_order_is_not_stranded_but_fails_the_drill() -> None:
    verdict = judge(found(OrderStatus.NEEDS_REVIEW, parked=["o1"]))
    assert verdict.stranded == []
    assert "FAIL" in line(verdict)
    assert "parked=1" in line(verdict)


def test_more_pieces_sold_than_there_were_are_named() -> None:
    verdict = judge(found(sold={"tea": 2}))
    assert verdict.oversold == ["tea: sold 2 of 1"]
    assert "FAIL" in line(verdict)


def test_an_accepted_cancel_of_a_sold_order_breaks_the_promise_unless_its_run_was_ended_by_force() -> None:
    cancelled = Placed(a_plan().orders[0], "o1", cancel_accepted=True)
    too_late = Placed(a_plan().orders[0], "o1", cancel_refused=True)
    assert "FAIL" in line(judge(found(placed=[cancelled])))
    assert "PASS" in line(judge(found(placed=[cancelled], victims=frozenset({"o1"}))))
    undone = found(OrderStatus.CANCELLED_COMPENSATED, placed=[too_late], intents=[], parcels=[])
    assert "FAIL" in line(judge(undone))


def test_books_that_do_not_hold_fail_the_drill() -> None:
    broken = Books((LineResult("captured ≤ authorized", LineKind.ALWAYS, 1, 1, (Failure("o1", "2 > 1"),)),))
    assert "FAIL" in judge(found()).last_line(broken)
