"""What the door lets in, what it refuses, and what an order costs."""

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.intake import (
    CataloguePrice,
    IntakeProblem,
    OrderRequest,
    PricedOrder,
    checked_key,
    fingerprint,
    parse_order,
    price_order,
)
from domain.money import CURRENCIES
from tests.builders import an_order, an_order_document

CATALOGUE = {"A": CataloguePrice(3000, "EUR"), "B": CataloguePrice(2000, "EUR")}


def refused(document: object) -> IntakeProblem:
    with pytest.raises(IntakeProblem) as caught:
        parse_order(document)
    return caught.value


def refused_fields(document: object) -> set[str]:
    problem = refused(document)
    assert (problem.type, problem.status) == ("invalid-order", 422)
    return {error.field for error in problem.errors}


def priced(request: OrderRequest, catalogue: dict[str, CataloguePrice] | None = None) -> PricedOrder:
    return price_order(request, catalogue or CATALOGUE, points_currency="EUR")


def refused_price(request: OrderRequest, catalogue: dict[str, CataloguePrice] | None = None) -> IntakeProblem:
    with pytest.raises(IntakeProblem) as caught:
        priced(request, catalogue)
    assert caught.value.status == 422
    return caught.value


@pytest.mark.parametrize(
    "quantity", [-1, 0, 1.5, 2**31, 10**18, 1e18, "1", None, True, float("inf"), float("nan"), [1]]
)
def test_a_quantity_that_nobody_can_mean_is_refused(quantity: Any) -> None:
    assert refused_fields(an_order_document(lines=[{"sku": "A", "quantity": quantity}])) == {"lines.0.quantity"}


@pytest.mark.parametrize("document", [[], "order", None, 1])
def test_what_is_no_object_is_told_in_words(document: object) -> None:
    (error,) = refused(document).errors
    assert (error.field, error.problem) == ("body", "must be a JSON object")


def test_one_bad_line_refuses_the_whole_order() -> None:
    lines = [{"sku": "A", "quantity": 1}, {"sku": "B", "quantity": -1}]
    assert refused_fields(an_order_document(lines=lines)) == {"lines.1.quantity"}


def test_a_price_sent_by_the_client_is_refused() -> None:
    line = {"sku": "A", "quantity": 1, "unit_price": 1}
    assert refused_fields(an_order_document(lines=[line])) == {"lines.0.unit_price"}


@pytest.mark.parametrize("amount", [1.0, 1.5, "5", True, -1, 10**18, None])
@pytest.mark.parametrize("field", ["points", "store_credit"])
def test_money_is_a_whole_number_of_smallest_units_or_refused(field: str, amount: Any) -> None:
    assert refused_fields(an_order_document(**{field: amount})) == {field}


@pytest.mark.parametrize("amount", [30.0, "30", False, -1])
def test_an_expected_total_is_money_too(amount: Any) -> None:
    assert refused_fields(an_order_document(expected_total=amount)) == {"expected_total"}


@pytest.mark.parametrize("currency", ["jpy", "XXX", "EURO", "", None, 978])
def test_a_currency_that_the_shop_does_not_know_is_refused(currency: Any) -> None:
    assert refused_fields(an_order_document(currency=currency)) == {"currency"}


def test_a_basket_has_one_to_five_hundred_lines() -> None:
    line = {"sku": "A", "quantity": 1}
    assert refused_fields(an_order_document(lines=[])) == {"lines"}
    assert refused_fields(an_order_document(lines=[line] * 501)) == {"lines"}
    assert len(an_order(lines=[line] * 500).lines) == 500


@pytest.mark.parametrize("field", ["customer_id", "channel", "payment_method"])
@pytest.mark.parametrize("value", ["", "a b", "a/b", "ada@example.com", "\x00", "-a", "a" * 129, "a\n", 7])
def test_ids_are_plain_and_short(field: str, value: Any) -> None:
    assert refused_fields(an_order_document(**{field: value})) == {field}


def test_a_card_number_is_no_payment_method() -> None:
    assert refused_fields(an_order_document(payment_method="4242424242424242")) == {"payment_method"}


