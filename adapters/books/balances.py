"""Balances against the movements that made them. A difference is named by its SKU and warehouse, or its customer."""

from adapters.books.lines import Line

BALANCES = [
    Line(
        "no negative balance",
        """
        SELECT sku || ' in ' || warehouse AS subject,
               CASE WHEN least(on_hand, reserved) < 0 THEN format('on hand %s, reserved %s', on_hand, reserved) END
                   AS trouble
        FROM stock
        UNION ALL
        SELECT 'customer ' || customer_id, CASE WHEN points < 0 THEN format('%s points', points) END
        FROM points_accounts
        UNION ALL
        SELECT 'customer ' || customer_id,
               CASE WHEN balance < 0 THEN format('store credit %s %s', balance, currency) END
        FROM credit_accounts
        """,
        of_orders=False,
    ),
    Line(
        "available = on hand − reserved, never negative",
        """
        SELECT sku || ' in ' || warehouse AS subject,
               CASE WHEN on_hand < reserved THEN format('on hand %s, reserved %s', on_hand, reserved) END AS trouble
        FROM stock
        """,
        of_orders=False,
    ),
    Line(
        "reserved = live reservations",
        """
        SELECT sku || ' in ' || warehouse AS subject,
               CASE WHEN coalesce(reserved, 0) <> coalesce(pieces, 0)
                    THEN format('reserved %s, live reservations %s', coalesce(reserved, 0), coalesce(pieces, 0)) END
                   AS trouble
        FROM stock FULL JOIN (
            SELECT sku, warehouse, sum(quantity) AS pieces FROM reservations WHERE state = 'reserved' GROUP BY 1, 2
        ) AS live USING (sku, warehouse)
        """,
        of_orders=False,
    ),
    Line(
        "on hand = stocked − sold",
        """
        SELECT sku || ' in ' || warehouse AS subject,
               CASE WHEN coalesce(on_hand, 0) <> coalesce(stocked - sold, 0)
                    THEN format('on hand %s, stocked %s, sold %s', coalesce(on_hand, 0), stocked, sold) END AS trouble
        FROM stock FULL JOIN (
            SELECT sku, warehouse,
                   coalesce(sum(quantity) FILTER (WHERE kind = 'stocked'), 0) AS stocked,
                   coalesce(sum(quantity) FILTER (WHERE kind = 'sold'), 0) AS sold
            FROM stock_movements GROUP BY 1, 2
        ) AS moved USING (sku, warehouse)
        """,
        of_orders=False,
    ),
    Line(
        "points = sum of their movements",
        """
        SELECT 'customer ' || customer_id AS subject,
               CASE WHEN coalesce(points, 0) <> coalesce(moved, 0)
                    THEN format('%s points, movements %s', coalesce(points, 0), coalesce(moved, 0)) END AS trouble
        FROM points_accounts FULL JOIN (
            SELECT customer_id, sum(amount) AS moved FROM points_movements GROUP BY 1
        ) AS movements USING (customer_id)
        """,
        of_orders=False,
    ),
    Line(
        "store credit = sum of its movements",
        """
        SELECT 'customer ' || customer_id AS subject,
               CASE WHEN coalesce(balance, 0) <> coalesce(moved, 0)
                    THEN format('%s %s, movements %s', coalesce(balance, 0), currency, coalesce(moved, 0)) END
                   AS trouble
        FROM credit_accounts FULL JOIN (
            SELECT customer_id, currency, sum(amount) AS moved FROM credit_movements GROUP BY 1, 2
        ) AS movements USING (customer_id, currency)
        """,
        of_orders=False,
    ),
]
