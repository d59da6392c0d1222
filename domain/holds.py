"""What an operator may hold: nothing new is attempted there until the hold is released."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class Held(StrEnum):
    """Whom a hold is about. `INTAKE` is our own door: no new orders; the others are providers."""

    GATEWAY = "gateway"
    COURIER = "courier"
    INTAKE = "intake"


@dataclass(frozen=True)
class Hold:
    """One hold that stands: who placed it, why, since when."""

    party: Held
    actor: str
    reason: str
    at: datetime
