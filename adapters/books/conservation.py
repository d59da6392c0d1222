"""Nothing that was accepted is lost: every order has its key and was told to the relay."""

from adapters.books.lines import Line
from domain.books import LineKind

CONSERVATION = [
    Line(
        "every order has its idempotency key",
        """
        SELECT order_id AS subject,
               CASE WHEN coalesce(keys, 0) <> 1 THEN format('%s keys', coalesce(keys, 0)) END AS trouble
        FROM orders LEFT JOIN (
            SELECT order_id, count(*) AS keys FROM idempotency_keys GROUP BY 1
        ) AS known USING (order_id)
        WHERE CAST(:order_id AS text) IS NULL OR order_id = :order_id
        """,
        LineKind.CONSERVATION,
    ),
    Line(
        "every order was submitted once",
        """
        SELECT order_id AS subject,
               CASE WHEN status IS NULL THEN 'submitted, but there is no such order'
                    WHEN coalesce(told, 0) <> 1 THEN format('submitted %s times', coalesce(told, 0)) END AS trouble
        FROM orders FULL JOIN (
            SELECT order_id, count(*) AS told FROM outbox WHERE type = 'OrderSubmitted' GROUP BY 1
        ) AS submitted USING (order_id)
        WHERE CAST(:order_id AS text) IS NULL OR order_id = :order_id
        """,
        LineKind.CONSERVATION,
    ),
]
