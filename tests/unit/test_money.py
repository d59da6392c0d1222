"""Money is a whole number of smallest units, told and judged by its currency."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.money import CURRENCIES, LARGEST_CHARGE_MINOR, charge_problem, format_minor

currencies = st.sampled_from(sorted(CURRENCIES))


@pytest.mark.parametrize(
    ("amount", "currency", "told"),
    [
        (4500, "EUR", "45.00 EUR"),
        (5, "EUR", "0.05 EUR"),
        (-205, "EUR", "-2.05 EUR"),
        (10_000, "JPY", "10000 JPY"),
        (1230, "KWD", "1.230 KWD"),
    ],
)
def test_amounts_are_told_with_their_currencys_decimals(amount: int, currency: str, told: str) -> None:
    assert format_minor(amount, currency) == told


@given(st.integers(-(10**15), 10**15), currencies)
def test_what_is_told_is_exactly_the_amount(amount: int, currency: str) -> None:
    number, code = format_minor(amount, currency).split(" ")
    assert code == currency
    assert Decimal(number).scaleb(CURRENCIES[currency].decimals) == amount


@given(st.integers(1, 2 * LARGEST_CHARGE_MINOR), currencies)
def test_an_amount_is_charged_or_refused_by_the_gateways_published_limits(amount: int, currency: str) -> None:
    rules = CURRENCIES[currency]
    chargeable = rules.minimum_charge_minor <= amount <= LARGEST_CHARGE_MINOR and amount % rules.multiple_of_minor == 0
    assert (charge_problem(amount, currency) is None) == chargeable


@given(currencies)
def test_nothing_to_pay_is_never_a_problem(currency: str) -> None:
    assert charge_problem(0, currency) is None
