"""Form-encoded parameters as Stripe's SDKs send them: `metadata[order_id]=7&expand[0]=latest_charge`."""

import re
from collections.abc import Iterable
from typing import Any

_PART = re.compile(r"\[([^\]]*)\]")


def parse_form(pairs: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """Nested dictionaries of strings; numbered and empty brackets become lists."""
    root: dict[str, Any] = {}
    for name, value in pairs:
        path = [name.split("[", 1)[0], *_PART.findall(name)]
        node = root
        for part in path[:-1]:
            child = node.get(part)
            if not isinstance(child, dict):
                child = node[part] = {}
            node = child
        node[path[-1] or str(len(node))] = value
    return {name: _lists(value) for name, value in root.items()}


def _lists(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    children = {name: _lists(child) for name, child in value.items()}
    if children and all(name.isdigit() for name in children):
        return [children[name] for name in sorted(children, key=int)]
    return children
