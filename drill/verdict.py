"""What a drill found, on one page."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console
from rich.table import Table

from domain.books import Books
from domain.order import SOLD_STATUSES, UNDONE_STATUSES, OrderStatus
from drill.clients import Placed
from drill.evil import Striker
from terminal.books import show_books

Ledger = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Evidence:
    """What everybody's books say at the end.

    `sold` and `shelf` are pieces by SKU. `victims` had their run ended by force: a cancel that was accepted before may
    have died with it, so it is not held against the shop.
    """

    placed: Sequence[Placed]
    statuses: Mapping[str, OrderStatus]
    parked: Sequence[str]
    intents: Ledger
    parcels: Ledger
    sold: Mapping[str, int]
    shelf: Mapping[str, int]
    victims: frozenset[str]


@dataclass
class Verdict:
    """The end of a drill. Each list names orders (or goods) with what is wrong about them."""

    accepted: int
    confirmed: int = 0
    cancelled: int = 0
    parked: list[str] = field(default_factory=list)
    double: list[str] = field(default_factory=list)
    stranded: list[str] = field(default_factory=list)
    oversold: list[str] = field(default_factory=list)
    #: Promises that were not kept: a cancel that was accepted and an order that was sold, and the like.
    broken: list[str] = field(default_factory=list)

    def passed(self, books: Books) -> bool:
        """Whether the promise held."""
        return books.hold and not (self.parked or self.double or self.stranded or self.oversold or self.broken)

    def last_line(self, books: Books) -> str:
        """The line that programs read."""
        return (
            f"verdict: {'PASS' if self.passed(books) else 'FAIL'} accepted={self.accepted} "
            f"confirmed={self.confirmed} cancelled={self.cancelled} parked={len(self.parked)} "
            f"double={len(self.double)} stranded={len(self.stranded)} oversold={len(self.oversold)}"
        )


def judge(found: Evidence) -> Verdict:
    """Holds every accepted order against the gateway's and the courier's own books."""
    verdict = Verdict(len(found.placed), parked=list(found.parked))
    money, live = _by_order(found.intents), _live_by_order(found.parcels)
    for one in found.placed:
        order_id, status = one.order_id, found.statuses.get(one.order_id)
        kept = [intent["captured"] - intent["refunded"] for intent in money[order_id]]
        held = sum(intent["authorized"] - intent["captured"] for intent in money[order_id])
        sent = live[order_id]
        verdict.confirmed += status in SOLD_STATUSES
        verdict.cancelled += status in UNDONE_STATUSES
        if sum(amount > 0 for amount in kept) > 1 or max(sent.values(), default=0) > 1:
            verdict.double.append(f"{order_id}: kept {kept} at the gateway, sent {sent.total()} parcels")
        if status not in SOLD_STATUSES | UNDONE_STATUSES and order_id not in found.parked:
            verdict.stranded.append(f"{order_id}: {status or 'accepted, and there is no such order'}")
        elif status in UNDONE_STATUSES and (sum(kept) or held or sent):
            verdict.stranded.append(f"{order_id}: {status}; kept {sum(kept)}, held {held}, sent {sent.total()} parcels")
        if order_id not in found.victims:
            verdict.broken += _broken_promises(one, status)
    verdict.oversold = [
        f"{sku}: sold {found.sold.get(sku, 0)} of {pieces}"
        for sku, pieces in found.shelf.items()
        if found.sold.get(sku, 0) > pieces
    ]
    return verdict


def _broken_promises(one: Placed, status: OrderStatus | None) -> list[str]:
    if one.cancel_accepted and status in SOLD_STATUSES:
        return [f"{one.order_id}: its cancel was accepted, and it was sold"]
    if one.cancel_refused and status in UNDONE_STATUSES:
        return [f"{one.order_id}: its cancel came too late, and it was undone"]
    return []


def _by_order(intents: Ledger) -> defaultdict[str, list[Mapping[str, Any]]]:
    found: defaultdict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for intent in intents:
        found[intent["order_id"]].append(intent)
    return found


def _live_by_order(parcels: Ledger) -> defaultdict[str, Counter[str]]:
    found: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for parcel in parcels:
        if parcel["status"] != "cancelled":
            found[str(parcel["reference"]).partition(":")[0]][parcel["reference"]] += 1
    return found


def show(console: Console, found: Evidence, striker: Striker) -> None:
    """What was sent and how it ended, and what was done to it."""
    ends: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for one in found.placed:
        ends[one.planned.kind.name][found.statuses.get(one.order_id, "LOST")] += 1
    table = Table("orders", "placed", "how they ended", box=None)
    for name, ended in sorted(ends.items()):
        table.add_row(name, str(ended.total()), ", ".join(f"{n} {status}" for status, n in sorted(ended.items())))
    console.print(table)
    table = Table("evil", "to whom", "how often", box=None)
    for (evil, target), count in sorted(striker.done.items()):
        table.add_row(evil.value, target, str(count))
    console.print(table)


def tell(console: Console, verdict: Verdict, books: Books) -> None:
    """What is wrong, by name, and the books."""
    named = {
        "parked": verdict.parked,
        "double": verdict.double,
        "stranded": verdict.stranded,
        "oversold": verdict.oversold,
        "broken promise": verdict.broken,
    }
    for name, found in named.items():
        for one in found:
            console.print(f"{name}: {one}", style="red", markup=False)
    show_books(console, books)
