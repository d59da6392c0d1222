"""The parties' own roles, which have their rights in every test's database."""

from sqlalchemy import make_url

from workflows.names import Queue

PASSWORD = "of-the-tests"


def party_urls(owner: str) -> dict[str, str]:
    """How each party reaches the database that its owner reaches by `owner`."""
    url = make_url(owner).set(drivername="postgresql", password=PASSWORD)
    return {party.value: url.set(username=f"tests_{party}").render_as_string(hide_password=False) for party in Queue}
