"""Currencies and amounts. Money is an integer count of the currency's smallest unit, everywhere.

Decimals and minimum charges are the payment gateway's published ones (Stripe, "Supported currencies": zero-decimal
and three-decimal lists, minimum charge amounts; a KWD amount must end in 0). No minimum is published for KWD: ours
is 150 fils, the nearest to USD 0.50.
"""

from dataclasses import dataclass

#: The gateway's largest charge: eight digits.
LARGEST_CHARGE_MINOR = 99_999_999


@dataclass(frozen=True)
class Currency:
    """One currency the shop sells in."""

    code: str
    decimals: int
    minimum_charge_minor: int
    multiple_of_minor: int = 1


CURRENCIES: dict[str, Currency] = {
    currency.code: currency
    for currency in (
        Currency("EUR", 2, 50),
        Currency("USD", 2, 50),
        Currency("GBP", 2, 30),
        Currency("CHF", 2, 50),
        Currency("SEK", 2, 300),
        Currency("NOK", 2, 300),
        Currency("DKK", 2, 250),
        Currency("PLN", 2, 200),
        Currency("JPY", 0, 50),
        Currency("KWD", 3, 150, multiple_of_minor=10),
    )
}


def format_minor(amount_minor: int, currency: str) -> str:
    """`4500, "EUR"` → `45.00 EUR`, for people only: nothing parses this again."""
    decimals = CURRENCIES[currency].decimals if currency in CURRENCIES else 2
    sign = "-" if amount_minor < 0 else ""
    whole, part = divmod(abs(amount_minor), 10**decimals)
    return f"{sign}{whole}.{part:0{decimals}d} {currency}" if decimals else f"{sign}{whole} {currency}"


def charge_problem(amount_minor: int, currency: str) -> str | None:
    """Why the gateway would refuse to charge this amount, or None. Zero never reaches the gateway."""
    if amount_minor == 0:
        return None
    rules = CURRENCIES[currency]
    if amount_minor < rules.minimum_charge_minor:
        return f"the amount due is under the smallest charge of {format_minor(rules.minimum_charge_minor, currency)}"
    if amount_minor > LARGEST_CHARGE_MINOR:
        return f"the amount due is over the largest charge of {format_minor(LARGEST_CHARGE_MINOR, currency)}"
    if amount_minor % rules.multiple_of_minor:
        return f"an amount in {currency} must end in 0 in its last decimal"
    return None
