"""Our own PostgreSQL server: where it runs, what it keeps, how it ends."""

import os
import signal
from pathlib import Path

import psycopg
import pytest

from adapters.database import Database
from runtime.ports import free_port
from runtime.postgres import PostgresServer


async def _answer(url: str, query: str) -> object:
    async with await psycopg.AsyncConnection.connect(url) as connection:
        row = await (await connection.execute(query.encode())).fetchone()
    return row and row[0]


async def test_rows_survive_a_restart_of_the_server(tmp_path: Path) -> None:
    async with PostgresServer(tmp_path, free_port()) as server:
        url = await server.create_database()
        async with await psycopg.AsyncConnection.connect(url) as connection:
            await connection.execute("CREATE TABLE kept AS SELECT 7 AS value")
    async with PostgresServer(tmp_path, free_port()) as server:
        assert await _answer(await server.create_database(), "SELECT value FROM kept") == 7


async def test_a_home_in_a_directory_closed_to_others_works(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    async with PostgresServer(closed / "home", free_port()) as server:
        assert await server.answers()
    secrets = list((closed / "home").glob("*.secret"))
    assert secrets
    assert all(secret.stat().st_mode & 0o777 == 0o600 for secret in secrets)


async def test_a_connection_without_the_password_is_refused(postgres: PostgresServer) -> None:
    url = postgres.url("postgres").replace(postgres.home.secret("postgres-orders"), "wrong")
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        await _answer(url, "SELECT 1")


async def test_a_server_killed_hard_recovers_at_the_next_start(tmp_path: Path) -> None:
    server = PostgresServer(tmp_path, free_port())
    await server.start()
    url = await server.create_database()
    async with await psycopg.AsyncConnection.connect(url) as connection:
        await connection.execute("CREATE TABLE kept AS SELECT 7 AS value")
    postmaster = int((server.data / "postmaster.pid").read_text().splitlines()[0])
    os.kill(postmaster, signal.SIGKILL)
    await server.stop()
    assert (server.data / "postmaster.pid").exists()
    await server.start()
    try:
        assert await _answer(url, "SELECT value FROM kept") == 7
    finally:
        await server.stop()


async def test_each_test_gets_a_migrated_database_that_is_empty(database: Database) -> None:
    async with database.begin() as connection:
        result = await connection.exec_driver_sql("SELECT count(*) FROM orders")
        assert result.scalar_one() == 0
