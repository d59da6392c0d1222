"""A source file of the product is read in one sitting."""

from tests.imports import ROOT, modules

LINES = 300
#: What is longer, and why. Tests are not held to it.
LONGER = {
    "adapters/tables.py": "every table and its constraints in one place, to be read beside the migrations",
}
PRODUCT = {path.relative_to(ROOT).as_posix(): path for name, path in modules().items() if not name.startswith("tests")}


def lines_of(name: str) -> int:
    """How long a file of the product is."""
    return len(PRODUCT[name].read_text(encoding="utf-8").splitlines())


def test_no_file_of_the_product_is_longer_than_three_hundred_lines() -> None:
    assert {name for name in PRODUCT if lines_of(name) > LINES} == LONGER.keys()
