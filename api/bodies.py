"""Reading what a client sent: JSON bodies, headers and ids, refused before anything else happens."""

import json
import re
from typing import Any, NoReturn, TypeVar

from aiohttp import web
from pydantic import BaseModel, ValidationError

from api.problems import FieldError, Problem, invalid_request
from domain.intake import checked_key

#: 500 lines with the longest names take less than a tenth of this.
LARGEST_BODY_BYTES = 1024 * 1024
#: Far over any amount, far under what takes time to convert.
LONGEST_INTEGER_DIGITS = 40

IDEMPOTENCY_HEADERS = ("Idempotency-Key", "X-Idempotency-Key")

_ACTOR = re.compile(r"[\x21-\x7e]{1,128}")
_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")

Model = TypeVar("Model", bound=BaseModel)


async def read_body(request: web.Request, model: type[Model], *, optional: bool = False) -> Model:
    """The body as `model`. Raises Problem 400 (not JSON), 413, 415 or 422. `optional`: no body counts as `{}`."""
    raw = await read_bytes(request)
    if not raw and optional:
        return model()
    if request.content_type != "application/json":
        raise Problem(415, "unsupported-media-type", "send the body as application/json")
    parsed = parse_json(raw)
    try:
        return model.model_validate(parsed)
    except ValidationError as error:
        raise invalid_request(error) from None


async def read_bytes(request: web.Request) -> bytes:
    """The body as it was sent. Raises Problem 413 over 1 MiB, 400 when it breaks off."""
    try:
        return await request.read()
    except web.HTTPRequestEntityTooLarge:
        raise Problem(413, "body-too-large", f"the body is over {LARGEST_BODY_BYTES} bytes") from None
    except web.RequestPayloadError:
        raise Problem(400, "malformed-body", "the body broke off or does not match its encoding") from None


def parse_json(raw: bytes) -> Any:
    """Strict JSON: UTF-8, no key twice, no NaN or Infinity, integers kept apart from floats. Raises Problem 400."""
    try:
        text = raw.decode("utf-8")
        return json.loads(text, object_pairs_hook=_object, parse_int=_integer, parse_constant=_refuse_constant)
    except UnicodeDecodeError:
        raise Problem(400, "malformed-json", "the body is not UTF-8") from None
    except RecursionError:
        raise Problem(400, "malformed-json", "the body is nested too deep") from None
    except ValueError as error:
        place = f"line {error.lineno} column {error.colno}" if isinstance(error, json.JSONDecodeError) else str(error)
        raise Problem(400, "malformed-json", f"the body is not JSON: {place}") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands twice in one object")
    return found


def _integer(digits: str) -> int:
    if len(digits) > LONGEST_INTEGER_DIGITS:
        raise ValueError("a number has too many digits")
    return int(digits)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number of JSON")


def idempotency_key(request: web.Request) -> str | None:
    """The client's key under either name, or None. Raises Problem or IntakeProblem (400) when it is not usable."""
    values = {value for name in IDEMPOTENCY_HEADERS for value in request.headers.getall(name, ())}
    if len(values) > 1:
        raise Problem(400, "invalid-key", "the request carries two different idempotency keys")
    return checked_key(values.pop()) if values else None


def required_idempotency_key(request: web.Request) -> str:
    """The client's key. Raises Problem or IntakeProblem (400) when there is none."""
    return idempotency_key(request) or checked_key(None)


def actor(request: web.Request, default: str) -> str:
    """Who acts, by `X-Actor` (until tokens tell it). Raises Problem 400 when that is no plain name."""
    name: str = request.headers.get("X-Actor", default)
    if not _ACTOR.fullmatch(name):
        detail = "X-Actor is 1 to 128 visible ASCII characters"
        raise Problem(400, "invalid-actor", detail, errors=[FieldError(field="X-Actor", detail=detail)])
    return name


def path_id(request: web.Request, name: str) -> str | None:
    """The id in the path, or None where it cannot be the id of anything."""
    value = request.match_info[name]
    return value if _ID.fullmatch(value) else None