@pytest.mark.parametrize(
    "email",
    ["", "ada", "@example.com", "ada@", "ada@example", "a b@c.de", "a@b@c.de", "a@c.de,b@c.de", "a" * 250 + "@c.de"],
)
def test_an_address_that_no_mail_reaches_is_refused(email: str) -> None:
    assert refused_fields(an_order_document(email=email)) == {"email"}


@pytest.mark.parametrize("country", ["gb", "GBR", "G", "", "ÄÖ"])
def test_a_country_is_two_capitals(country: str) -> None:
    document = an_order_document()
    document["shipping_address"] |= {"country": country}
    assert refused_fields(document) == {"shipping_address.country"}


@pytest.mark.parametrize("text", ["\x00", "Ada\x00", "Ada\nBcc: all", "\ud800", "Ada\x7f", "   ", "x" * 201])
def test_text_that_cannot_be_stored_or_forges_a_header_is_refused(text: str) -> None:
    document = an_order_document()
    document["shipping_address"] |= {"name": text}
    assert refused_fields(document) == {"shipping_address.name"}


def test_a_note_may_have_lines_but_not_be_a_book() -> None:
    assert an_order(note="  ring twice\nthen wait ").note == "ring twice\nthen wait"
    assert refused_fields(an_order_document(note="x" * 2001)) == {"note"}
    assert refused_fields(an_order_document(note="a\x00b")) == {"note"}


@pytest.mark.parametrize("document", [None, [], "order", 7, {}])
def test_what_is_no_order_at_all_is_refused(document: object) -> None:
    assert refused_fields(document) >= ({"body"} if document != {} else {"customer_id", "lines", "email"})


def test_a_refusal_names_fields_and_never_repeats_what_was_sent() -> None:
    document = an_order_document(email="MARKER", note="MARKER\x00", customer_id="MARKER MARKER")
    document["MARKER@example.com"] = "MARKER"
    document["shipping_address"] = {"name": "MARKER\x00", "street": "MARKER"}
    problem = refused(document)
    assert "MARKER" not in " ".join([str(problem), problem.title, problem.detail, repr(problem.errors)])
    assert {"email", "(unknown)", "shipping_address.street"} <= {error.field for error in problem.errors}


def test_the_same_order_written_differently_has_the_same_fingerprint() -> None:
    document = an_order_document()
    turned = dict(reversed(document.items()))
    turned["lines"] = [{"quantity": 1.0, "sku": line["sku"]} for line in document["lines"]]
    spelled_out = document | {"points": 0, "note": None, "channel": None}
    assert fingerprint(parse_order(document)) == fingerprint(parse_order(turned))
    assert fingerprint(parse_order(document)) == fingerprint(parse_order(spelled_out))


@pytest.mark.parametrize(
    "change",
    [
        {"points": 1},
        {"note": "x"},
        {"email": "b@example.com"},
        {"lines": [{"sku": "A", "quantity": 2}]},
        {"currency": "JPY"},
    ],
)
def test_another_order_has_another_fingerprint(change: dict[str, Any]) -> None:
    assert fingerprint(an_order(**change)) != fingerprint(an_order())


requests = st.builds(
    an_order,
    lines=st.lists(
        st.fixed_dictionaries(
            {
                "sku": st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,20}", fullmatch=True),
                "quantity": st.integers(1, 100_000),
            }
        ),
        min_size=1,
        max_size=5,
    ),
    currency=st.sampled_from(sorted(CURRENCIES)),
    points=st.integers(0, 10**12),
    store_credit=st.integers(0, 10**12),
    note=st.none()
    | st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Z"]), min_size=1, max_size=50),
)


@given(requests)
def test_a_request_survives_the_wire_and_keeps_its_fingerprint(request: OrderRequest) -> None:
    again = parse_order(json.loads(request.model_dump_json()))
    assert again == request
    assert fingerprint(again) == fingerprint(request)
    assert re.fullmatch(r"[0-9a-f]{64}", fingerprint(request))


