"""The memory of the simulators: one SQLite file, because a restarted gateway must not have forgotten its money.

Everything lives in the file and nowhere else; a row is read again for each call (about 20 µs), so that neither memory
nor start-up grows with the number of orders. Without a folder the memory is a private one and ends with the process.
"""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_SCHEMA = """
CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS intents (
    seq INTEGER PRIMARY KEY, id TEXT UNIQUE NOT NULL, order_id TEXT, created INTEGER NOT NULL,
    settling INTEGER NOT NULL, hold_expires REAL, doc TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS intents_settling ON intents (id) WHERE settling = 1;
CREATE INDEX IF NOT EXISTS intents_holds ON intents (hold_expires) WHERE hold_expires IS NOT NULL;
CREATE TABLE IF NOT EXISTS refunds (
    seq INTEGER PRIMARY KEY, id TEXT UNIQUE NOT NULL, intent_id TEXT NOT NULL, doc TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS refunds_intent ON refunds (intent_id);
CREATE TABLE IF NOT EXISTS disputes (
    seq INTEGER PRIMARY KEY, id TEXT UNIQUE NOT NULL, intent_id TEXT NOT NULL, doc TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS disputes_intent ON disputes (intent_id);
CREATE TABLE IF NOT EXISTS keys (
    key TEXT PRIMARY KEY, fingerprint TEXT NOT NULL, at REAL NOT NULL, status INTEGER NOT NULL, body TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS keys_at ON keys (at);
CREATE TABLE IF NOT EXISTS calls (
    seq INTEGER PRIMARY KEY, party TEXT NOT NULL, op TEXT NOT NULL, key TEXT, at REAL NOT NULL, status,
    order_id TEXT, subject TEXT);
CREATE TABLE IF NOT EXISTS shipments (
    seq INTEGER PRIMARY KEY, id TEXT UNIQUE NOT NULL, reference TEXT UNIQUE NOT NULL, doc TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS mails (seq INTEGER PRIMARY KEY, doc TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS events (
    seq INTEGER PRIMARY KEY, id TEXT UNIQUE NOT NULL, party TEXT NOT NULL, doc TEXT NOT NULL);
"""


class Store:
    """One connection, used from one event loop. Between calls of one `transaction` nothing may be awaited."""

    def __init__(self, folder: Path | None) -> None:
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
        self._db = sqlite3.connect(folder / "simulators.db" if folder else ":memory:", isolation_level=None)
        self._db.execute("PRAGMA journal_mode=WAL")
        # A commit survives the end of the process at once, and a power cut up to the last checkpoint: enough here.
        self._db.execute("PRAGMA synchronous=NORMAL")
        self._db.executescript(_SCHEMA)
        self._depth = 0

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All writes inside are kept together or not at all. May be nested: the outermost one decides."""
        if self._depth == 0:
            self._db.execute("BEGIN")
        self._depth += 1
        try:
            yield
        except BaseException:
            self._depth -= 1
            if self._depth == 0:
                self._db.execute("ROLLBACK")
            raise
        self._depth -= 1
        if self._depth == 0:
            self._db.execute("COMMIT")

    def write(self, statement: str, *values: object) -> int:
        """Runs one statement; the number of the row that it inserted."""
        return self._db.execute(statement, values).lastrowid or 0

    def rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        """All rows of a query."""
        return self._db.execute(query, values).fetchall()

    def docs(self, query: str, *values: object) -> list[dict[str, Any]]:
        """All rows of a query for one column `doc`, decoded."""
        return [json.loads(row[0]) for row in self.rows(query, *values)]

    def doc(self, query: str, *values: object) -> dict[str, Any] | None:
        """The first of `docs`, or None."""
        found = self.docs(query, *values)
        return found[0] if found else None

    def remember(self, name: str, value: str) -> None:
        """Keeps one named value."""
        self.write(
            "INSERT INTO meta VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value", name, value
        )

    def recall(self, name: str) -> str | None:
        """The named value, or None."""
        found = self.rows("SELECT value FROM meta WHERE name = ?", name)
        return str(found[0][0]) if found else None

    def close(self) -> None:
        """Ends the connection; what was written stays."""
        self._db.close()
