"""Modules that are C, compiled by themselves: the tree is pure Python."""

from __future__ import annotations

import atexit
import gc
import importlib.machinery
import importlib.util
import os
import shlex
import shutil
import subprocess
import sysconfig
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest


class Rude:
    """Garbage whose end does something: where C makes an object that may collect it, this is a callback."""

    def __init__(self, act: Callable[[], object]) -> None:
        self.me, self.act = self, act

    def __del__(self) -> None:
        self.act()


@contextmanager
def collecting_garbage(behind: int) -> Iterator[None]:
    """Garbage is collected behind every so many new objects."""
    gc.collect()
    before = gc.get_threshold()
    gc.set_threshold(behind)
    try:
        yield
    finally:
        gc.set_threshold(*before)


def compiled(source: Path) -> Any:
    """The module of this source, as a compiled package has it. Skips the test where there is no compiler."""
    if shutil.which("cc") is None or not Path(sysconfig.get_path("include"), "Python.h").is_file():
        pytest.skip("nothing can be compiled here")
    return _compiled(source)


@cache
def _compiled(source: Path) -> Any:
    folder = Path(mkdtemp(prefix="c-module-"))
    atexit.register(shutil.rmtree, folder)
    made = folder / source.with_suffix(".so").name
    include = f"-I{sysconfig.get_path('include')}"
    flags = shlex.split(os.environ.get("RLITE_TEST_C_FLAGS", ""))  # scripts/sanitize
    subprocess.run(["cc", "-shared", "-fPIC", "-Wall", "-Werror", *flags, include, "-o", made, source], check=True)
    loader = importlib.machinery.ExtensionFileLoader(source.stem, str(made))
    spec = importlib.util.spec_from_file_location(source.stem, made, loader=loader)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
