"""The books as a table, as lines that name what does not hold, and as JSON."""

from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.table import Table

from domain.books import Books


def books_table(books: Books) -> Table:
    """One row a line."""
    table = Table("line of the books", "kind", "checked", "", box=None)
    for line in books.lines:
        verdict = "[green]holds[/]" if line.holds else f"[bold red]FAILS {line.failed} ×[/]"
        table.add_row(line.name, line.kind.value, str(line.checked), verdict)
    return table


def show_books(console: Console, books: Books) -> None:
    """The table, then every failure with whom it is about, what was waived, and the verdict."""
    console.print(books_table(books))
    for line in books.lines:
        for failure in line.failures:
            console.print(f"FAILS {line.name}: {failure.subject}: {failure.detail}", style="red", markup=False)
        if line.failed > len(line.failures):
            console.print(f"FAILS {line.name}: and {line.failed - len(line.failures)} more", style="red", markup=False)
    for waived in books.waived:
        step = f"{waived.step} {waived.item}".rstrip()
        told = f"waived {waived.order_id}: {step} by {waived.actor}: {waived.reason or 'no reason given'}"
        console.print(told, style="yellow", markup=False)
    for note in books.notes:
        console.print(f"note: {note}", markup=False)
    console.print(verdict(books))


def verdict(books: Books) -> str:
    """The last line."""
    broken = sum(not line.holds for line in books.lines)
    return f"{broken} of {len(books.lines)} lines do not hold" if broken else f"all {len(books.lines)} lines hold"


def as_document(books: Books) -> dict[str, Any]:
    """The same for programs."""
    return {
        "holds": books.hold,
        "lines": [{**asdict(line), "holds": line.holds} for line in books.lines],
        "waived": [asdict(waived) for waived in books.waived],
        "notes": list(books.notes),
    }
