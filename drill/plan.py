"""The plan of a drill: which orders come when, and which evil strikes when. The same seed makes the same plan."""

import random
from dataclasses import dataclass
from enum import StrEnum

from drill.kinds import KINDS, Kind
from workflows.names import Queue

#: Evil strikes this often. Oftener, and orders would be undone by outages rather than surprised by them.
STRIKE_EVERY_SECONDS = (1.5, 4.5)
#: No strike in the first seconds: what begins under an outage is no better a test than what is hit by one.
QUIET_START_SECONDS = 2.0
#: Orders come within this part of the time; the rest is evil for those that are on their way.
ORDERS_WITHIN = 0.85
#: One order in this many is cancelled by somebody.
CANCELLED_ONE_IN = 7
ORDERS_PER_CUSTOMER = 4

WORKERS = tuple(f"worker-{party}" for party in Queue)
#: How often each process is struck: the workers most, since they do the work. The relay is in the orders' worker.
TARGETS = (*WORKERS, *WORKERS, "worker-orders", "api", "api", "temporal", "postgres", "simulators")
PROVIDERS = ("gateway", "courier")
#: Holds at the gateway last seven days: jumps that add up to more would end them, rightly.
MOST_JUMPS = 4
JUMP_SECONDS = 25 * 3600


class Evil(StrEnum):
    """What can be done to a shop."""

    KILL = "killed"
    FREEZE = "frozen"
    SLOW = "slow"
    ERRORS = "answers 500"
    RATE = "rate-limits"
    LOST_ANSWERS = "loses answers"
    HANG = "hangs"
    LOST_WEBHOOKS = "loses webhooks"
    DOUBLED_WEBHOOKS = "doubles webhooks"
    REORDERED_WEBHOOKS = "reorders webhooks"
    LATE_WEBHOOKS = "delays webhooks"
    CLOCK_JUMP = "jumps a day ahead"
    TERMINATE = "terminated"
    RESET = "reset"


_OF_PROCESSES = (Evil.KILL,) * 5 + (Evil.FREEZE,) * 2
_OF_PROVIDERS = (Evil.SLOW, Evil.ERRORS, Evil.RATE, Evil.LOST_ANSWERS, Evil.HANG)
_OF_WEBHOOKS = (Evil.LOST_WEBHOOKS, Evil.DOUBLED_WEBHOOKS, Evil.REORDERED_WEBHOOKS, Evil.LATE_WEBHOOKS)
_OF_RUNS = (Evil.TERMINATE, Evil.TERMINATE, Evil.RESET)
_FAMILIES = (_OF_PROCESSES, _OF_PROVIDERS, _OF_WEBHOOKS, (Evil.CLOCK_JUMP,), _OF_RUNS)
_WEIGHTS = (10, 7, 4, 1, 2)


@dataclass(frozen=True)
class Strike:
    """One act of evil. `seconds`: how long it lasts, where it does; `times`: how many calls or runs it meets."""

    at_seconds: float
    evil: Evil
    target: str
    seconds: float = 0.0
    times: int = 0


class Canceller(StrEnum):
    """Who cancels an order."""

    SHOPPER = "shopper"
    WEB_UI = "Web UI"


@dataclass(frozen=True)
class PlannedOrder:
    """One order. `cancel_after_seconds` counts from its acceptance; `chance` decides what its shopper or bank does."""

    number: int
    at_seconds: float
    kind: Kind
    customer: int
    chance: float
    cancel_after_seconds: float | None = None
    canceller: Canceller = Canceller.SHOPPER


@dataclass(frozen=True)
class Plan:
    """All of a drill that is decided beforehand."""

    seed: int
    seconds: float
    orders: tuple[PlannedOrder, ...]
    strikes: tuple[Strike, ...]


def make_plan(seed: int, orders: int, seconds: float) -> Plan:
    """The plan of this seed. Orders in order of their time, strikes likewise."""
    chance = random.Random(seed)  # noqa: S311 (a plan, not a secret)
    return Plan(seed, seconds, _orders(chance, orders, seconds), _strikes(chance, seconds))


def _orders(chance: random.Random, count: int, seconds: float) -> tuple[PlannedOrder, ...]:
    moments = sorted(chance.uniform(0, seconds * ORDERS_WITHIN) for _ in range(count))
    # Every kind comes, also in a small drill; then by weight.
    kinds = [*KINDS, *chance.choices(KINDS, [kind.weight for kind in KINDS], k=max(0, count - len(KINDS)))][:count]
    chance.shuffle(kinds)
    return tuple(
        PlannedOrder(
            number,
            at,
            kind,
            customer=chance.randrange(max(1, count // ORDERS_PER_CUSTOMER)),
            chance=chance.random(),
            cancel_after_seconds=chance.uniform(0, 6) if chance.randrange(CANCELLED_ONE_IN) == 0 else None,
            canceller=chance.choice((Canceller.SHOPPER, Canceller.SHOPPER, Canceller.WEB_UI)),
        )
        for number, (at, kind) in enumerate(zip(moments, kinds, strict=True))
    )


def _strikes(chance: random.Random, seconds: float) -> tuple[Strike, ...]:
    found: list[Strike] = []
    jumps, at = 0, QUIET_START_SECONDS
    while at < seconds:
        strike = _strike(chance, at)
        jumps += strike.evil is Evil.CLOCK_JUMP
        if strike.evil is not Evil.CLOCK_JUMP or jumps <= MOST_JUMPS:
            found.append(strike)
        at += chance.uniform(*STRIKE_EVERY_SECONDS)
    return tuple(found)


def _strike(chance: random.Random, at: float) -> Strike:
    family = chance.choices(
        (_OF_PROCESSES, _OF_PROVIDERS, _OF_WEBHOOKS, (Evil.CLOCK_JUMP,), _OF_RUNS), (10, 7, 4, 1, 2)
    )
    evil = chance.choice(family[0])
    if evil in _OF_PROCESSES:
        return Strike(at, evil, chance.choice(TARGETS), seconds=chance.uniform(1, 6))
    if evil in _OF_RUNS:
        return Strike(at, evil, "runs", times=chance.randint(1, 3))
    if evil in _OF_WEBHOOKS or evil is Evil.CLOCK_JUMP:
        return Strike(at, evil, "gateway", times=chance.randint(2, 12))
    return Strike(at, evil, chance.choice(PROVIDERS), seconds=chance.uniform(2, 8), times=chance.randint(3, 25))
