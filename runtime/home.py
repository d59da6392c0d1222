"""The directory that holds all data and secrets of one installation (`ORDERS_HOME`)."""

import fcntl
import os
import secrets
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Home:
    """Files in it that only their owner may read."""

    path: Path

    def create(self) -> None:
        """Makes the directory, closed to others, unless it exists."""
        self.path.mkdir(parents=True, exist_ok=True, mode=0o700)

    def write(self, name: str, text: str) -> Path:
        """Writes a private file (0600) at once: a reader sees the old text or the new one."""
        path = self.path / name
        draft = path.with_name(f".{name}.{os.getpid()}")
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(text)
        draft.replace(path)
        return path

    def secret(self, name: str) -> str:
        """A random secret of this home, made at the first call and the same ever after."""
        path = self.path / f"{name}.secret"
        if not path.exists():
            draft = self.write(f".{name}.{os.getpid()}", secrets.token_hex(24))
            with suppress(FileExistsError):  # another process was faster: its secret is the one
                os.link(draft, path)
            draft.unlink()
        return path.read_text()


class Lock:
    """Held by the one stack that runs on a home. The system gives it back however its holder ends."""

    def __init__(self, home: Home) -> None:
        self._path = home.path / "up.lock"
        self._descriptor: int | None = None

    def take(self) -> bool:
        """Whether it is ours now; False: another process holds it."""
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return False
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, str(os.getpid()).encode(), 0)
        self._descriptor = descriptor
        return True

    def holder(self) -> int | None:
        """The id of the process that holds it; None: nobody does."""
        if not self._path.exists():
            return None
        if self._descriptor is None and self.take():
            self.give_back()
            return None
        return int(self._path.read_text() or 0) or None

    def give_back(self) -> None:
        """Lets the next one take it."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
