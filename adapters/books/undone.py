"""What an order that did not happen must not keep. An undo that an operator waived excuses what it left behind."""

from adapters.books.lines import Line

UNDONE = [
    Line(
        "an undone order keeps no stock",
        """
        SELECT order_id AS subject,
               CASE WHEN live IS NOT NULL AND waived IS NULL THEN format('still reserved: %s', live) END AS trouble
        FROM orders
        LEFT JOIN (SELECT order_id, string_agg(quantity || '×' || sku || ' in ' || warehouse, ', ') AS live
                   FROM reservations WHERE state <> 'released' GROUP BY 1) AS r USING (order_id)
        LEFT JOIN (SELECT DISTINCT order_id, true AS waived FROM order_steps
                   WHERE state = 'waived' AND step = 'release_stock') AS w USING (order_id)
        WHERE status = ANY(:undone) AND (CAST(:order_id AS text) IS NULL OR order_id = :order_id)
        """,
    ),
    Line(
        "an undone order keeps no points",
        """
        SELECT order_id AS subject,
               CASE WHEN coalesce(moved, 0) <> 0 AND waived IS NULL THEN format('points moved: %s', moved) END
                   AS trouble
        FROM orders
        LEFT JOIN (SELECT order_id, sum(amount) AS moved FROM points_movements GROUP BY 1) AS m USING (order_id)
        LEFT JOIN (SELECT DISTINCT order_id, true AS waived FROM order_steps
                   WHERE state = 'waived' AND step = 'restore_points') AS w USING (order_id)
        WHERE status = ANY(:undone) AND (CAST(:order_id AS text) IS NULL OR order_id = :order_id)
        """,
    ),
    Line(
        "an undone order keeps no store credit",
        """
        SELECT order_id AS subject,
               CASE WHEN coalesce(moved, 0) <> 0 AND waived IS NULL THEN format('credit moved: %s', moved) END
                   AS trouble
        FROM orders
        LEFT JOIN (SELECT order_id, sum(amount) AS moved FROM credit_movements GROUP BY 1) AS m USING (order_id)
        LEFT JOIN (SELECT DISTINCT order_id, true AS waived FROM order_steps
                   WHERE state = 'waived' AND step = 'refund_store_credit') AS w USING (order_id)
        WHERE status = ANY(:undone) AND (CAST(:order_id AS text) IS NULL OR order_id = :order_id)
        """,
    ),
    Line(
        "an undone order keeps no shipment",
        """
        SELECT order_id AS subject, CASE WHEN live IS NOT NULL THEN format('still booked: %s', live) END AS trouble
        FROM orders
        LEFT JOIN (SELECT order_id, string_agg(shipment_id || ' from ' || warehouse, ', ') AS live
                   FROM shipments AS s
                   WHERE status <> 'CANCELLED' AND NOT EXISTS (
                       SELECT 1 FROM order_steps AS w
                       WHERE w.order_id = s.order_id AND w.item = s.warehouse
                         AND w.state = 'waived' AND w.step = 'cancel_shipment')
                   GROUP BY 1) AS s USING (order_id)
        WHERE status = ANY(:undone) AND (CAST(:order_id AS text) IS NULL OR order_id = :order_id)
        """,
    ),
]
