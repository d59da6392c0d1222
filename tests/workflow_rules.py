"""Rules of deterministic code that neither temporalint nor the sandbox holds: read from the source, one line a finding.

The sandbox looks at calls while a workflow runs and lets `domain` pass through; temporalint looks at direct calls of a
few functions. What is left and can be told from the source alone is here.
"""

import ast
from collections.abc import Iterator

#: Reads of the clock, by class and method. `workflow.now()` is the only clock.
CLOCK = {("datetime", "now"), ("datetime", "utcnow"), ("datetime", "today"), ("date", "today")}
#: Modules whose functions answer differently each time, or block. `workflow.random()`, `workflow.uuid4()` are ours.
OUTSIDE = frozenset({"os", "random", "secrets", "socket", "subprocess", "sys", "threading", "time", "uuid"})
#: Builtins that reach out of the process, or differ from process to process.
BUILTINS = frozenset({"breakpoint", "hash", "id", "input", "open", "print"})
#: Calls that do nothing until they are awaited, or handed to something that awaits them.
LAZY = frozenset({"execute_activity", "execute_child_workflow", "execute_local_activity", "sleep", "wait_condition"})
#: asyncio's own ones go through a set, in an order that a replay does not repeat; Temporal's ones do not.
UNORDERED = frozenset({"wait", "as_completed"})
#: Catching one of these turns a bug, or a cancel, into a business outcome.
TOO_WIDE = frozenset({"Exception", "BaseException"})

MAKES_SET = frozenset({"set", "frozenset"})
KEEPS_ORDER = frozenset({"list", "tuple", "enumerate", "iter", "reversed"})


def findings(source: str) -> list[str]:
    """What breaks a rule, as `line: what`."""
    tree = ast.parse(source)
    parents = {child: parent for parent in ast.walk(tree) for child in ast.iter_child_nodes(parent)}
    sets = _names_of_sets(tree)
    found = [
        (node.lineno, text)
        for node in ast.walk(tree)
        if isinstance(node, ast.expr | ast.ExceptHandler | ast.For | ast.AsyncFor)
        for text in (*_outside(node), *_too_wide(node), *_unawaited(node, parents), *_unordered(node, sets))
    ] + [(node.iter.lineno, "iterates over a set") for node in _comprehensions(tree) if _is_set(node.iter, sets)]
    return [f"{line}: {text}" for line, text in sorted(found)]


def _outside(node: ast.AST) -> Iterator[str]:
    """The clock, chance, the file system, the environment."""
    if isinstance(node, ast.Attribute):
        owner = _last_name(node.value)
        if (owner, node.attr) in CLOCK or (isinstance(node.value, ast.Name) and owner in OUTSIDE):
            yield f"{owner}.{node.attr}"
        if owner == "asyncio" and node.attr in UNORDERED:
            yield f"asyncio.{node.attr}"
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in BUILTINS:
        yield f"{node.func.id}()"


def _too_wide(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.ExceptHandler):
        caught = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
        yield from (f"except {_last_name(one) or ''}".strip() for one in caught if _is_too_wide(one))
    if isinstance(node, ast.Call) and _last_name(node.func) == "suppress":
        yield from (f"suppress({_last_name(one)})" for one in node.args if _is_too_wide(one))


def _is_too_wide(caught: ast.expr | None) -> bool:
    return caught is None or _last_name(caught) in TOO_WIDE


def _unawaited(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> Iterator[str]:
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and _last_name(node.func.value) in {"asyncio", "workflow"}
        and node.func.attr in LAZY
        and isinstance(parents[node], ast.Expr | ast.Assign | ast.AnnAssign)
    ):
        yield f"{node.func.attr} is not awaited"


def _unordered(node: ast.AST, sets: frozenset[str]) -> Iterator[str]:
    """The order of a set of strings differs from process to process: a replay would issue other commands."""
    if isinstance(node, ast.For | ast.AsyncFor) and _is_set(node.iter, sets):
        yield "iterates over a set"
    if (
        isinstance(node, ast.Call)
        and _last_name(node.func) in KEEPS_ORDER
        and node.args
        and _is_set(node.args[0], sets)
    ):
        yield f"{_last_name(node.func)}() of a set"
    if isinstance(node, ast.List | ast.Tuple):
        starred = [one.value for one in node.elts if isinstance(one, ast.Starred)]
        yield from ("unpacks a set" for one in starred if _is_set(one, sets))


def _comprehensions(tree: ast.AST) -> Iterator[ast.comprehension]:
    """The loops of comprehensions whose result has an order."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ListComp | ast.GeneratorExp | ast.DictComp):
            yield from node.generators


def _names_of_sets(tree: ast.AST) -> frozenset[str]:
    """Names and attributes that a set is assigned to somewhere in the module."""
    found: set[str | None] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and _is_set(node.value, frozenset()):
            found |= {_last_name(target) for target in node.targets}
        if isinstance(node, ast.AnnAssign) and (
            _last_name(getattr(node.annotation, "value", node.annotation)) in MAKES_SET
            or (node.value is not None and _is_set(node.value, frozenset()))
        ):
            found.add(_last_name(node.target))
    return frozenset(name for name in found if name)


def _is_set(node: ast.expr, sets: frozenset[str]) -> bool:
    if isinstance(node, ast.BinOp):
        return _is_set(node.left, sets) or _is_set(node.right, sets)
    if isinstance(node, ast.Call):
        return _last_name(node.func) in MAKES_SET
    return isinstance(node, ast.Set | ast.SetComp) or _last_name(node) in sets


def _last_name(node: ast.AST | None) -> str | None:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else None
