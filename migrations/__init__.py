"""The schema's history. Forward only: a step back is a new migration, since rows that were written stay written."""

from collections.abc import Mapping
from pathlib import Path

from alembic import command
from alembic.config import Config
from psycopg import Connection
from sqlalchemy import create_engine, text
from sqlalchemy.exc import OperationalError
from sqlalchemy.pool import NullPool

from adapters.database import CONNECT_TIMEOUT_SECONDS, sqlalchemy_url
from domain.errors import DatabaseUnavailable
from migrations.roles import grant_parties

#: Any number that nothing else in this database locks.
MIGRATION_LOCK = 7_236_001


def alembic_config() -> Config:
    """Alembic's configuration without a file."""
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent))
    config.set_main_option("path_separator", "os")
    return config


def migrate(url: str, parties: Mapping[str, str] | None = None) -> None:
    """Brings the database to the newest schema, in one transaction: all of it or nothing.

    `parties` are the URLs of the parties' own roles, which get their rights in the same transaction; without them one
    user does everything. Several processes may call it at once: the first one works, the others wait for it and find
    nothing to do. Raises DatabaseUnavailable when the server does not answer, RoleError.
    """
    engine = create_engine(
        sqlalchemy_url(url),
        poolclass=NullPool,
        hide_parameters=True,
        connect_args={"connect_timeout": CONNECT_TIMEOUT_SECONDS, "application_name": "migrations"},
    )
    config = alembic_config()
    try:
        with engine.begin() as connection:
            connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": MIGRATION_LOCK})
            config.attributes["connection"] = connection
            command.upgrade(config, "head")
            if parties:
                driver = connection.connection.driver_connection
                assert isinstance(driver, Connection), "the URL names this driver"
                grant_parties(driver, parties)
    except OperationalError as error:
        raise DatabaseUnavailable(type(error).__name__) from None