@pytest.mark.parametrize("key", ["k", "x" * 255, "!~", "3f6c-…".replace("…", "9")])
def test_a_key_of_visible_characters_is_taken(key: str) -> None:
    assert checked_key(key) == key


@pytest.mark.parametrize("key", [None, "", "x" * 256, "x" * 300, "a b", "ä", "a\n", "\x00"])
def test_any_other_key_is_a_bad_request(key: str | None) -> None:
    with pytest.raises(IntakeProblem) as caught:
        checked_key(key)
    assert (caught.value.type, caught.value.status) == ("invalid-key", 400)


def test_the_catalogue_prices_the_order_and_points_and_credit_lower_what_is_due() -> None:
    price = priced(an_order(points=500, store_credit=1000, expected_total=5000))
    assert price == PricedOrder((3000, 2000), total=5000, points=500, store_credit=1000, amount_due=3500)


def test_one_sku_on_many_lines_is_summed() -> None:
    assert priced(an_order(lines=[{"sku": "A", "quantity": 2}] * 30)).total == 180_000


def test_an_order_paid_by_points_alone_owes_nothing() -> None:
    assert priced(an_order(points=5000)).amount_due == 0


def test_a_changed_price_is_told_before_anything_is_taken() -> None:
    assert refused_price(an_order(expected_total=4999)).type == "price-changed"
    assert refused_price(an_order(expected_total=4999)).errors[0].problem == "the total is now 50.00 EUR"


@pytest.mark.parametrize("means", [{"points": 5001}, {"store_credit": 5001}, {"points": 3000, "store_credit": 2001}])
def test_more_points_or_credit_than_the_total_is_refused(means: dict[str, int]) -> None:
    assert "exceed the total of 50.00 EUR" in refused_price(an_order(**means)).detail


def test_a_rest_that_the_gateway_would_not_charge_is_refused() -> None:
    assert "smallest charge" in refused_price(an_order(points=4951)).detail
    assert priced(an_order(points=4950)).amount_due == 50


def test_points_are_spent_in_their_own_currency_only() -> None:
    dollars = {sku: CataloguePrice(price.unit_price, "USD") for sku, price in CATALOGUE.items()}
    assert priced(an_order(currency="USD"), dollars).total == 5000
    assert refused_price(an_order(currency="USD", points=1), dollars).errors[0].field == "points"


def test_a_product_priced_in_another_currency_is_refused() -> None:
    problem = refused_price(an_order(currency="USD"))
    assert (problem.errors[0].field, problem.detail) == ("currency", "A is sold in EUR")


@pytest.mark.parametrize(
    ("currency", "price", "problem"),
    [
        ("JPY", 10_000, None),
        ("KWD", 1230, None),
        ("EUR", 1000, None),
        ("KWD", 1234, "end in 0"),
        ("JPY", 49, "smallest charge"),
        ("EUR", 100_000_000, "largest charge"),
    ],
)
def test_amounts_are_judged_by_their_currency(currency: str, price: int, problem: str | None) -> None:
    request = an_order(currency=currency, lines=[{"sku": "A", "quantity": 1}])
    catalogue = {"A": CataloguePrice(price, currency)}
    if problem:
        assert problem in refused_price(request, catalogue).detail
    else:
        assert priced(request, catalogue).amount_due == price


def test_an_unknown_sku_is_left_to_the_saga_and_takes_no_points_or_credit() -> None:
    lines = [{"sku": "A", "quantity": 1}, {"sku": "nowhere", "quantity": 3}]
    price = priced(an_order(lines=lines, points=9000, store_credit=10, expected_total=1))
    assert price == PricedOrder((3000, None), total=3000, points=0, store_credit=0, amount_due=3000)


def test_a_total_beyond_every_column_is_refused() -> None:
    lines = [{"sku": "A", "quantity": 100_000}, {"sku": "nowhere", "quantity": 1}]
    assert refused_price(an_order(lines=lines), {"A": CataloguePrice(10**12, "EUR")}).errors[0].field == "lines"
