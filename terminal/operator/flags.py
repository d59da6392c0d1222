"""Flags that several of the operator's commands share."""

import getpass
import json
import re
from typing import Annotated, Any

import typer
from pydantic import TypeAdapter, ValidationError

from domain.intake import ShortText
from terminal.app import BadInput

_ACTOR = re.compile(r"[\x21-\x7e]{1,128}")
_REASON: TypeAdapter[str] = TypeAdapter(ShortText)
_AGE = re.compile(r"(\d{1,6})([smhd])")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}

Order = Annotated[str, typer.Argument(metavar="ORDER", help="The order's id.")]
Actor = Annotated[str | None, typer.Option(metavar="NAME", help="Who acts; your user name when missing.")]
Reason = Annotated[
    str, typer.Option(metavar="TEXT", help="Why: it stays in the timeline. No personal data: a ticket's number.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]


def checked_actor(name: str | None) -> str:
    """Who acts. Raises BadInput."""
    actor = name if name is not None else _user()
    if not _ACTOR.fullmatch(actor):
        raise BadInput("--actor: 1 to 128 visible ASCII characters")
    return actor


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        raise BadInput("--actor: this system does not tell who you are") from None


def checked_reason(text: str) -> str:
    """Why. Raises BadInput."""
    try:
        return _REASON.validate_python(text)
    except ValidationError:
        raise BadInput("--reason: 1 to 200 characters, in one line") from None


def seconds(text: str | None) -> float | None:
    """`90s`, `15m`, `2h` or `3d` in seconds. Raises BadInput."""
    if text is None:
        return None
    found = _AGE.fullmatch(text)
    if found is None:
        raise BadInput("--older-than: write 90s, 15m, 2h or 3d")
    return float(int(found[1]) * _SECONDS[found[2]])


def age(value: float) -> str:
    """Seconds as a person says them: the two largest units."""
    left, words = int(value), list[str]()
    for unit, size in (("d", 86_400), ("h", 3600), ("m", 60), ("s", 1)):
        if left >= size or (unit == "s" and not words):
            words.append(f"{left // size}{unit}")
        left %= size
    return " ".join(words[:2])


def print_json(document: Any) -> None:
    """One JSON document on stdout."""
    print(json.dumps(document, indent=2, default=str))  # noqa: T201 (what was asked for)
