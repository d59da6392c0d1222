"""The directory that holds all data and secrets of one installation (`ORDERS_HOME`)."""

import os
import secrets
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
            self.write(path.name, secrets.token_hex(24))
        return path.read_text()
