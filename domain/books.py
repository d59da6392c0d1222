"""What it means that the books hold: lines that were checked, and what was found where one does not.

*Always* lines hold at every instant, *settled* lines once an order is closed, *conservation* says that nothing that
was accepted is lost. Ids, amounts and enums only.
"""

from dataclasses import dataclass
from enum import StrEnum

#: Of each line so many failures are told; `LineResult.failed` counts them all.
MOST_FAILURES = 100


class LineKind(StrEnum):
    """When a line must hold."""

    ALWAYS = "always"
    SETTLED = "settled"
    CONSERVATION = "conservation"


@dataclass(frozen=True)
class Failure:
    """One place where a line does not hold: an order's id, or a SKU in a warehouse, or a customer."""

    subject: str
    detail: str


@dataclass(frozen=True)
class LineResult:
    """One line of the books: how many subjects were checked, and the first failures by subject."""

    name: str
    kind: LineKind
    checked: int
    failed: int = 0
    failures: tuple[Failure, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether nothing was found."""
        return self.failed == 0


@dataclass(frozen=True)
class WaivedStep:
    """An undo that an operator let go, with who and why: what it left behind is no failure."""

    order_id: str
    step: str
    item: str
    actor: str
    reason: str | None


@dataclass(frozen=True)
class Books:
    """What one look at the books found. `notes` say what was not judged, and why."""

    lines: tuple[LineResult, ...]
    waived: tuple[WaivedStep, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def hold(self) -> bool:
        """Whether every line holds."""
        return all(line.holds for line in self.lines)
