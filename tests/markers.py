"""The patch markers of the workflows: in the code, and in the guide."""

import ast
import re
from collections.abc import Iterator

from tests.imports import ROOT, modules

GUIDE = ROOT / "docs" / "changing-workflows.md"
CALLS = frozenset({"patched", "deprecate_patch"})
_ROW = re.compile(r"^\| `([\w-]+)` \| \w.+ \| (\d+) \|$", re.MULTILINE)


def used() -> list[str]:
    """The ids in the code, one for each place."""
    sources = [path.read_text() for name, path in modules().items() if name.startswith("workflows.")]
    return [marker for source in sources for marker in _calls_in(source)]


def told() -> dict[str, int]:
    """The ids in the guide's table, with the version of the recorded histories since which they may be there."""
    return {marker: int(version) for marker, version in _ROW.findall(GUIDE.read_text(encoding="utf-8"))}


def _calls_in(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CALLS:
            yield ast.literal_eval(node.args[0])
