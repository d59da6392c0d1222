"""What the shop takes in at its one door: the body of `POST /orders`, its price, and every reason to refuse it.

Pure: the catalogue is handed in, nothing is written. A refusal is an `IntakeProblem`; it names fields, SKUs and
prices, no other values, since one may be a name or an address and a problem document ends up in logs.
"""

import hashlib
import json
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, ValidationError

from domain.money import CURRENCIES, charge_problem, format_minor

LARGEST_QUANTITY = 100_000
#: A basket above it is a mistake or an attack (SCENARIOS S78): one transaction and one reservation must carry it.
LARGEST_LINES = 500
#: Far above anything the gateway charges, far below what a bigint column holds.
LARGEST_TOTAL_MINOR = 10**12

#: A request with more faults than this is not going to be mended field by field.
MOST_COMPLAINTS = 20

_UNPRINTABLE = {"Cc", "Cs"}
_VISIBLE_KEY = re.compile(r"[\x21-\x7e]{1,255}")
_PLAIN_FIELD = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,39}")

_TITLES = {
    "invalid-order": "The order is not valid",
    "invalid-key": "The idempotency key is missing or not valid",
    "key-reused": "The idempotency key was used for another order",
    "price-changed": "The price has changed",
}


@dataclass(frozen=True)
class FieldProblem:
    """One field of the request, by its path (`lines.0.quantity`), and what is wrong with it."""

    field: str
    problem: str


class IntakeProblem(Exception):
    """The order is refused at the door, and nothing was written.

    `type` is the stable slug of the problem document, `status` its HTTP status, `errors` the fields at fault.
    """

    def __init__(self, type_: str, detail: str, *, status: int = 422, errors: tuple[FieldProblem, ...] = ()) -> None:
        super().__init__(type_)
        self.type = type_
        self.title = _TITLES[type_]
        self.status = status
        self.detail = detail
        self.errors = errors


def _whole_number(value: object) -> object:
    # JSON knows one kind of number: 1.0 is 1. Money is not so lenient: a float there is somebody's rounding error.
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _sold_currency(value: str) -> str:
    if value not in CURRENCIES:
        raise ValueError(f"one of {', '.join(CURRENCIES)}")
    return value


def _printable(value: str, allowed: str = "") -> str:
    # PostgreSQL cannot store NUL, UTF-8 no lone surrogate, and a line break in a name forges mail headers.
    if any(unicodedata.category(character) in _UNPRINTABLE and character not in allowed for character in value):
        raise ValueError("no control characters")
    return value


def _printable_lines(value: str) -> str:
    return _printable(value, allowed="\n\r\t")


def _text(most: int) -> StringConstraints:
    return StringConstraints(strip_whitespace=True, min_length=1, max_length=most)


_NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"
_LONG_NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$"
_AT_THE_GATEWAY = r"^[A-Za-z][A-Za-z0-9_-]{0,127}$"
_EMAIL = r"^[^\s@<>,;:]+@[^\s@<>,;:]+\.[^\s@<>,;:.]+$"
_COUNTRY = r"^[A-Z]{2}$"

#: What a text must be that its pattern refuses.
_PATTERNS = {
    _NAME: "1 to 64 letters, digits, dots, dashes or underscores, a letter or digit first",
    _LONG_NAME: "1 to 128 letters, digits, dots, dashes or underscores, a letter or digit first",
    _AT_THE_GATEWAY: "the gateway's token, like pm_card_visa",
    _EMAIL: "an address like bob@example.com",
    _COUNTRY: "two capital letters, like DE",
}

Sku = Annotated[str, Field(pattern=_NAME)]
CustomerId = Annotated[str, Field(pattern=_LONG_NAME)]
Channel = Annotated[str, Field(pattern=_NAME)]
#: The gateway's token. A letter first: a card number must not get in here by mistake.
PaymentMethod = Annotated[str, Field(pattern=_AT_THE_GATEWAY)]
Quantity = Annotated[int, BeforeValidator(_whole_number), Field(strict=True, ge=1, le=LARGEST_QUANTITY)]
Amount = Annotated[int, Field(strict=True, ge=0, le=LARGEST_TOTAL_MINOR)]
CurrencyCode = Annotated[str, AfterValidator(_sold_currency), Field(json_schema_extra={"enum": list(CURRENCIES)})]
#: Enough to keep a typing error out; whether it is somebody's, only a mail can tell.
Email = Annotated[
    str,
    StringConstraints(strip_whitespace=True, max_length=254, pattern=_EMAIL),
    AfterValidator(_printable),
]
ShortText = Annotated[str, _text(200), AfterValidator(_printable)]
Postcode = Annotated[str, _text(16), AfterValidator(_printable)]
Note = Annotated[str, _text(2000), AfterValidator(_printable_lines)]


