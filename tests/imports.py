"""What the project's modules import, read from their source without running it."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Import:
    """One imported name. `module` is where the import stands, `target` the full dotted name that it reaches."""

    module: str
    target: str

    @property
    def top(self) -> str:
        """The first part of the target: a distribution's or a standard module's name, or a folder of ours."""
        return self.target.partition(".")[0]


def modules(root: Path = ROOT) -> dict[str, Path]:
    """The project's own modules by dotted name: the files at the top and those of its packages."""
    files = list(root.glob("*.py"))
    for package in sorted(path.parent for path in root.glob("*/__init__.py")):
        files += package.rglob("*.py")
    return {_dotted(path.relative_to(root)): path for path in files}


def _dotted(path: Path) -> str:
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports_of(module: str, source: str) -> Iterator[Import]:
    """Every import of a module, those inside functions too."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (Import(module, name.name) for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            origin = "." * node.level + (node.module or "")
            yield from (Import(module, f"{origin}.{name.name}") for name in node.names)


def all_imports(root: Path = ROOT) -> list[Import]:
    """Every import of every module."""
    return [found for module, path in modules(root).items() for found in imports_of(module, path.read_text())]
