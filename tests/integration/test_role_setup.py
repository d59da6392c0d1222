"""How parties get their roles: who makes them, what is taken away, and what is refused in one line."""

import asyncio
from collections.abc import AsyncIterator

import psycopg
import pytest
import pytest_asyncio
from sqlalchemy import make_url

from adapters.tables import metadata
from migrations import migrate
from migrations.roles import GRANTS, RoleError
from runtime.postgres import ADMIN, PostgresServer
from tests.builders import unique
from workflows.names import Queue


@pytest_asyncio.fixture
async def database(postgres: PostgresServer) -> AsyncIterator[str]:
    """The name of an empty database."""
    name = unique("roles")
    await postgres.create_database(name)
    yield name
    await postgres.drop_database(name)


async def answers(url: str, query: str) -> bool:
    """Whether this role may ask this."""
    try:
        async with await psycopg.AsyncConnection.connect(url) as connection:
            await connection.execute(query.encode())
    except (psycopg.OperationalError, psycopg.errors.InsufficientPrivilege, psycopg.errors.UndefinedTable):
        return False
    return True


def another(postgres: PostgresServer, database: str, role: str, password: str) -> str:
    url = make_url(postgres.url(database)).set(username=role, password=password)
    return url.render_as_string(hide_password=False)


def test_every_party_has_its_rights_and_every_table_somebody_who_may_use_it() -> None:
    assert list(GRANTS) == list(Queue)
    assert {table for rights in GRANTS.values() for table in rights} == set(metadata.tables)


async def test_who_may_make_roles_makes_them_and_changes_their_password(
    postgres: PostgresServer, database: str
) -> None:
    role, owner = unique("made"), postgres.url(database, ADMIN)
    old, new = (another(postgres, database, role, password) for password in ("old", "new"))
    await asyncio.to_thread(migrate, owner, {"loyalty": old})
    assert await answers(old, "SELECT * FROM points_accounts")
    assert not await answers(old, "SELECT * FROM stock")
    await asyncio.to_thread(migrate, owner, {"loyalty": new})
    assert await answers(new, "SELECT 1")
    assert not await answers(old, "SELECT 1")


async def test_an_owner_who_may_make_roles_and_is_no_superuser_makes_them_too(
    postgres: PostgresServer, database: str
) -> None:
    owner, role = unique("manager"), unique("managed")
    await postgres.create_role(owner)
    async with await psycopg.AsyncConnection.connect(postgres.url(database, ADMIN)) as connection:
        await connection.execute(f'ALTER ROLE "{owner}" CREATEROLE'.encode())
        await connection.execute(f'GRANT ALL ON SCHEMA public TO "{owner}"'.encode())
    for password in ("old", "new"):
        url = another(postgres, database, role, password)
        await asyncio.to_thread(migrate, postgres.url(database, owner), {"loyalty": url})
        assert await answers(url, "SELECT * FROM points_accounts")


async def test_rights_that_are_not_a_partys_are_taken_away(postgres: PostgresServer, database: str) -> None:
    role = unique("greedy")
    await postgres.create_role(role)
    owner, party = postgres.url(database), postgres.url(database, role)
    await asyncio.to_thread(migrate, owner)
    async with await psycopg.AsyncConnection.connect(owner) as connection:
        await connection.execute(f'GRANT ALL ON stock TO "{role}"'.encode())
        await connection.execute(f'GRANT UPDATE (status) ON orders TO "{role}"'.encode())
    assert await answers(party, "UPDATE orders SET status = ''")
    await asyncio.to_thread(migrate, owner, {"shipping": party})
    assert await answers(party, "SELECT * FROM shipments")
    assert not await answers(party, "SELECT * FROM stock")
    assert not await answers(party, "UPDATE orders SET status = ''")


@pytest.mark.parametrize(
    ("parties", "told"),
    [
        ({"loyalty": "absent"}, r"make 'absent' yourself or leave DATABASE_URL_LOYALTY empty"),
        ({"loyalty": "orders"}, r"DATABASE_URL_LOYALTY names the user of DATABASE_URL"),
        ({"loyalty": "one", "payments": "one"}, r"DATABASE_URL_LOYALTY, DATABASE_URL_PAYMENTS name one role twice"),
        ({"loyalty": ""}, r"DATABASE_URL_LOYALTY names no user"),
    ],
)
async def test_a_role_that_cannot_be_used_is_one_line_that_names_the_setting(
    postgres: PostgresServer, database: str, parties: dict[str, str], told: str
) -> None:
    urls = {party: another(postgres, database, role, "secret") for party, role in parties.items()}
    with pytest.raises(RoleError, match=told) as caught:
        await asyncio.to_thread(migrate, postgres.url(database), urls)
    assert "secret" not in str(caught.value)
    assert not await answers(postgres.url(database), "SELECT * FROM orders"), "all of it or nothing"
