"""Which package the tests run on: the sources beside them, or an installed one, and what is wrong with that.

Beside the sources they test those. Anywhere else they test what is installed, and that is to be what users get: all of
it compiled, in this environment, for the programs too that tests start.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

_HERE = Path(__file__).resolve().parents[1]

IS_INSTALLED = not (_HERE / "rlite_pubsub").exists()
"""There are no sources here."""

_PROGRAM = """
import sys
from importlib.util import find_spec
print(*[find_spec(name).origin for name in sys.argv[1:]], sep="\\n")
"""


def wrong_package() -> list[str]:
    """What makes this package another one than the tests are for, in words."""
    from rlite_pubsub import build

    if not IS_INSTALLED:
        place = Path(build.__file__).resolve()
        return [] if place.is_relative_to(_HERE) else [f"beside {_HERE / 'rlite_pubsub'} they would run on {place}"]
    if os.environ.get("RLITE_PURE", "0") not in ("", "0"):
        return []
    names = [*build.COMPILED, *(build.WRITTEN_IN_C if sys.platform == "linux" else ())]
    wrong = [f"{name} is {_file(name)}" for name in names if _is_wrong(_file(name))]
    asked = subprocess.run([sys.executable, "-c", _PROGRAM, *names], capture_output=True, text=True)
    files = asked.stdout.splitlines() or [asked.stderr]
    wrong += [f"a program that is started here imports {file}" for file in files if _is_wrong(file)]
    program = Path(sys.executable).parent / "rlite-pubsub"
    if program.exists():
        said = subprocess.run([program, "--version"], capture_output=True, text=True).stdout
        wrong += [] if said.endswith(", compiled)\n") else [f"{program} --version says {said!r}"]
    return wrong


def _file(name: str) -> str:
    found = find_spec(name)
    return str(found and found.origin)


def _is_wrong(file: str) -> bool:
    return file.endswith(".py") or not Path(file).resolve().is_relative_to(Path(sys.prefix).resolve())


class ReplacedInVain(TypeError):
    """Compiled code is bound to what it calls and to its constants: it never looks at what a test has put in the
    place. Without this, such a test would pass, and prove nothing."""


def guard_monkeypatch() -> None:
    """From now on, replacing a name of a compiled module or class that compiled code does not look up is an error.

    Interpreted code looks all of them up. A test that replaces a function for that, and knows it, says so by
    `monkeypatch.setitem(vars(module), ...)`."""
    replace = pytest.MonkeyPatch.setattr

    def guarded(self: pytest.MonkeyPatch, target: Any, name: Any, *value: Any, **more: Any) -> None:
        owner, attribute = (target, name) if value or not isinstance(target, str) else _place_of(target)
        if _is_bound(owner, attribute):
            raise ReplacedInVain(f"{getattr(owner, '__name__', owner)}.{attribute} is compiled into those who use it")
        replace(self, target, name, *value, **more)

    pytest.MonkeyPatch.setattr = guarded  # type: ignore[assignment,method-assign]


def _place_of(dotted: str) -> tuple[object, str]:
    """What `a.module.Class.name` would be set on."""
    head, _, name = dotted.rpartition(".")
    try:
        return import_module(head), name
    except ImportError:
        return None, name


def _is_bound(owner: object, name: str) -> bool:
    if isinstance(owner, type):
        return owner.__module__ in _compiled() and name in vars(owner)
    if not isinstance(owner, ModuleType) or owner.__name__ not in _compiled():
        return False
    found = getattr(owner, name, None)
    is_native = (getattr(found, "__module__", None) or "") in _compiled() and not hasattr(found, "__code__")
    return is_native or name in _finals(Path(str(owner.__file__).partition(".cpython-")[0] + ".py"))


@cache
def _compiled() -> frozenset[str]:
    from rlite_pubsub import build

    return frozenset(build.COMPILED) if build.is_compiled() else frozenset()


@cache
def _finals(source: Path) -> frozenset[str]:
    statements = ast.parse(source.read_text(encoding="utf-8")).body
    return frozenset(
        one.target.id
        for one in statements
        if isinstance(one, ast.AnnAssign)
        and isinstance(one.target, ast.Name)
        and ast.unparse(one.annotation).startswith("Final")
        and isinstance(one.value, (ast.Constant, ast.BinOp, ast.UnaryOp, ast.Tuple))
    )