class _Request(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class RequestedLine(_Request):
    """One line of the basket. The price is the catalogue's: one sent by a client is an unknown field."""

    sku: Sku
    quantity: Quantity


def _not_empty(lines: tuple[RequestedLine, ...]) -> tuple[RequestedLine, ...]:
    # Not min_length: pydantic counts the valid lines only and would call a basket of one bad line empty as well.
    if not lines:
        raise ValueError("at least one line")
    return lines


class ShippingAddress(_Request):
    """Where the parcels go. Personal data."""

    name: ShortText
    line1: ShortText
    line2: ShortText | None = None
    city: ShortText
    postcode: Postcode
    country: Annotated[str, Field(pattern=_COUNTRY)]


class OrderRequest(_Request):
    """The body of `POST /orders`, and what `starter.py` sends. Money is in the currency's smallest unit."""

    customer_id: CustomerId
    currency: CurrencyCode
    lines: Annotated[
        tuple[RequestedLine, ...],
        Field(max_length=LARGEST_LINES, json_schema_extra={"minItems": 1}),
        AfterValidator(_not_empty),
    ]
    payment_method: PaymentMethod | None = None
    points: Amount = 0
    store_credit: Amount = 0
    email: Email
    shipping_address: ShippingAddress
    note: Note | None = None
    expected_total: Amount | None = None
    channel: Channel | None = None


def parse_order(document: object) -> OrderRequest:
    """The request in a decoded JSON document. Raises IntakeProblem `invalid-order` listing every field at fault."""
    try:
        return OrderRequest.model_validate(document)
    except ValidationError as error:
        raise request_problem(error) from None


def request_problem(error: ValidationError) -> IntakeProblem:
    """Pydantic's first 20 complaints as one problem. Neither values nor odd field names of the client are repeated."""
    found = tuple(
        FieldProblem(_path(complaint["loc"]), _words(complaint["type"], complaint["msg"], complaint.get("ctx", {})))
        for complaint in error.errors(include_input=False, include_url=False)[:MOST_COMPLAINTS]
    )
    fields = ", ".join(dict.fromkeys(problem.field for problem in found[:5]))
    return IntakeProblem("invalid-order", f"look at: {fields}", errors=found)


def _words(kind: str, message: str, context: Mapping[str, object]) -> str:
    """Pydantic's complaint in words for whoever wrote the request: no pattern, no name of a class."""
    if kind == "string_pattern_mismatch":
        return _PATTERNS.get(str(context.get("pattern")), "characters that do not belong here")
    if kind in ("model_type", "model_attributes_type"):
        return "must be a JSON object"
    return message.removeprefix("Value error, ")


def _path(location: tuple[int | str, ...]) -> str:
    parts = [str(part) if isinstance(part, int) or _PLAIN_FIELD.fullmatch(part) else "(unknown)" for part in location]
    return ".".join(parts) or "body"


def checked_key(key: str | None) -> str:
    """The idempotency key: 1 to 255 visible ASCII characters. Raises IntakeProblem `invalid-key` (400)."""
    if key is None or not _VISIBLE_KEY.fullmatch(key):
        raise IntakeProblem("invalid-key", "send 1 to 255 visible ASCII characters as Idempotency-Key", status=400)
    return key


def fingerprint(request: OrderRequest) -> str:
    """SHA-256 of what the request *means*: the order of keys, `1.0` for `1` and spelled-out defaults do not matter.

    Defaults are left out, so that a field added later does not change the fingerprint of a request sent before.
    """
    meaning = request.model_dump(mode="json", exclude_defaults=True)
    return hashlib.sha256(json.dumps(meaning, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


@dataclass(frozen=True)
class CataloguePrice:
    """What one piece costs now."""

    unit_price: int
    currency: str


@dataclass(frozen=True)
class PricedOrder:
    """What the order costs, frozen from here on. `unit_prices` follows the request's lines; None: no such SKU.

    Always `total` = sum of the priced lines and `amount_due` = `total` − `points` − `store_credit`.
    """

    unit_prices: tuple[int | None, ...]
    total: int
    points: int
    store_credit: int
    amount_due: int


def price_order(request: OrderRequest, catalogue: Mapping[str, CataloguePrice], *, points_currency: str) -> PricedOrder:
    """Prices the request from the catalogue's entries for its SKUs.

    An unknown SKU is no reason to refuse here: the saga rejects that order as a whole, with a status that can be looked
    up. Its line counts nothing, no points or credit are taken for it, and what the amount comes to is not judged.

    Raises IntakeProblem `price-changed` or `invalid-order`.
    """
    known = {line.sku: catalogue[line.sku] for line in request.lines if line.sku in catalogue}
    prices = tuple(known[line.sku].unit_price if line.sku in known else None for line in request.lines)
    total = sum((price or 0) * line.quantity for price, line in zip(prices, request.lines, strict=True))
    for sku, price in known.items():
        if price.currency != request.currency:
            raise _refused("currency", f"{sku} is sold in {price.currency}")
    if request.points and request.currency != points_currency:
        raise _refused("points", f"points can be spent in {points_currency} only")
    if total > LARGEST_TOTAL_MINOR:
        raise _refused("lines", f"the total is over {format_minor(LARGEST_TOTAL_MINOR, request.currency)}")
    if None in prices:
        return PricedOrder(prices, total, points=0, store_credit=0, amount_due=total)
    due = total - request.points - request.store_credit
    _judge(request, total, due)
    return PricedOrder(prices, total, request.points, request.store_credit, due)


def _judge(request: OrderRequest, total: int, due: int) -> None:
    if request.expected_total is not None and request.expected_total != total:
        now = f"the total is now {format_minor(total, request.currency)}"
        raise IntakeProblem("price-changed", now, errors=(FieldProblem("expected_total", now),))
    if due < 0:
        raise _refused(
            "points" if request.points else "store_credit",
            f"points and store credit exceed the total of {format_minor(total, request.currency)}",
        )
    if problem := charge_problem(due, request.currency):
        raise _refused("lines", problem)


def _refused(field: str, problem: str) -> IntakeProblem:
    return IntakeProblem("invalid-order", problem, errors=(FieldProblem(field, problem),))
