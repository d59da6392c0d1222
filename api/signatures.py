"""Signed webhooks: the header `t=<unix seconds>,v1=<hex>[,v1=…]` over the exact bytes that were received.

The scheme is Stripe's (HMAC-SHA256 over `<t>.<body>`); our courier signs the same way. Written out rather than taken
from the SDK because that tries one secret at a time and lets stamps from the future pass.
"""

import hashlib
import hmac
import re
from collections.abc import Iterable

#: Stripe's own tolerance; here it holds into the future as well.
TOLERANCE_SECONDS = 300

_STAMP = re.compile(r"[0-9]{1,12}")


class SignatureRefused(Exception):
    """The event is not from whom it says, or not from now. `outcome` is the metric's label."""

    def __init__(self, outcome: str, detail: str) -> None:
        super().__init__(detail)
        self.outcome = outcome
        self.detail = detail


def verify(body: bytes, header: str, secrets: Iterable[str], *, now: float) -> None:
    """Raises SignatureRefused unless one `v1` signature was made over these bytes with one of the secrets, in time."""
    parts = [part.strip().partition("=") for part in header.split(",")]
    stamps = [value for name, _, value in parts if name == "t"]
    given = [value.encode("utf-8", "replace") for name, _, value in parts if name == "v1"]
    if len(stamps) != 1 or not _STAMP.fullmatch(stamps[0]):
        raise SignatureRefused("malformed", "the signature header carries no time stamp")
    if not given:
        raise SignatureRefused("malformed", "the signature header carries no v1 signature")
    signed = stamps[0].encode() + b"." + body
    expected = [hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest().encode() for secret in secrets]
    # Every pair is compared, so that the time taken tells nothing about which one fitted.
    matches = [hmac.compare_digest(one, other) for one in expected for other in given]
    if not any(matches):
        raise SignatureRefused("bad_signature", "no signature fits the body")
    if abs(now - int(stamps[0])) > TOLERANCE_SECONDS:
        raise SignatureRefused("skewed", f"the time stamp is more than {TOLERANCE_SECONDS} s from now")
