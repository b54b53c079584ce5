"""docs/architecture.md names files and what is in them: each of them exists."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.sources("reads the sources")
ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "architecture.md"
SPAN = re.compile(r"`([^`]+)`")
NAME = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)?")


def place_of(words: str) -> Path | None:
    """The file or folder that a code span names, wherever the page may mean it from; None if it names no path."""
    if "/" not in words or " " in words:
        return None
    for root in (ROOT / "rlite_pubsub", ROOT):
        if (root / words).exists():
            return root / words
    return ROOT / words


def spans() -> Iterator[tuple[str, Path | None]]:
    """Each code span of the page, with the file that was named last before it in its paragraph or item."""
    for paragraph in re.split(r"\n\s*\n|\n(?=\s*(?:\d+\.|[-|]) )", PAGE.read_text()):
        named: Path | None = None
        for words in SPAN.findall(paragraph):
            place = place_of(words)
            if place is not None:
                named = place
            yield words, named


def names_in(path: Path) -> set[str]:
    """What a module defines, and what its classes do, as `Class.name`."""
    found: set[str] = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found.add(node.name)
        if isinstance(node, ast.ClassDef):
            for part in ast.walk(node):
                if isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef)):
                    found.add(f"{node.name}.{part.name}")
                elif isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Store):
                    found.add(f"{node.name}.{part.attr}")
    return found


def test_every_file_on_the_page_exists() -> None:
    named = {place for words, _ in spans() if (place := place_of(words)) is not None}
    assert len(named) > 50
    assert not sorted(str(path) for path in named if not path.exists())


def claims() -> list[tuple[str, Path]]:
    """(name, the module in which the page says that it is)."""
    found = {(words, path) for words, path in spans() if path is not None and path.suffix == ".py"}
    return sorted((words, path) for words, path in found if NAME.fullmatch(words))


@pytest.mark.parametrize(("name", "path"), claims(), ids=str)
def test_every_name_on_the_page_is_in_the_file_named_before_it(name: str, path: Path) -> None:
    assert name in names_in(path), f"{path.relative_to(ROOT)} has no {name}"
