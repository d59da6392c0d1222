"""Who may tell us something: only who knows a secret, about these bytes, about now."""

import hashlib
import hmac

import pytest

from api.signatures import SignatureRefused, verify

NOW = 1_800_000_000
SECRETS = ("whsec_new", "whsec_old")
BODY = '{"b" :1,  "a":"\\u00e9 \N{SNOWMAN}"}\n'.encode()


def v1(secret: str, body: bytes = BODY, at: int = NOW) -> str:
    return hmac.new(secret.encode(), f"{at}.".encode() + body, hashlib.sha256).hexdigest()


def refusal(header: str, *, body: bytes = BODY, secrets: tuple[str, ...] = SECRETS, now: float = NOW) -> str:
    with pytest.raises(SignatureRefused) as refused:
        verify(body, header, secrets, now=now)
    return refused.value.outcome


@pytest.mark.parametrize(
    "header",
    [
        f"t={NOW},v1={v1('whsec_new')}",
        f"t={NOW},v1={v1('whsec_old')}",
        f"t={NOW},v1={v1('whsec_new')},v1={v1('whsec_old')}",
        f"t={NOW},v1={v1('whsec_wrong')},v1={v1('whsec_old')}",
        f"t={NOW},v0={'0' * 64},v1={v1('whsec_new')}",
        f" t={NOW} , v1={v1('whsec_new')} ",
    ],
)
def test_any_of_our_secrets_will_do(header: str) -> None:
    """S23."""
    verify(BODY, header, SECRETS, now=NOW)


def test_after_the_grace_time_the_old_secret_will_not() -> None:
    assert refusal(f"t={NOW},v1={v1('whsec_old')}", secrets=("whsec_new",)) == "bad_signature"
    assert refusal(f"t={NOW},v1={v1('whsec_new')}", secrets=()) == "bad_signature"


@pytest.mark.parametrize(
    "header",
    [
        "",
        "nonsense",
        "=,=,=",
        f"v1={v1('whsec_new')}",
        f"t={NOW}",
        f"t={NOW},v0={v1('whsec_new')}",
        f"t=soon,v1={v1('whsec_new')}",
        f"t=-1,v1={v1('whsec_new')}",
        f"t={'9' * 5000},v1={v1('whsec_new')}",
        f"t=\N{ARABIC-INDIC DIGIT ONE},v1={v1('whsec_new')}",
        f"t={NOW},t={NOW},v1={v1('whsec_new')}",
    ],
)
def test_a_header_that_is_none_is_malformed(header: str) -> None:
    assert refusal(header) == "malformed"


@pytest.mark.parametrize("signature", ["", "\N{SNOWMAN}", "\udcff", "0" * 64, v1("whsec_new").upper()])
def test_a_signature_of_anything_else_does_not_fit(signature: str) -> None:
    assert refusal(f"t={NOW},v1={signature}") == "bad_signature"


def test_the_exact_bytes_count() -> None:
    """S22."""
    header = f"t={NOW},v1={v1('whsec_new')}"
    assert refusal(header, body=BODY.rstrip()) == "bad_signature"
    assert refusal(header, body=b'{"a": "\xc3\xa9", "b": 1}') == "bad_signature"


@pytest.mark.parametrize("offset", [-300, -299, 0, 299, 300])
def test_a_stamp_within_five_minutes_is_from_now(offset: int) -> None:
    """S24."""
    at = NOW + offset
    verify(BODY, f"t={at},v1={v1('whsec_new', at=at)}", SECRETS, now=NOW)


@pytest.mark.parametrize("offset", [-301, 301])
def test_a_stamp_farther_away_is_not(offset: int) -> None:
    """S24."""
    at = NOW + offset
    assert refusal(f"t={at},v1={v1('whsec_new', at=at)}") == "skewed"
