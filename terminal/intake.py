"""An order as people write it, in a JSON file or as flags, made the same request that `POST /orders` takes.

Whatever is wrong is told in one line with the file or flag and the field; values are not repeated.
"""

import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path

from domain.intake import IntakeProblem, OrderRequest, parse_order
from terminal.app import BadInput

STDIN = "-"
#: As the HTTP door: a larger order is a mistake.
LARGEST_FILE_BYTES = 1024 * 1024

_LINE = re.compile(r"([^=]+)=(\d{1,9})", re.ASCII)

#: Which flag a field of the request comes from.
_FLAGS = {
    "customer_id": "--customer",
    "lines": "--line",
    "payment_method": "--payment-method",
    "store_credit": "--store-credit",
    "expected_total": "--expected-total",
    "shipping_address.postcode": "--postcode",
    "shipping_address.country": "--country",
}


@dataclass(frozen=True)
class Flags:
    """The flags that describe an order; None where one was not given."""

    customer: str | None = None
    line: tuple[str, ...] = ()
    currency: str | None = None
    payment_method: str | None = None
    points: int | None = None
    store_credit: int | None = None
    expected_total: int | None = None
    email: str | None = None
    postcode: str | None = None
    country: str | None = None

    def given(self) -> list[str]:
        """The flags that were given, as they are typed."""
        return [f"--{name.replace('_', '-')}" for name, value in vars(self).items() if value not in (None, ())]


def read_request(file: str | None, flags: Flags) -> OrderRequest:
    """The order in the file, or the one that the flags describe. Raises BadInput."""
    if file is None:
        return _from_flags(flags)
    if given := flags.given():
        raise BadInput(f"the order is read from {_named(file)}: leave out {', '.join(given)}")
    try:
        return parse_order(_read_json(file))
    except IntakeProblem as problem:
        raise refused(problem, file) from None


def refused(problem: IntakeProblem, file: str | None) -> BadInput:
    """The door's refusal in one line that names the file or the flags, and the fields."""
    if not problem.errors:
        return BadInput(f"{_named(file)}: {problem.detail}" if file else problem.detail)
    complaints = [f"{_where(error.field, file)}: {error.problem}" for error in problem.errors]
    line = "; ".join(dict.fromkeys(complaints))
    return BadInput(f"{_named(file)}: {line}" if file else line)


def _where(field: str, file: str | None) -> str:
    if file is not None:
        return field
    for known in (field, field.split(".", 1)[0]):
        if known in _FLAGS:
            return _FLAGS[known]
    return f"--{field}"


def _named(file: str | None) -> str:
    return "stdin" if file == STDIN else file or '""'


def _read_json(file: str) -> object:
    try:
        return json.loads(_read_bytes(file).decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise BadInput(f"{_named(file)} is not a text file") from None
    except json.JSONDecodeError as error:
        raise BadInput(
            f"{_named(file)} is not JSON: {error.msg} in line {error.lineno}, column {error.colno}"
        ) from None
    except (ValueError, RecursionError):
        raise BadInput(f"{_named(file)} is not JSON that an order can be read from") from None


def _read_bytes(file: str) -> bytes:
    try:
        if file == STDIN:
            content = sys.stdin.buffer.read(LARGEST_FILE_BYTES + 1)
        else:
            with Path(file).open("rb") as opened:
                content = opened.read(LARGEST_FILE_BYTES + 1)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else "not a file name"
        raise BadInput(f"{_named(file)} cannot be read: {why}") from None
    if len(content) > LARGEST_FILE_BYTES:
        raise BadInput(f"{_named(file)} is larger than 1 MB: no order is")
    return content


def _from_flags(flags: Flags) -> OrderRequest:
    customer = flags.customer if flags.customer is not None else "alice"
    document: dict[str, object] = {
        "customer_id": customer,
        "currency": flags.currency if flags.currency is not None else "EUR",
        "lines": [_parse_line(line) for line in flags.line or ("tea-green=1", "mug-blue=2")],
        "points": flags.points or 0,
        "store_credit": flags.store_credit or 0,
        "email": flags.email if flags.email is not None else f"{customer}@example.com",
        "shipping_address": {
            "name": "Alice Example",
            "line1": "Invalidenstraße 116",
            "city": "Berlin",
            "postcode": flags.postcode if flags.postcode is not None else "10115",
            "country": flags.country if flags.country is not None else "DE",
        },
        "channel": "terminal",
    }
    for name in ("payment_method", "expected_total"):
        if (value := getattr(flags, name)) is not None:
            document[name] = value
    try:
        return parse_order(document)
    except IntakeProblem as problem:
        raise refused(problem, None) from None


def _parse_line(text: str) -> dict[str, object]:
    found = _LINE.fullmatch(text)
    if not found:
        raise BadInput("--line: write SKU=QUANTITY, like --line tea-green=2")
    return {"sku": found[1], "quantity": int(found[2])}
