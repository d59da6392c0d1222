"""What a route is: its handler together with what `/openapi.json` says about it, so that the two cannot part."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from aiohttp import web
from pydantic import BaseModel

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True)
class Header:
    """A request header that a route reads. Lengths are those of its value."""

    name: str
    description: str
    longest: int
    required: bool = False


@dataclass(frozen=True)
class Operation:
    """One method on one path.

    `answers` maps a success status to its model (None: a body that is not JSON), `problems` names the problem
    statuses of this route beyond those that every route has.
    """

    method: str
    path: str
    handler: Handler
    summary: str
    answers: dict[int, type[BaseModel] | None]
    problems: tuple[int, ...] = ()
    body: type[BaseModel] | None = None
    body_required: bool = True
    #: A body that is verified as bytes before it is read: any JSON object.
    raw_body: bool = False
    headers: tuple[Header, ...] = ()
    #: Further headers of a success, with what they mean.
    response_headers: dict[str, str] = field(default_factory=dict)
    media_type: str = "application/json"


def json_response(model: BaseModel, *, status: int = 200, headers: dict[str, str] | None = None) -> web.Response:
    """A model as the answer's JSON."""
    return web.Response(
        status=status, body=model.model_dump_json().encode(), content_type="application/json", headers=headers
    )
