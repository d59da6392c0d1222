"""What an order that did not happen must not keep. An undo that an operator waived excuses what it left behind."""

from adapters.books.lines import Line
from domain.keys import Step

#: By undo: what it should have given back, and a query for what is still kept (of one `item` of the undo).
_KEPT = {
    Step.RELEASE_STOCK: (
        "stock",
        """
        SELECT order_id, '' AS item,
               'still reserved: ' || string_agg(quantity || '×' || sku || ' in ' || warehouse, ', ') AS kept
        FROM reservations WHERE state <> 'released' GROUP BY order_id
        """,
    ),
    Step.RESTORE_POINTS: (
        "points",
        """
        SELECT order_id, '' AS item, format('points moved: %s', sum(amount)) AS kept
        FROM points_movements GROUP BY order_id HAVING sum(amount) <> 0
        """,
    ),
    Step.REFUND_STORE_CREDIT: (
        "store credit",
        """
        SELECT order_id, '' AS item, format('credit moved: %s', sum(amount)) AS kept
        FROM credit_movements GROUP BY order_id HAVING sum(amount) <> 0
        """,
    ),
    Step.CANCEL_SHIPMENT: (
        "shipment",
        """
        SELECT order_id, warehouse AS item, format('still booked: %s from %s', shipment_id, warehouse) AS kept
        FROM shipments WHERE status <> 'CANCELLED'
        """,
    ),
}


def _keeps_no(undo: Step, what: str, kept: str) -> Line:
    return Line(
        f"an undone order keeps no {what}",
        f"""
        SELECT order_id AS subject,
               CASE WHEN kept IS NOT NULL AND NOT EXISTS (
                        SELECT 1 FROM order_steps AS w WHERE w.order_id = orders.order_id
                        AND w.step = '{undo}' AND w.item = left_behind.item AND w.state = 'waived')
                    THEN kept END AS trouble
        FROM orders LEFT JOIN ({kept}) AS left_behind USING (order_id)
        WHERE status = ANY(:undone) AND (CAST(:order_id AS text) IS NULL OR order_id = :order_id)
        """,  # noqa: S608  # made of what stands above, of nothing from outside
    )


UNDONE = [_keeps_no(undo, what, kept) for undo, (what, kept) in _KEPT.items()]
