"""The Python API in Markdown: what the public modules export, read from the sources of the package.

A compiled function has no signature to ask for; its source has.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import rlite_pubsub

PACKAGE = Path(rlite_pubsub.__file__).parent
MODULES = (
    "rlite_pubsub",
    "rlite_pubsub.asyncio",
    "rlite_pubsub.topics",
    "rlite_pubsub.topics.aio",
    "rlite_pubsub.queues",
    "rlite_pubsub.queues.aio",
    "rlite_pubsub.discovery",
    "rlite_pubsub.pytest_plugin",
    "rlite_pubsub.integrations.celery",
    "rlite_pubsub.integrations.kombu",
    "rlite_pubsub.integrations.dramatiq",
    "rlite_pubsub.integrations.channels",
    "rlite_pubsub.integrations.django_redis",
)
_Callable = ast.FunctionDef | ast.AsyncFunctionDef
_Definition = _Callable | ast.ClassDef


class Source:
    """A module of the tree."""

    def __init__(self, name: str) -> None:
        path = PACKAGE.parent / name.replace(".", "/")
        file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        self.name = name
        self.tree = ast.parse(file.read_text())
        self.doc = (ast.get_docstring(self.tree, clean=False) or "").strip()
        self.definitions = {node.name: node for node in self.tree.body if isinstance(node, _Definition)}
        self.constants = dict(_constants(self.tree))
        self.imported = {
            alias.asname or alias.name: (node.module, alias.name)
            for node in ast.walk(self.tree)
            if isinstance(node, ast.ImportFrom) and node.module
            for alias in node.names
        }

    def exported(self) -> list[str]:
        """What `__all__` names; without one, what it defines without an underscore."""
        for node in self.tree.body:
            if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", None) == "__all__":
                return list(ast.literal_eval(node.value))
        return [name for name in self.definitions if not name.startswith("_")]

    def find(self, name: str) -> tuple[Source, str]:
        """Return the module of ours that defines a name, and what it is called there."""
        if name in self.definitions or name in self.constants or name not in self.imported:
            return self, name
        module, original = self.imported[name]
        is_elsewhere = module.startswith("rlite_pubsub") and module != self.name
        return Source(module).find(original) if is_elsewhere else (self, name)


def markdown() -> str:
    """A section for each module, a part for each name."""
    lines: list[str] = []
    for name in MODULES:
        source = Source(name)
        lines += [f"## {name}", "", *_prose(source.doc)]
        for exported in source.exported():
            place, original = source.find(exported)
            found = place.definitions.get(original)
            if found is not None:
                lines += _about(place, exported, found)
            elif place.constants.get(original):
                lines += [f"### {exported}", "", *_prose(place.constants[original])]
    return "\n".join(lines)


def _constants(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Each constant and the docstring below it."""
    for node, after in zip(tree.body, [*tree.body[1:], None], strict=True):
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        if isinstance(target, ast.Name):
            is_documented = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
            yield target.id, str(ast.literal_eval(after.value)) if is_documented else ""  # type: ignore[union-attr]


def _about(place: Source, name: str, node: _Definition) -> Iterator[str]:
    yield from (f"### {name}", "")
    if isinstance(node, ast.ClassDef):
        begin = next((one for one in _members(place, node) if one.name == "__init__"), None)
        bases = [base for base in map(ast.unparse, node.bases) if _is_public(place, base)]
        of = f", a `{', '.join(bases)}`" if bases else ""
        words = _signature(begin, is_method=True).partition(" -> ")[0] if begin else ""
        yield from (f"`class {name}{words}`{of}", "")
        yield from _prose(ast.get_docstring(node) or "")
        if begin is not None:
            yield from _prose(ast.get_docstring(begin) or "")
        fields = [one for one in node.body if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)]
        members = [one for one in _members(place, node) if not one.name.startswith("_") and ast.get_docstring(one)]
        rows = [f"| `{ast.unparse(one.target)}: {_code(ast.unparse(one.annotation))}` | |" for one in _public(fields)]
        rows += [_row(one) for one in members]
        if rows:
            yield from ("| member | |", "|---|---|", *rows, "")
        return
    yield from (f"`{_prefix(node)}{name}{_signature(node, is_method=False)}`", "")
    yield from _prose(ast.get_docstring(node) or "")


def _is_public(place: Source, base: str) -> bool:
    """Whether a reader can look it up: a class of another package, or one that is exported here."""
    base = base.partition("[")[0]
    above, _ = place.find(base)
    is_foreign = above is place and base not in place.definitions and not base.startswith(("Protocol", "Generic", "_"))
    return is_foreign or any(base in Source(name).exported() for name in MODULES)


def _public(fields: list[ast.AnnAssign]) -> list[ast.AnnAssign]:
    return [one for one in fields if not ast.unparse(one.target).startswith("_")]


def _members(place: Source, node: ast.ClassDef) -> list[_Callable]:
    """Its methods, and those that it has from classes of ours."""
    found = {one.name: one for one in node.body if isinstance(one, _Callable)}
    for base in node.bases:
        name = ast.unparse(base).partition("[")[0]
        above, original = place.find(name)
        definition = above.definitions.get(original)
        if isinstance(definition, ast.ClassDef):
            for one in _members(above, definition):
                found.setdefault(one.name, one)
    return list(found.values())


def _row(node: _Callable) -> str:
    decorators = {ast.unparse(one) for one in node.decorator_list}
    doc = _cell(" ".join((ast.get_docstring(node) or "").split()))
    if decorators & {"property", "cached_property", "functools.cached_property"}:
        returns = f": {_code(ast.unparse(node.returns))}" if node.returns else ""
        return f"| `{node.name}{returns}` | {doc} |"
    signature = _code(_signature(node, is_method="staticmethod" not in decorators))
    return f"| `{_prefix(node)}{node.name}{signature}` | {doc} |"


def _prefix(node: _Callable) -> str:
    decorators = {ast.unparse(one) for one in node.decorator_list}
    if any("contextmanager" in one for one in decorators):
        return "async with " if isinstance(node, ast.AsyncFunctionDef) else "with "
    return "await " if isinstance(node, ast.AsyncFunctionDef) and not _yields(node) else ""


def _yields(node: _Callable) -> bool:
    return any(isinstance(one, ast.Yield | ast.YieldFrom) for one in ast.walk(node))


def _signature(node: _Callable, *, is_method: bool) -> str:
    arguments = ast.parse(ast.unparse(node)).body[0].args  # type: ignore[attr-defined]  # a copy
    if is_method:
        (arguments.posonlyargs or arguments.args).pop(0)
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    return f"({ast.unparse(arguments)}){returns}"


def _prose(doc: str) -> Iterator[str]:
    """A docstring; what is indented in it is shown as it stands."""
    if not doc:
        return
    indented: list[str] = []
    for line in [*doc.split("\n"), ""]:
        if line.startswith("    ") or (indented and not line):
            indented.append(line.removeprefix("    "))
            continue
        if indented:
            yield from ("```text", *"\n".join(indented).strip("\n").split("\n"), "```", "")
            indented = []
        yield _tidy(line)
    if indented:
        yield from ("```text", *"\n".join(indented).strip("\n").split("\n"), "```", "")


def _tidy(text: str) -> str:
    return re.sub(r"``([^`]+)``", r"`\1`", text)


def _code(text: str) -> str:
    return text.replace("|", "\\|")


def _cell(text: str) -> str:
    return _tidy(text).replace("|", "\\|").replace("<", "&lt;")
