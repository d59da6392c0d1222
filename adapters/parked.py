"""The orders that stand still: which, where, since when, and how often an operator's word has not moved them."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ScalarSelect, Select, func, select

from adapters.database import Database
from adapters.tables import orders, payments, redrives, review_items
from domain.keys import Step
from domain.order import OrderStatus, ParkKind


@dataclass(frozen=True)
class Wanted:
    """Which parked steps are meant; None where any is."""

    order_id: str | None = None
    step: Step | None = None
    item: str | None = None
    kind: ParkKind | None = None
    error: str | None = None
    older_than_seconds: float | None = None


@dataclass(frozen=True)
class ParkedItem:
    """One step of one order that stands in review. `redrives`: operators' words after which it came back."""

    order_id: str
    step: Step
    item: str
    kind: ParkKind
    error: str
    since: datetime
    age_seconds: float
    status: OrderStatus
    intent_id: str | None
    redrives: int

    @property
    def cause(self) -> "Cause":
        """Those that have probably the same cause."""
        return Cause(self.step, self.kind, self.error)

    @property
    def name(self) -> str:
        """The step, with what tells it apart from others of its kind."""
        return f"{self.step.value} {self.item}".rstrip()


@dataclass(frozen=True, order=True)
class Cause:
    """What parked steps have in common."""

    step: Step
    kind: ParkKind
    error: str

    def __str__(self) -> str:
        return f"{self.step.value}, {self.kind.value}, {self.error}"


@dataclass(frozen=True)
class Group:
    """How many steps stand still for one cause, and the oldest one's age."""

    cause: Cause
    count: int
    oldest_seconds: float


async def read_parked(database: Database, wanted: Wanted) -> list[ParkedItem]:
    """The open review items that are wanted, the oldest first. Raises DatabaseUnavailable."""
    async with database.begin() as connection:
        rows = (await connection.execute(_query(wanted))).all()
    return [
        ParkedItem(
            order_id=row.order_id,
            step=Step(row.step),
            item=row.item,
            kind=ParkKind(row.kind),
            error=row.error,
            since=row.opened_at,
            age_seconds=float(row.age),
            status=OrderStatus(row.status),
            intent_id=row.intent_id,
            redrives=row.redrives,
        )
        for row in rows
    ]


def _came_back() -> ScalarSelect[int]:
    return (
        select(func.count())
        .where(
            redrives.c.order_id == review_items.c.order_id,
            redrives.c.step == review_items.c.step,
            redrives.c.item == review_items.c.item,
            redrives.c.parked_at == review_items.c.opened_at,
        )
        .scalar_subquery()
    )


def _query(wanted: Wanted) -> Select[Any]:
    age = func.extract("epoch", func.clock_timestamp() - review_items.c.opened_at)
    query = (
        select(
            *(review_items.c[name] for name in ("order_id", "step", "item", "kind", "error", "opened_at")),
            age.label("age"),
            orders.c.status,
            payments.c.intent_id,
            _came_back().label("redrives"),
        )
        .join_from(review_items, orders)
        .join(payments, payments.c.order_id == review_items.c.order_id, isouter=True)
        .where(review_items.c.closed_at.is_(None))
        .order_by(review_items.c.opened_at, review_items.c.review_id)
    )
    for name in ("order_id", "step", "item", "kind", "error"):
        if (value := getattr(wanted, name)) is not None:
            query = query.where(review_items.c[name] == value)
    return query if wanted.older_than_seconds is None else query.where(age >= wanted.older_than_seconds)


def grouped(items: Iterable[ParkedItem]) -> list[Group]:
    """By cause, the largest group first."""
    found: dict[Cause, list[ParkedItem]] = {}
    for item in items:
        found.setdefault(item.cause, []).append(item)
    groups = [Group(cause, len(them), max(one.age_seconds for one in them)) for cause, them in found.items()]
    return sorted(groups, key=lambda group: (-group.count, group.cause))


@dataclass(frozen=True)
class Progress:
    """What became of one park so far. `redrives` as in ParkedItem; `error` is the newest one."""

    open: bool
    redrives: int
    error: str


async def read_progress(database: Database, items: Iterable[ParkedItem]) -> dict[ParkedItem, Progress]:
    """What became of these parks. Raises DatabaseUnavailable."""
    by_key = {(item.order_id, item.step.value, item.item, item.since): item for item in items}
    query = select(
        *(review_items.c[name] for name in ("order_id", "step", "item", "opened_at", "closed_at", "error")),
        _came_back().label("redrives"),
    ).where(review_items.c.order_id == func.any([key[0] for key in by_key]))
    async with database.begin() as connection:
        rows = (await connection.execute(query)).all()
    keyed = (((row.order_id, row.step, row.item, row.opened_at), row) for row in rows)
    return {
        by_key[key]: Progress(row.closed_at is None, row.redrives, row.error) for key, row in keyed if key in by_key
    }
