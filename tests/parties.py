"""The parties' own roles in a test's database."""

import asyncio

from sqlalchemy import make_url

from adapters.database import Database
from migrations import migrate
from runtime.postgres import PostgresServer
from workflows.names import Queue


async def party_urls(server: PostgresServer, database: Database) -> dict[str, str]:
    """Gives each party a role with its rights in this database, as whoever runs a server does; the URLs by party."""
    name = make_url(database.url).database or ""
    for party in Queue:
        await server.create_role(f"tests_{party}")
    urls = {party.value: server.url(name, f"tests_{party}") for party in Queue}
    await asyncio.to_thread(migrate, server.url(name), urls)
    return urls
