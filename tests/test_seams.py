"""The seams table of DESIGN.md, held: which folder may import what, for type checkers alone included."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.sources("reads the sources")
ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "rlite_pubsub"

SEAMS: dict[str, set[str]] = {
    "protocol": {"hiredis"},
    "wakeups": set(),
    "storage": {"lmdb"},
    "pubsub": {"protocol", "storage", "wakeups"},
    "durable": {"protocol", "pubsub", "storage"},
    "keyspace": {"protocol", "storage"},
    "groups": {"protocol", "keyspace", "storage"},
    "engine": {"protocol", "storage", "wakeups", "pubsub", "durable", "keyspace", "groups"} | {"lupa"},
    "commands": {"protocol", "storage", "pubsub", "durable", "keyspace", "groups", "engine"},
    "cold": {"keyspace", "storage", "hiredis", "pyarrow", "fsspec"},
    "backup": {"cold", "storage", "wakeups"},
    "server": {"protocol", "storage", "pubsub", "durable", "keyspace", "engine", "commands", "cold", "backup"}
    | {"gateway", "replication", "shards", "discovery", "uvloop"},
    "embedded": {"protocol", "wakeups", "storage", "pubsub", "durable", "keyspace", "engine", "commands", "cold"}
    | {"redis"},
    "gateway": {"protocol", "storage", "pubsub", "keyspace", "groups", "engine"}
    | {"uvicorn", "re2", "prometheus_client"},
    "replication": {"protocol", "storage", "keyspace", "engine", "embedded", "redis"},
    "shards": {"protocol", "storage", "keyspace", "groups", "engine", "cold", "replication", "redis"},
    "links": {"protocol", "storage", "pubsub", "engine", "embedded", "redis", "hiredis", "uvloop"},
    "discovery": {"storage", "wakeups", "embedded", "redis"},
    "topics": {"embedded", "pipeline", "redis"},
    "queues": {"topics", "redis", "msgpack"},
    "integrations": {"embedded", "redis", "celery", "channels", "django_redis", "dramatiq", "kombu", "msgpack"},
    "pipeline": {"cold", "storage", "embedded", "redis", "pyspark", "pyarrow", "deltalake", "duckdb", "polars"},
}
"""Folder -> what it may import beside the standard library and itself. `cli` is wiring and may import all. Blocks are
Parquet, and hiredis reads the entries that go there; the process that seals them works on a keyspace of its own."""

ANYWHERE = {"__version__", "version", "build", "extras", "measures", "permissions", "mypy_extensions"}
"""What any module may import: which version this is, whether it is compiled, how what is missing is
installed, who may open what it makes, and how a class is to be compiled."""

ONLY_AT = {
    "hiredis": {"protocol", "cold", "links"},
    "lmdb": {"storage"},
    "lupa": {"engine"},
    "pyarrow": {"cold", "pipeline"},
    "pyspark": {"pipeline"},
    "deltalake": {"pipeline"},
    "celery": {"integrations"},
    "channels": {"integrations"},
    "django_redis": {"integrations"},
    "dramatiq": {"integrations"},
    "kombu": {"integrations"},
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
    return parts[0] if len(parts) > 1 and parts[0] != "cli" else "wiring"


def statements(source: str) -> Iterator[ast.Import | ast.ImportFrom]:
    """The import statements of a module, wherever they stand."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            yield node


def imported(source: str, package: list[str]) -> set[str]:
    """What a module of this package imports: the names of folders of ours, and of others' libraries."""
    found: set[str] = set()
    for statement in statements(source):
        if isinstance(statement, ast.Import):
            names = [alias.name.split(".") for alias in statement.names]
        else:
            base = package[: len(package) - statement.level + 1] if statement.level else []
            base += (statement.module or "").split(".") if statement.module else []
            names = [base + [alias.name] for alias in statement.names]
        for name in names:
            found.add(name[1] if name[0] == "rlite_pubsub" and len(name) > 1 else name[0])
    return found - sys.stdlib_module_names - ANYWHERE


def package_of(path: Path) -> list[str]:
    return ["rlite_pubsub", *path.relative_to(ROOT if "protocol" in path.parts else PACKAGE).parts[:-1]]


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_imports_only_what_its_folder_may(path: Path) -> None:
    folder = folder_of(path)
    found = imported(path.read_text(), package_of(path))
    if folder != "wiring":
        assert folder in SEAMS, f"{folder}/ is not in the table of DESIGN.md"
        allowed = SEAMS[folder] | {folder}
        assert found <= allowed, f"{folder}/ may not import {sorted(found - allowed)}"
    for library, owners in ONLY_AT.items():
        assert library not in found or folder in owners, f"only {sorted(owners)} may import {library}"


def test_folders_do_not_import_each_other_in_a_circle() -> None:
    below = {folder: allowed & SEAMS.keys() for folder, allowed in SEAMS.items()}
    while leaves := {folder for folder, allowed in below.items() if not allowed}:
        below = {folder: allowed - leaves for folder, allowed in below.items() if folder not in leaves}
    assert not below


LARGEST_KNOT = 4
"""Modules that know each other by their types, in a circle: a hub, its routes, its post and its sessions."""


def module_name(path: Path) -> str:
    return ".".join([*package_of(path), path.stem]).removesuffix(".__init__")


def imports(path: Path, *, with_types: bool) -> set[str]:
    """All names that one of them imports, and the modules of these."""
    tree = ast.parse(path.read_text())
    if not with_types:
        for node in ast.walk(tree):
            if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
                node.body = [ast.Pass()]
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {f"{node.module}.{alias.name}" for alias in node.names} | {node.module}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return found


def knots(*, with_types: bool) -> set[frozenset[str]]:
    """Modules that can be reached from each other."""
    ours = {module_name(path): path for path in modules() if path.stem != "__init__"}
    direct = {name: imports(path, with_types=with_types) & ours.keys() for name, path in ours.items()}
    while leaves := {name for name, there in direct.items() if not there}:
        direct = {name: there - leaves for name, there in direct.items() if name not in leaves}
    beyond = dict(direct)
    while (further := {name: there.union(*map(beyond.get, there)) for name, there in beyond.items()}) != beyond:
        beyond = further
    return {frozenset(one for one in there if name in beyond[one]) for name, there in beyond.items()} - {frozenset()}


def test_modules_do_not_import_each_other_in_a_circle() -> None:
    assert not knots(with_types=False)


def test_few_modules_know_each_other_by_their_types_in_a_circle() -> None:
    assert [sorted(knot) for knot in knots(with_types=True) if len(knot) > LARGEST_KNOT] == []


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("import lmdb, os.path", {"lmdb"}),
        ("from rlite_pubsub.storage import store", {"storage"}),
        ("from rlite_pubsub import storage", {"storage"}),
        ("import rlite_pubsub.pubsub.hub", {"pubsub"}),
        ("from . import route", {"pubsub"}),
        ("from .route import Route", {"pubsub"}),
        ("from ..server import node", {"server"}),
        ("from .. import server", {"server"}),
        ("def f():\n    import redis", {"redis"}),
        ("if TYPE_CHECKING:\n    import redis\nelse:\n    import lmdb", {"redis", "lmdb"}),
        ("import typing\nif typing.TYPE_CHECKING:\n    from rlite_pubsub.server import node", {"server"}),
        ("try:\n    import uvloop\nexcept ImportError:\n    import asyncio", {"uvloop"}),
    ],
)
def test_imports_are_found_wherever_they_stand(source: str, names: set[str]) -> None:
    assert imported(source, ["rlite_pubsub", "pubsub"]) == names
