"""The migrated database is the one that the code speaks of, and it refuses what must never be."""

import asyncio
import re

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection, create_engine, func, insert, inspect, select, text, update
from sqlalchemy.exc import DBAPIError

from adapters.database import Database, sqlalchemy_url
from adapters.tables import metadata, orders, status_transitions
from domain.errors import DatabaseUnavailable
from domain.order import ALLOWED, OrderStatus
from migrations import MIGRATION_LOCK, migrate
from runtime.postgres import PostgresServer
from tests.integration.attempts import until_somebody_waits

#: Per movement table: one good row.
MOVEMENTS = {
    "stock_movements": "(key, sku, warehouse, kind, quantity) VALUES ('k', 'A', 'main', 'stocked', 1)",
    "points_movements": "(key, customer_id, kind, amount) VALUES ('k', 'ada', 'granted', 1)",
    "credit_movements": "(key, customer_id, currency, kind, amount) VALUES ('k', 'ada', 'EUR', 'granted', 1)",
    "money_movements": "(key, order_id, intent_id, kind, currency, amount) VALUES ('k', 'o', 'pi', 'voided', 'EUR', 1)",
}

#: Every constraint and index of the schema in front of the search path, as PostgreSQL itself spells it.
RULES = text("""
    SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint
    WHERE connamespace = to_regnamespace(current_schema()) AND conrelid::regclass::text <> 'alembic_version'
    UNION SELECT tablename, indexname, indexdef FROM pg_indexes
    WHERE schemaname = current_schema() AND tablename <> 'alembic_version'
""")


def differences(connection: Connection) -> list[object]:
    options = {"compare_type": True, "compare_server_default": True}
    return list(compare_metadata(MigrationContext.configure(connection, opts=options), metadata))


async def test_the_migrated_tables_are_those_of_the_code(database: Database) -> None:
    async with database.begin() as connection:
        assert await connection.run_sync(differences) == []


async def test_constraints_and_indexes_have_the_names_and_rules_of_the_code(database: Database) -> None:
    async with database.engine.connect() as connection:
        migrated = {tuple(row) for row in await connection.execute(RULES)}
        await connection.execute(text("CREATE SCHEMA of_the_code"))
        await connection.execute(text("SET LOCAL search_path TO of_the_code"))
        await connection.run_sync(metadata.create_all)
        of_the_code = {
            tuple(re.sub(r"\bof_the_code\.", "public.", part) for part in row)
            for row in await connection.execute(RULES)
        }
        await connection.rollback()
    assert len(migrated) > 50
    assert migrated == of_the_code


async def test_four_migrations_at_once_and_a_later_one_are_all_well(postgres: PostgresServer) -> None:
    url = await postgres.create_database("migrated_at_once")
    await asyncio.gather(*(asyncio.to_thread(migrate, url) for _ in range(4)))
    await asyncio.to_thread(migrate, url)
    engine = create_engine(sqlalchemy_url(url))
    with engine.connect() as connection:
        assert {*metadata.tables, "alembic_version"} == set(inspect(connection).get_table_names())
    engine.dispose()
    await postgres.drop_database("migrated_at_once")


async def test_a_migration_waits_for_the_one_that_is_under_way(database: Database) -> None:
    async with database.begin() as connection:
        await connection.execute(select(func.pg_advisory_xact_lock(MIGRATION_LOCK)))
        later = asyncio.create_task(asyncio.to_thread(migrate, database.url))
        await until_somebody_waits(database)
    await later


def test_a_database_that_does_not_answer_is_told_as_such() -> None:
    with pytest.raises(DatabaseUnavailable, match=r"^OperationalError$"):
        migrate("postgresql://nobody:secret@127.0.0.1:1/none")


async def test_the_table_of_allowed_pairs_is_that_of_the_domain(database: Database) -> None:
    async with database.snapshot() as connection:
        rows = await connection.execute(select(status_transitions))
        assert {(row.old_status, row.new_status) for row in rows} == ALLOWED


async def _an_order_at(database: Database, status: OrderStatus) -> None:
    async with database.begin() as connection:
        await connection.execute(
            insert(orders).values(
                order_id=status,
                customer_id="ada",
                status=status,
                stage="PENDING" if status is OrderStatus.NEEDS_REVIEW else status,
                currency="EUR",
                total=0,
                amount_due=0,
                correlation_id="c",
            )
        )


@pytest.mark.parametrize("old", OrderStatus)
async def test_the_database_takes_allowed_changes_of_status_and_refuses_all_others(
    database: Database, old: OrderStatus
) -> None:
    await _an_order_at(database, old)
    for new in OrderStatus:
        stage = "PENDING" if new is OrderStatus.NEEDS_REVIEW else new
        change = update(orders).values(status=new, stage=stage)
        async with database.engine.connect() as connection:
            if old == new or (old, new) in ALLOWED:
                assert (await connection.execute(change)).rowcount == 1
            else:
                with pytest.raises(DBAPIError, match=f"order {old} may not go from {old} to {new}"):
                    await connection.execute(change)
            await connection.rollback()


@pytest.mark.parametrize("table", MOVEMENTS)
async def test_a_movement_cannot_be_changed_or_taken_out_of_its_book(database: Database, table: str) -> None:
    async with database.begin() as connection:
        await connection.execute(text(f"INSERT INTO {table} {MOVEMENTS[table]}"))
    for statement in (f"UPDATE {table} SET kind = 'other'", f"DELETE FROM {table}"):  # noqa: S608
        with pytest.raises(DBAPIError, match=f"{table} is append-only: {statement.split()[0]} refused"):
            async with database.begin() as connection:
                await connection.execute(text(statement))
    with pytest.raises(DBAPIError, match="duplicate key"):
        async with database.begin() as connection:
            await connection.execute(text(f"INSERT INTO {table} {MOVEMENTS[table]}"))
    async with database.snapshot() as connection:
        kept = await connection.scalar(text(f"SELECT count(*) FROM {table} WHERE kind <> 'other'"))  # noqa: S608
        assert kept == 1
