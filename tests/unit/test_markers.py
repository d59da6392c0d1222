"""docs/changing-workflows.md lists the patch markers that the workflows carry, and no other."""

from tests.markers import told, used


def test_every_marker_of_the_code_is_told_with_what_changed_and_since_when() -> None:
    assert sorted(told()) == sorted(used())
