"""Waiting for what happens elsewhere, with a deadline instead of a sleep."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

Value = TypeVar("Value")


async def eventually(
    look: Callable[[], Awaitable[Value]], *, within_seconds: float = 30, pause_seconds: float = 0.02
) -> Value:
    """The first truthy answer of `look`, asked again and again; AssertionError after the deadline."""
    deadline = time.monotonic() + within_seconds
    while not (answer := await look()):
        assert time.monotonic() < deadline, f"{look.__qualname__} stayed {answer!r} for {within_seconds} s"
        await asyncio.sleep(pause_seconds)
    return answer
