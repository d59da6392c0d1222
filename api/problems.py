"""Errors as RFC 9457 problem documents: one stable `type` a kind, no internals, never personal data."""

from collections.abc import Mapping, Sequence

from aiohttp import web
from pydantic import BaseModel, Field, ValidationError

from domain.intake import IntakeProblem, request_problem

#: Seconds after which a client may ask again, when a dependency of ours is down.
RETRY_AFTER_SECONDS = 2
#: The same while an operator holds the intake.
HELD_RETRY_AFTER_SECONDS = 60


class FieldError(BaseModel):
    """One wrong part of the request: a path into the body (`lines.0.quantity`), or the name of a header."""

    field: str
    detail: str


class ProblemDocument(BaseModel):
    """RFC 9457, with `errors` for the fields that are wrong."""

    type: str = Field(examples=["/problems/invalid-request"])
    title: str
    status: int
    detail: str | None = None
    instance: str | None = None
    errors: list[FieldError] | None = None


class Problem(Exception):
    """An answer other than success. `kind` is the last part of its `type`."""

    def __init__(
        self,
        status: int,
        kind: str,
        detail: str | None = None,
        *,
        title: str | None = None,
        errors: Sequence[FieldError] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(kind)
        self.status = status
        self.kind = kind
        self.title = title or kind.replace("-", " ").capitalize()
        self.detail = detail
        self.errors = list(errors)
        self.headers = dict(headers or {})

    def response(self, instance: str) -> web.Response:
        """The problem document about the request to `instance`."""
        document = ProblemDocument(
            type=f"/problems/{self.kind}",
            title=self.title,
            status=self.status,
            detail=self.detail,
            instance=instance,
            errors=self.errors or None,
        )
        return web.Response(
            status=self.status,
            body=document.model_dump_json(exclude_none=True).encode(),
            content_type="application/problem+json",
            headers=self.headers,
        )


def unavailable(kind: str, detail: str, errors: Sequence[FieldError] = ()) -> Problem:
    """503 with the time after which the same request may be sent again."""
    return Problem(503, kind, detail, errors=errors, headers={"Retry-After": str(RETRY_AFTER_SECONDS)})


def no_answer() -> Problem:
    """503: the order's workflow gave no answer in time."""
    return unavailable("no-answer", "the order gave no answer in time: send the same request again")


def intake_held() -> Problem:
    """503: an operator holds the intake, for minutes rather than seconds."""
    detail = "the shop takes no new orders for a while: send the same request again later"
    return Problem(503, "intake-held", detail, headers={"Retry-After": str(HELD_RETRY_AFTER_SECONDS)})


def not_found(detail: str) -> Problem:
    """404: there is no such thing."""
    return Problem(404, "not-found", detail)


def invalid_request(error: ValidationError) -> Problem:
    """422 with every wrong field. The values themselves are not repeated: they may be personal data."""
    found = request_problem(error)
    return Problem(422, "invalid-request", found.detail, errors=_fields(found))


def refused_at_the_door(found: IntakeProblem) -> Problem:
    """What intake says about an order that it does not take."""
    return Problem(found.status, found.type, found.detail, title=found.title, errors=_fields(found))


def _fields(found: IntakeProblem) -> list[FieldError]:
    return [FieldError(field=wrong.field, detail=wrong.problem) for wrong in found.errors]
