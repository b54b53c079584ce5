"""The classes of a tree of Python files and who inherits from whom, read from the sources: nothing is imported."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Class:
    module: str
    name: str
    line: int
    bases: tuple[str, ...]
    """Full names, as far as imports lead; a name that nothing in its module explains is kept as it stands."""
    decorators: tuple[str, ...]

    @property
    def full_name(self) -> str:
        return f"{self.module}.{self.name}"


def modules_below(root: Path, *tops: str) -> dict[str, Path]:
    """The modules of these folders and files, by full name. Links are followed, as Python does."""
    found = []
    for top in tops:
        if (root / top).is_file():
            found.append(root / top)
        for folder, _, names in os.walk(root / top, followlinks=True):
            found += [Path(folder, name) for name in names if name.endswith(".py")]
    return {_name(path.relative_to(root)): path for path in sorted(found)}


def _name(path: Path) -> str:
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


class ClassTree:
    """Every class of these modules, at whatever depth it is defined."""

    def __init__(self, modules: dict[str, Path]) -> None:
        self._names: dict[str, dict[str, str]] = {}
        self.classes: list[Class] = []
        trees = {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in modules.items()}
        for name, tree in trees.items():
            is_package = modules[name].name == "__init__.py"
            self._names[name] = dict(_bound(name, is_package, tree))
        for name, tree in trees.items():
            for node in ast.walk(tree):
                if isinstance(node, ast.ClassDef):
                    bases = tuple(self._resolved(name, _dotted(base)) for base in node.bases)
                    decorators = tuple(ast.unparse(decorator) for decorator in node.decorator_list)
                    self.classes.append(Class(name, node.name, node.lineno, bases, decorators))

    def _resolved(self, module: str, dotted: str) -> str:
        """The name of a class where it is defined: imports are followed, through packages that hand names on."""
        head, _, rest = dotted.partition(".")
        full = self._names[module].get(head, head)
        full = f"{full}.{rest}" if rest else full
        seen = set()
        while full not in seen:
            seen.add(full)
            where, _, name = full.rpartition(".")
            full = self._names.get(where, {}).get(name, full)
        return full


def _bound(module: str, is_package: bool, tree: ast.Module) -> Iterator[tuple[str, str]]:
    """What names of this module stand for."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            yield node.name, f"{module}.{node.name}"
        elif isinstance(node, ast.Import):
            for one in node.names:
                yield one.asname or one.name.partition(".")[0], one.name if one.asname else one.name.partition(".")[0]
        elif isinstance(node, ast.ImportFrom):
            package = module if is_package else module.rpartition(".")[0]
            for _ in range(node.level - 1):
                package = package.rpartition(".")[0]
            source = ".".join(filter(None, (package if node.level else "", node.module)))
            for one in node.names:
                yield one.asname or one.name, f"{source}.{one.name}"


def _dotted(base: ast.expr) -> str:
    """`Base` of Base, Base[int] and Base(...)."""
    while isinstance(base, (ast.Subscript, ast.Call)):
        base = base.value if isinstance(base, ast.Subscript) else base.func
    return ast.unparse(base)
