"""One database role a party: what it may do, and nothing else.

Rights are no step of the schema's history: they are set anew at each run, so a role that is made later, or a database
that comes out of a backup, gets them too.
"""

from collections.abc import Mapping

import psycopg
from psycopg import sql
from sqlalchemy import make_url

_STAMPS = "SELECT, INSERT, UPDATE (attempt, provider_reference, last_at)"
_BOOK = "SELECT, INSERT"

#: By party and table. Columns are listed where a party may read or change only some.
GRANTS: dict[str, dict[str, str]] = {
    # The API, the relay, the delivery of webhooks and the saga. It sees every book, since it shows and proves them, but
    # of the others' it writes one thing: how far a parcel is, which the courier's webhooks tell.
    "orders": {
        "orders": "SELECT, INSERT, UPDATE (status, stage, reason, updated_at)",
        "status_transitions": "SELECT",
        "order_lines": "SELECT, INSERT",
        "order_contacts": "INSERT",
        "idempotency_keys": "SELECT, INSERT",
        "outbox": "SELECT, INSERT, UPDATE (published_at, attempts, next_attempt_at, last_error)",
        "order_steps": _STAMPS,
        "review_items": "SELECT, INSERT, UPDATE (kind, error, closed_at, closed_by, action, reason)",
        "redrives": "SELECT, INSERT",
        "webhook_inbox": "SELECT, INSERT, UPDATE (state, attempts, next_attempt_at, last_error, settled_at), DELETE",
        "products": "SELECT",
        "stock": "SELECT",
        "reservations": "SELECT",
        "stock_movements": "SELECT",
        "points_accounts": "SELECT",
        "points_movements": "SELECT",
        "credit_accounts": "SELECT",
        "credit_movements": "SELECT",
        "payments": "SELECT",
        "money_movements": "SELECT",
        "refunds": "SELECT",
        "refund_retries": "SELECT",
        "shipments": "SELECT, UPDATE (status, updated_at)",
        "holds": "SELECT, INSERT, UPDATE (released_at, released_by, release_reason)",
        "reconciliation_runs": "SELECT, INSERT, UPDATE (finished_at, checked, complete, last_parcel), DELETE",
        "reconciliation_findings": "SELECT, INSERT, UPDATE (detail, action), DELETE",
        "reconciliation_orders": "SELECT, INSERT, DELETE",
        "reconciliation_intents": "SELECT, DELETE",
        "reconciliation_refunds": "SELECT, DELETE",
        "reconciliation_parcels": "SELECT, DELETE",
        "tallies": "SELECT",
    },
    "inventory": {
        "order_lines": "SELECT (order_id, sku, quantity)",
        "order_steps": _STAMPS,
        "products": "SELECT, INSERT, UPDATE (unit_price, currency)",
        "stock": "SELECT, INSERT, UPDATE (on_hand, reserved)",
        "reservations": "SELECT, INSERT, UPDATE (state)",
        "stock_movements": _BOOK,
    },
    "loyalty": {
        "orders": "SELECT (order_id, customer_id, currency, points, store_credit)",
        "order_steps": _STAMPS,
        "points_accounts": "SELECT, INSERT, UPDATE (points)",
        "points_movements": _BOOK,
        "credit_accounts": "SELECT, INSERT, UPDATE (balance)",
        "credit_movements": _BOOK,
    },
    "payments": {
        "orders": "SELECT (order_id, status, amount_due, currency, payment_method)",
        "order_steps": _STAMPS,
        "payments": "SELECT, INSERT, UPDATE (status, amount, authorized, captured, refunded, next_action, updated_at)",
        "money_movements": _BOOK,
        "refunds": "SELECT, INSERT, UPDATE (status, provider_reference, updated_at)",
        "refund_retries": _BOOK,
        "holds": "SELECT (party, released_at)",
        # What the gateway told, for the orders' worker to compare.
        "reconciliation_orders": "SELECT (run_id, order_id)",
        "reconciliation_intents": _BOOK,
        "reconciliation_refunds": _BOOK,
    },
    "shipping": {
        "order_contacts": "SELECT (order_id, shipping_address)",
        "order_steps": _STAMPS,
        "shipments": "SELECT, INSERT, UPDATE (status, updated_at)",
        "holds": "SELECT (party, released_at)",
        "reconciliation_orders": "SELECT (run_id, order_id)",
        "reconciliation_parcels": _BOOK,
    },
}
#: Whether the role is there, whether we may make roles, and whether we may change this one.
_RIGHTS_OVER_ROLE = """
    SELECT theirs.oid IS NOT NULL, ours.rolsuper OR ours.rolcreaterole,
           ours.rolsuper OR ours.rolcreaterole AND pg_has_role(ours.oid, theirs.oid, 'MEMBER WITH ADMIN OPTION')
    FROM pg_roles AS ours LEFT JOIN pg_roles AS theirs ON theirs.rolname = %s WHERE ours.rolname = current_user
"""
_TABLES = sorted({table for rights in GRANTS.values() for table in rights})


