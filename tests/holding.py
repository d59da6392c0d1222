"""Providers that an operator keeps closed."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from adapters.holds import place_hold, release_hold
from domain.holds import Held
from tests.shop import Shop


@asynccontextmanager
async def held(shop: Shop, party: Held) -> AsyncIterator[None]:
    """The party is held in this block."""
    assert await place_hold(shop.database, party, "tests", "maintenance")
    try:
        yield
    finally:
        assert await release_hold(shop.database, party, "tests", "over")
