"""docs/changing-workflows.md lists the patch markers that the workflows carry, and no other."""

import ast
import re
from collections.abc import Iterator

from tests.imports import ROOT, modules

GUIDE = ROOT / "docs" / "changing-workflows.md"
ROW = re.compile(r"^\| `([\w-]+)` \| \w.+ \| (\d+) \|$", re.MULTILINE)
CALLS = frozenset({"patched", "deprecate_patch"})


def markers_in(source: str) -> Iterator[str]:
    """The ids of the markers that a module sets."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CALLS:
            yield ast.literal_eval(node.args[0])


def test_every_marker_of_the_code_is_told_with_what_changed_and_since_when() -> None:
    sources = [path.read_text() for name, path in modules().items() if name.startswith("workflows.")]
    used = [marker for source in sources for marker in markers_in(source)]
    told = ROW.findall(GUIDE.read_text(encoding="utf-8"))
    assert sorted(marker for marker, _ in told) == sorted(used)