class RoleError(Exception):
    """A party's role cannot be made or given its rights: one line that names the setting."""


def grant_parties(connection: psycopg.Connection, urls: Mapping[str, str]) -> None:
    """Gives the role that each party's URL names the party's rights, and takes away all others on our tables.

    A role that is not there is made, and one that is gets the URL's password, as far as the connection's user may do
    that. In the caller's transaction, harmless again. Raises RoleError.
    """
    roles = {party: _role(connection, party, url) for party, url in urls.items()}
    if len(set(roles.values())) < len(roles):
        raise RoleError(f"{', '.join(map(_setting, roles))} name one role twice: each party has its own")
    for party, role in roles.items():
        _let_in(connection, party, role, make_url(urls[party]).password)
        _grant(connection, party, role)


def _setting(party: str) -> str:
    return f"DATABASE_URL_{party.upper()}"


def _role(connection: psycopg.Connection, party: str, url: str) -> str:
    role = make_url(url).username
    if not role:
        raise RoleError(f"{_setting(party)} names no user")
    if role == connection.info.user:
        raise RoleError(f"{_setting(party)} names the user of DATABASE_URL, who owns the tables: a party has its own")
    return role


def _let_in(connection: psycopg.Connection, party: str, role: str, password: str | None) -> None:
    """Whoever runs the server may have made the role: then its password is theirs where we may not set it."""
    name = sql.Identifier(role)
    there, may_make, may_change = connection.execute(_RIGHTS_OVER_ROLE, (role,)).fetchone() or (False, False, False)
    if not there and not may_make:
        raise RoleError(
            f"the user of DATABASE_URL may not make roles: make {role!r} yourself or leave {_setting(party)} empty"
        )
    if not there:
        connection.execute(sql.SQL("CREATE ROLE {} LOGIN").format(name))
    if password and (may_change or not there):
        connection.execute(sql.SQL("ALTER ROLE {} PASSWORD {}").format(name, _hash(connection, role, password)))


def _hash(connection: psycopg.Connection, role: str, password: str) -> sql.Literal:
    """Made here, so that no log of the server can hold the password."""
    hashed = connection.pgconn.encrypt_password(password.encode(), role.encode(), b"scram-sha-256")
    return sql.Literal(hashed.decode())


def _grant(connection: psycopg.Connection, party: str, role: str) -> None:
    name = sql.Identifier(role)
    tables = sql.SQL(", ").join(map(sql.Identifier, _TABLES))
    connection.execute(sql.SQL("REVOKE ALL ON {} FROM {}").format(tables, name))
    database, schema = connection.execute("SELECT current_database(), current_schema()").fetchone() or ("", "")
    connection.execute(sql.SQL("GRANT CONNECT ON DATABASE {} TO {}").format(sql.Identifier(database), name))
    connection.execute(sql.SQL("GRANT USAGE ON SCHEMA {} TO {}").format(sql.Identifier(schema), name))
    for table, rights in GRANTS[party].items():
        connection.execute(sql.SQL("GRANT {} ON {} TO {}").format(sql.SQL(rights), sql.Identifier(table), name))
