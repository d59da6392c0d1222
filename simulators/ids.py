"""Identifiers in the providers' style."""

import secrets


def new_id(prefix: str) -> str:
    """`new_id("pi")` → `pi_4f0c…`, never the same twice."""
    return f"{prefix}_{secrets.token_hex(12)}"
