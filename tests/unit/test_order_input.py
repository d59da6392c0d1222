"""Orders as people type them: what is wrong is one line that names the file or flag and the field, never a value."""

import io
import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from domain.intake import FieldProblem, IntakeProblem
from terminal.app import BadInput
from terminal.intake import Flags, read_request, refused
from tests.builders import an_order_document

FLAGS = {
    "--line: write SKU=QUANTITY, like --line tea-green=2": [
        Flags(line=("tea",)),
        Flags(line=("tea=two",)),
        Flags(line=("=1",)),
        Flags(line=("tea=-1",)),
        Flags(line=("tea=1.5",)),
        Flags(line=("tea=٣",)),
        Flags(line=(f"tea={10**18}",)),
    ],
    "--line: Input should be greater than or equal to 1": [Flags(line=("tea=0",))],
    "--currency: one of EUR, USD, GBP, CHF, SEK, NOK, DKK, PLN, JPY, KWD": [Flags(currency="eur"), Flags(currency="")],
    "--points: Input should be greater than or equal to 0": [Flags(points=-1)],
    "--store-credit: Input should be greater than or equal to 0": [Flags(store_credit=-1)],
    "--country: two capital letters, like DE": [Flags(country="Germany")],
    "--email: an address like bob@example.com": [Flags(email="bob")],
    "--payment-method: the gateway's token, like pm_card_visa": [Flags(payment_method="4242")],
}


@pytest.mark.parametrize("complaint", FLAGS)
def test_a_wrong_flag_is_named(complaint: str) -> None:
    for flags in FLAGS[complaint]:
        with pytest.raises(BadInput) as refusal:
            read_request(None, flags)
        assert str(refusal.value) == complaint


def test_without_flags_it_is_an_order_of_the_catalogue_to_try_out() -> None:
    request = read_request(None, Flags())
    assert request.customer_id == "alice"
    assert {line.sku: line.quantity for line in request.lines} == {"tea-green": 1, "mug-blue": 2}
    assert (request.points, request.store_credit, request.payment_method) == (0, 0, None)


def test_flags_say_what_is_ordered_and_how_it_is_paid() -> None:
    request = read_request(
        None, Flags(customer="bob", line=("a=2", "b=1"), points=5, payment_method="pm_card_visa", postcode="00000")
    )
    assert request.customer_id == "bob"
    assert [(line.sku, line.quantity) for line in request.lines] == [("a", 2), ("b", 1)]
    assert (request.points, request.payment_method, request.email) == (5, "pm_card_visa", "bob@example.com")
    assert request.shipping_address.postcode == "00000"


def test_a_file_holds_the_body_that_http_takes(tmp_path: Path) -> None:
    path = tmp_path / "order.json"
    path.write_text(json.dumps(an_order_document(points=7)), encoding="utf-8-sig")
    assert read_request(str(path), Flags()).points == 7


def test_stdin_is_a_file_too(monkeypatch: pytest.MonkeyPatch) -> None:
    content = io.BytesIO(json.dumps(an_order_document(points=7)).encode())
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=content))
    assert read_request("-", Flags()).points == 7
    with pytest.raises(BadInput, match="stdin is not JSON"):
        read_request("-", Flags())


FILES: dict[str, tuple[bytes, str]] = {
    "not text": (b"\x89PNG\r\n\x1a\n\x00\xff", " is not a text file"),
    "not JSON": (b'{"customer_id": "ada",}', " is not JSON: "),
    "empty": (b"", " is not JSON: "),
    "nested without end": (b"[" * 100_000, " is not JSON that an order can be read from"),
    "a number without end": (b"9" * 10_000, " is not JSON that an order can be read from"),
    "too large": (b" " * (1024 * 1024 + 1), " is larger than 1 MB: no order is"),
    "a list": (b"[]", ": body: "),
    "an unknown field": (
        json.dumps(an_order_document(colour="red")).encode(),
        ": colour: Extra inputs are not permitted",
    ),
    "a quantity in words": (
        json.dumps(an_order_document(lines=[{"sku": "A", "quantity": "two"}])).encode(),
        ": lines.0.quantity: Input should be a valid integer",
    ),
    "a price of its own": (
        json.dumps(an_order_document(lines=[{"sku": "A", "quantity": 1, "unit_price": 1}])).encode(),
        ": lines.0.unit_price: Extra inputs are not permitted",
    ),
    "points as a float": (
        json.dumps(an_order_document(points=1.0)).encode(),
        ": points: Input should be a valid integer",
    ),
}


@pytest.mark.parametrize("kind", FILES)
def test_a_wrong_file_is_named_with_its_field(tmp_path: Path, kind: str) -> None:
    content, complaint = FILES[kind]
    path = tmp_path / "order.json"
    path.write_bytes(content)
    with pytest.raises(BadInput) as refusal:
        read_request(str(path), Flags())
    assert str(refusal.value).startswith(f"{path}{complaint}")
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("name", "why"),
    [("missing.json", "No such file or directory"), (".", "Is a directory"), ("a\0b", "not a file name")],
)
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, name: str, why: str) -> None:
    with pytest.raises(BadInput, match=f"cannot be read: {why}"):
        read_request(str(tmp_path / name), Flags())


def test_flags_beside_a_file_are_refused() -> None:
    with pytest.raises(BadInput, match=r"^the order is read from o\.json: leave out --customer, --points$"):
        read_request("o.json", Flags(points=0, customer="bob"))


def test_no_value_of_a_file_is_repeated(tmp_path: Path) -> None:
    document = an_order_document(email="marker-mail", note="x" * 3000)
    document["shipping_address"] = {**document["shipping_address"], "country": "marker-country", "marker-field": "x"}
    path = tmp_path / "order.json"
    path.write_text(json.dumps(document))
    with pytest.raises(BadInput) as refusal:
        read_request(str(path), Flags())
    assert "marker" not in str(refusal.value)


def test_what_the_door_refuses_is_told_by_flag_or_by_field() -> None:
    problem = IntakeProblem("invalid-order", "too many", errors=(FieldProblem("points", "exceed the total"),))
    assert str(refused(problem, None)) == "--points: exceed the total"
    assert str(refused(problem, "o.json")) == "o.json: points: exceed the total"
