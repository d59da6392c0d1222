"""What each order must look like in our own tables, whatever stage it is in."""

from adapters.books.lines import Line

ORDERS = [
    Line(
        "one terminal event an order",
        """
        SELECT order_id AS subject,
               CASE WHEN order_status IS NULL THEN 'events of an order that is not there'
                    WHEN told IS DISTINCT FROM expected
                    THEN format('%s with %s', order_status, coalesce(array_to_string(told, ' and '), 'no event')) END
                   AS trouble
        FROM (
            SELECT orders.order_id, orders.status AS order_status,
                   CASE WHEN terminal.event IS NOT NULL THEN ARRAY[terminal.event] END AS expected
            FROM orders LEFT JOIN unnest(CAST(:terminal_stages AS text[]), CAST(:terminal_events AS text[]))
                 AS terminal (stage, event) USING (stage)
        ) AS wanted FULL JOIN (
            SELECT order_id, array_agg(type ORDER BY type) AS told
            FROM outbox WHERE type = ANY(:terminal_events) GROUP BY 1
        ) AS events USING (order_id)
        WHERE CAST(:order_id AS text) IS NULL OR order_id = :order_id
        """,
    ),
    Line(
        "reservations = their movements",
        """
        SELECT order_id AS subject,
               CASE WHEN (pieces, back, gone) IS DISTINCT FROM (taken, released, sold)
                    THEN format('%s in %s: reservation of %s is %s; movements: reserved %s, released %s, sold %s',
                                sku, warehouse, pieces, coalesce(state, 'missing'), taken, released, sold) END
                   AS trouble
        FROM (
            SELECT order_id, sku, warehouse, state, coalesce(quantity, 0) AS pieces,
                   CASE WHEN state = 'released' THEN quantity ELSE 0 END AS back,
                   CASE WHEN state = 'sold' THEN quantity ELSE 0 END AS gone,
                   coalesce(taken, 0) AS taken, coalesce(released, 0) AS released, coalesce(sold, 0) AS sold
            FROM reservations FULL JOIN (
                SELECT order_id, sku, warehouse,
                       sum(quantity) FILTER (WHERE kind = 'reserved') AS taken,
                       sum(quantity) FILTER (WHERE kind = 'released') AS released,
                       sum(quantity) FILTER (WHERE kind = 'sold') AS sold
                FROM stock_movements WHERE order_id IS NOT NULL GROUP BY 1, 2, 3
            ) AS moved USING (order_id, sku, warehouse)
        ) AS compared
        WHERE CAST(:order_id AS text) IS NULL OR order_id = :order_id
        """,
    ),
    Line(
        "a confirmed order holds its goods",
        """
        SELECT order_id AS subject,
               CASE WHEN coalesce(pieces, 0) <> ordered
                    THEN format('%s: ordered %s, reserved or sold %s', sku, ordered, coalesce(pieces, 0)) END AS trouble
        FROM (
            SELECT order_id, sku, sum(quantity) AS ordered
            FROM orders JOIN order_lines USING (order_id)
            WHERE status = 'CONFIRMED' AND (CAST(:order_id AS text) IS NULL OR order_id = :order_id) GROUP BY 1, 2
        ) AS wanted LEFT JOIN (
            SELECT order_id, sku, sum(quantity) AS pieces FROM reservations WHERE state <> 'released' GROUP BY 1, 2
        ) AS held USING (order_id, sku)
        """,
    ),
    Line(
        "a confirmed order has paid its points and credit",
        """
        SELECT order_id AS subject,
               CASE WHEN coalesce(points_moved, 0) <> -points OR coalesce(credit_moved, 0) <> -store_credit
                    THEN format('points %s and credit %s due, movements %s and %s', points, store_credit,
                                coalesce(points_moved, 0), coalesce(credit_moved, 0)) END AS trouble
        FROM orders
        LEFT JOIN (SELECT order_id, sum(amount) AS points_moved FROM points_movements
                   WHERE kind IN ('burned', 'restored') GROUP BY 1) AS p USING (order_id)
        LEFT JOIN (SELECT order_id, sum(amount) AS credit_moved FROM credit_movements
                   WHERE kind IN ('applied', 'refunded') GROUP BY 1) AS c USING (order_id)
        WHERE status = 'CONFIRMED' AND (CAST(:order_id AS text) IS NULL OR order_id = :order_id)
        """,
    ),
    Line(
        "a confirmed order has a shipment from each warehouse",
        """
        SELECT order_id AS subject,
               CASE WHEN coalesce(shipments.status, 'CANCELLED') = 'CANCELLED'
                    THEN format('%s: %s', warehouse, coalesce(shipments.status, 'no shipment')) END AS trouble
        FROM (
            SELECT DISTINCT order_id, warehouse FROM orders JOIN reservations USING (order_id)
            WHERE status = 'CONFIRMED' AND state <> 'released'
              AND (CAST(:order_id AS text) IS NULL OR order_id = :order_id)
        ) AS wanted LEFT JOIN shipments USING (order_id, warehouse)
        """,
    ),
    Line(
        "captured ≤ authorized",
        """
        SELECT order_id AS subject,
               CASE WHEN captured > authorized THEN format('captured %s, authorized %s', captured, authorized) END
                   AS trouble
        FROM payments WHERE CAST(:order_id AS text) IS NULL OR order_id = :order_id
        """,
    ),
    Line(
        "0 ≤ refunded ≤ captured",
        """
        SELECT order_id AS subject,
               CASE WHEN refunded NOT BETWEEN 0 AND captured
                    THEN format('refunded %s, captured %s', refunded, captured) END AS trouble
        FROM payments WHERE CAST(:order_id AS text) IS NULL OR order_id = :order_id
        """,
    ),
    Line(
        "payment = its money movements",
        """
        SELECT order_id AS subject,
               CASE WHEN (authorized, captured, refunded) IS DISTINCT FROM (held, taken, returned)
                    THEN format('authorized %s, captured %s, refunded %s; movements %s, %s, %s',
                                authorized, captured, refunded, held, taken, returned) END AS trouble
        FROM (
            SELECT order_id, coalesce(authorized, 0) AS authorized, coalesce(captured, 0) AS captured,
                   coalesce(refunded, 0) AS refunded, coalesce(held, 0) AS held, coalesce(taken, 0) AS taken,
                   coalesce(returned, 0) AS returned
            FROM payments FULL JOIN (
                SELECT order_id,
                       sum(amount) FILTER (WHERE kind = 'authorized') AS held,
                       sum(amount) FILTER (WHERE kind = 'captured') AS taken,
                       coalesce(sum(amount) FILTER (WHERE kind = 'refunded'), 0)
                           - coalesce(sum(amount) FILTER (WHERE kind = 'refund_failed'), 0) AS returned
                FROM money_movements GROUP BY 1
            ) AS moved USING (order_id)
        ) AS compared
        WHERE CAST(:order_id AS text) IS NULL OR order_id = :order_id
        """,
    ),
]
