"""The steps of an order as rows of a table or as lines."""

from collections.abc import Iterable
from datetime import datetime

from rich.table import Table
from rich.text import Text

from domain.keys import Step
from domain.views import TimelineLine

_STYLES = {
    "intended": "yellow",
    "done": "green",
    "refused": "red",
    "unknown": "magenta",
    "undone": "cyan",
    "waived": "magenta",
    "parked": "bold magenta",
}
_SIGNS = {"intended": "…", "done": "✓", "refused": "✗", "unknown": "?", "undone": "↶", "waived": "–", "parked": "!"}


def step_name(line: TimelineLine) -> str:
    """`book_shipment berlin`; a new stage of the order is shown as what it is."""
    if line.step == Step.RECORD_STATUS:
        return f"→ {line.item}"
    return f"{line.step} {line.item}".rstrip()


def state_text(line: TimelineLine) -> str:
    """`✓ done`, with the attempt when it took more than one, and the reason where there is one."""
    words = [_SIGNS.get(line.state, "·"), line.state]
    if line.attempt > 1:
        words.append(f"(attempt {line.attempt})")
    if line.reason:
        words.append(f"· {line.reason}")
    return " ".join(words)


def plain_line(line: TimelineLine, since: datetime) -> str:
    """One line of progress, with the seconds since the order was accepted."""
    return f"{(line.at - since).total_seconds():7.2f} s  {step_name(line):<32} {state_text(line)}".rstrip()


def latest(lines: Iterable[TimelineLine]) -> list[TimelineLine]:
    """One line a step, its newest, in the order in which the steps first show."""
    found: dict[tuple[str, str], TimelineLine] = {}
    for line in lines:
        found[line.step, line.item] = line
    return list(found.values())


def steps_table(lines: Iterable[TimelineLine], since: datetime, title: str) -> Table:
    """The lines as a table."""
    table = Table("after", "step", "state", title=title, title_justify="left", title_style="bold", box=None)
    for line in lines:
        seconds = f"{(line.at - since).total_seconds():.2f} s"
        table.add_row(seconds, step_name(line), Text(state_text(line), style=_STYLES.get(line.state, "")))
    return table
