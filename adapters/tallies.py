"""Totals of what ever happened, for counters that a restart does not set back.

The database counts them by itself, in the transaction of each fact: once a fact, whoever writes it. They are a handful
of rows however old the shop is.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import RowMapping, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.tables import tallies
from domain.events import STAGE_EVENTS, EventType

#: Upper bounds of the buckets from acceptance to an order's end, in seconds: the counting trigger has the same. Quick
#: orders take seconds, 3-D Secure minutes up to the payment's deadline, reviews up to two days.
BOUNDS = (1, 2.5, 5, 10, 30, 60, 300, 900, 1800, 3600, 21_600, 86_400)

#: Label values and a count.
Counts = Sequence[tuple[Sequence[str], float]]

_ENDED = {event.value: status.value for status, event in STAGE_EVENTS.items()}


@dataclass(frozen=True)
class Totals:
    """Since the shop's first day. `ended` by status and reason, `unknown` outcomes of effects by step, `resolved` ones
    by step and how, `late_money` by kind of movement.

    `confirmed_within` counts orders by the bucket of their seconds from acceptance to CONFIRMED.
    """

    accepted: int
    ended: Counts
    unknown: Mapping[str, int]
    resolved: Counts
    late_money: Mapping[str, int]
    confirmed_within: Sequence[int]
    confirmed_seconds: float


async def read_totals(connection: AsyncConnection) -> Totals:
    """All totals, each the sum of its shards."""
    labels = (tallies.c.name, tallies.c.label, tallies.c.other, tallies.c.bucket)
    query = select(*labels, func.sum(tallies.c.count).label("count"), func.sum(tallies.c.seconds).label("seconds"))
    found: dict[str, list[RowMapping]] = defaultdict(list)
    for row in (await connection.execute(query.group_by(*labels))).mappings():
        found[row["name"]].append(row)
    events = found["event"]
    confirmed = [row for row in events if row["label"] == EventType.ORDER_CONFIRMED]
    within = [0] * (len(BOUNDS) + 1)
    for row in confirmed:
        within[row["bucket"]] += int(row["count"])
    return Totals(
        accepted=sum(int(row["count"]) for row in events if row["label"] == EventType.ORDER_SUBMITTED),
        ended=_by((_ENDED[row["label"]], row["other"], row) for row in events if row["label"] in _ENDED),
        unknown={row["label"]: int(row["count"]) for row in found["unknown"]},
        resolved=_by((row["label"], row["other"], row) for row in found["resolved"]),
        late_money={row["label"]: int(row["count"]) for row in found["late_money"]},
        confirmed_within=within,
        confirmed_seconds=sum(float(row["seconds"]) for row in confirmed),
    )


def _by(rows: Iterable[tuple[str, str, RowMapping]]) -> Counts:
    counts: dict[tuple[str, str], int] = defaultdict(int)
    for label, other, row in rows:
        counts[label, other] += int(row["count"])
    return sorted(counts.items())
