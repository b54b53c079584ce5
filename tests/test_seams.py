"""The seams table of DESIGN.md, held: which folder may import what. Imports for type checkers alone do not count."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "rlite_pubsub"

SEAMS: dict[str, set[str]] = {
    "protocol": {"hiredis"},
    "wakeups": set(),
    "storage": {"lmdb"},
    "delivery": {"storage", "wakeups"},
    "commands": {"protocol", "delivery", "storage"},
    "server": {"protocol", "commands", "delivery"},
    "embedded": {"commands", "delivery"},
    "topics": set(),
    "queues": set(),
    "gateway": {"delivery", "storage"},
    "cold": {"storage"},
    "pipeline": {"cold", "redis", "pyspark"},
}
"""Folder -> what it may import beside the standard library and itself."""

EXTRAS: dict[str, set[str]] = {
    "cold": {"hiredis", "pyarrow", "fsspec"},
    "delivery": {"protocol"},
    "server": {"storage", "cold", "supervision", "logs", "uvloop", "gateway"},
    "embedded": {"storage", "cold", "redis"},
    "topics": {"embedded", "redis"},
    "gateway": {"commands", "protocol", "starlette", "uvicorn", "re2", "prometheus_client"},
    "queues": {"topics", "redis"},
    "pipeline": {"storage", "pyarrow", "deltalake"},
}
"""What the table leaves open, or where the code knows better: delivery encodes a run once for all that receive it, who
starts a server or an embedded host opens its store; the loop, the log, the supervisor and the gateway of a server; the
library whose connections the embedded ones are. The gateway is a session of the server's `Instance`, whose settings,
password, turn and commit it shares: so an event that is posted is stored as an XADD is. Blocks are Parquet; hiredis
reads the entries that go there."""

ONLY_AT = {
    "hiredis": {"protocol", "cold"},
    "lmdb": {"storage"},
    "pyarrow": {"cold", "pipeline"},
    "pyspark": {"pipeline"},
    "deltalake": {"pipeline"},
}
"""Libraries that one folder owns, wiring included."""


def modules() -> list[Path]:
    """Every module of both packages."""
    return sorted([*PACKAGE.rglob("*.py"), *(ROOT / "protocol").rglob("*.py")])


def folder_of(path: Path) -> str:
    """The row of the table that a module obeys; `wiring` for what stands beside the folders."""
    if path.is_relative_to(ROOT / "protocol"):
        return "protocol"
    parts = path.relative_to(PACKAGE).parts
    return parts[0] if len(parts) > 1 else "wiring"


def runs(node: ast.AST) -> Iterator[ast.stmt]:
    """The import statements below a node that run outside of a type checker."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            for otherwise in child.orelse:
                yield from runs(ast.Module([otherwise], []))
        elif isinstance(child, (ast.Import, ast.ImportFrom)):
            yield child
        else:
            yield from runs(child)


def imported(source: str, package: list[str]) -> set[str]:
    """What a module of this package imports: the names of folders of ours, and of others' libraries."""
    found: set[str] = set()
    for statement in runs(ast.parse(source)):
        if isinstance(statement, ast.Import):
            names = [alias.name.split(".") for alias in statement.names]
        else:
            assert isinstance(statement, ast.ImportFrom)
            base = package[: len(package) - statement.level + 1] if statement.level else []
            base += (statement.module or "").split(".") if statement.module else []
            names = [base + [alias.name] for alias in statement.names]
        for name in names:
            found.add(name[1] if name[0] == "rlite_pubsub" and len(name) > 1 else name[0])
    return found - sys.stdlib_module_names - {"__version__"}


def package_of(path: Path) -> list[str]:
    return ["rlite_pubsub", *path.relative_to(ROOT if "protocol" in path.parts else PACKAGE).parts[:-1]]


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_imports_only_what_its_folder_may(path: Path) -> None:
    folder = folder_of(path)
    found = imported(path.read_text(), package_of(path))
    if folder != "wiring":
        assert folder in SEAMS, f"{folder}/ is not in the table of DESIGN.md"
        allowed = SEAMS[folder] | EXTRAS.get(folder, set()) | {folder}
        assert found <= allowed, f"{folder}/ may not import {sorted(found - allowed)}"
    for library, owners in ONLY_AT.items():
        assert library not in found or folder in owners, f"only {sorted(owners)} may import {library}"


def test_folders_do_not_import_each_other_in_a_circle() -> None:
    below = {folder: allowed & SEAMS.keys() for folder, allowed in SEAMS.items()}
    while leaves := {folder for folder, allowed in below.items() if not allowed}:
        below = {folder: allowed - leaves for folder, allowed in below.items() if folder not in leaves}
    assert not below


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("import lmdb, os.path", {"lmdb"}),
        ("from rlite_pubsub.storage import store", {"storage"}),
        ("from rlite_pubsub import storage", {"storage"}),
        ("import rlite_pubsub.delivery.hub", {"delivery"}),
        ("from . import route", {"delivery"}),
        ("from .route import Route", {"delivery"}),
        ("from ..server import node", {"server"}),
        ("from .. import server", {"server"}),
        ("def f():\n    import redis", {"redis"}),
        ("if TYPE_CHECKING:\n    import redis\nelse:\n    import lmdb", {"lmdb"}),
        ("import typing\nif typing.TYPE_CHECKING:\n    from rlite_pubsub.server import node", set()),
        ("try:\n    import uvloop\nexcept ImportError:\n    import asyncio", {"uvloop"}),
    ],
)
def test_imports_are_found_wherever_they_stand(source: str, names: set[str]) -> None:
    assert imported(source, ["rlite_pubsub", "delivery"]) == names
