"""What the handlers need, put into the application once."""

from dataclasses import dataclass

from aiohttp import web
from temporalio.client import Client

from adapters.database import Database
from api.metrics import Metrics
from api.starts import DirectStarts
from runtime.settings import Settings


@dataclass(frozen=True)
class Deps:
    """One process's database, Temporal client (lazy: it may be down), settings, counters and background starts.

    `inventory` and `loyalty` are the same database by the roles of the parties whose books an operator writes.
    """

    database: Database
    client: Client
    settings: Settings
    metrics: Metrics
    starts: DirectStarts
    inventory: Database
    loyalty: Database


DEPS = web.AppKey("deps", Deps)


def deps(request: web.Request) -> Deps:
    """The dependencies of the application that this request came to."""
    return request.app[DEPS]
