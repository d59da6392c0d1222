"""How a line of the books is read: one query, one row that says what was looked at and what is wrong."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from domain.books import MOST_FAILURES, Failure, LineKind, LineResult
from domain.events import EventType
from domain.order import CLOSED_STATUSES, UNDONE_STATUSES, OrderStatus

#: Whole books are read in one statement a line; a hundred thousand orders take some seconds of it.
STATEMENT_TIMEOUT_SECONDS = 60


@dataclass(frozen=True)
class Line:
    """One line. `query` names each subject that it looked at and its `trouble`, null where there is none.

    It may use `:order_id` (null: all orders) and what `_terms` names. `of_orders`: its subjects are orders, and a look
    at one order looks at it too.
    """

    name: str
    query: str
    kind: LineKind = LineKind.ALWAYS
    of_orders: bool = True


_BEFORE = "WITH line AS MATERIALIZED ("
_AFTER = """
), troubles AS (
    SELECT subject, trouble FROM line WHERE trouble IS NOT NULL ORDER BY subject, trouble LIMIT :most
)
SELECT (SELECT count(DISTINCT subject) FROM line) AS checked,
       (SELECT count(trouble) FROM line) AS failed,
       (SELECT coalesce(jsonb_agg(jsonb_build_array(subject, trouble)), '[]') FROM troubles) AS failures
"""


async def read_lines(connection: AsyncConnection, lines: Sequence[Line], order_id: str | None) -> list[LineResult]:
    """The lines in their order; of one order those that are about orders. Writes nothing."""
    await connection.execute(text(f"SET LOCAL statement_timeout = '{STATEMENT_TIMEOUT_SECONDS}s'"))
    return [await _read(connection, line, order_id) for line in lines if order_id is None or line.of_orders]


async def _read(connection: AsyncConnection, line: Line, order_id: str | None) -> LineResult:
    row = (await connection.execute(text(_BEFORE + line.query + _AFTER), _terms(order_id))).one()
    failures = tuple(Failure(subject, detail) for subject, detail in row.failures)
    return LineResult(line.name, line.kind, row.checked, row.failed, failures)


def _terms(order_id: str | None) -> dict[str, object]:
    ends = {
        OrderStatus.CONFIRMED: EventType.ORDER_CONFIRMED,
        OrderStatus.REFUNDED: EventType.ORDER_CONFIRMED,
        OrderStatus.CANCELLED_COMPENSATED: EventType.ORDER_CANCELLED,
        OrderStatus.REJECTED: EventType.ORDER_REJECTED,
    }
    return {
        "order_id": order_id,
        "most": MOST_FAILURES,
        "closed": sorted(CLOSED_STATUSES),
        "undone": sorted(UNDONE_STATUSES),
        "terminal_stages": list(ends),
        "terminal_events": list(ends.values()),
    }
