"""What the package says of its build is true of the modules that are imported."""

from __future__ import annotations

import importlib.machinery
import runpy
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rlite_pubsub import build

SUFFIX = importlib.machinery.EXTENSION_SUFFIXES[0]
C_TOO = sys.platform == "linux"
COMPILED = [*build.COMPILED, *(build.WRITTEN_IN_C if C_TOO else ())]


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A package that has nothing but its build."""
    (tmp_path / "rlite_pubsub").mkdir()
    shutil.copy(Path(build.__file__).parent / "build.py", tmp_path / "rlite_pubsub")
    return tmp_path / "rlite_pubsub"


def names_of(package: Path) -> dict[str, Any]:
    return runpy.run_path(str(package / "build.py"))


def compile_(package: Path, name: str) -> Path:
    file = package.parent / (name.replace(".", "/") + SUFFIX)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.touch()
    return file


def test_package_without_any_compiled_module_is_pure(package: Path) -> None:
    assert names_of(package)["state"]() == "pure Python"
    assert not names_of(package)["is_compiled"]()


def test_package_is_compiled_if_all_of_its_modules_are(package: Path) -> None:
    files = [compile_(package, name) for name in COMPILED]
    assert names_of(package)["state"]() == "compiled"

    files[-2].unlink()
    assert names_of(package)["state"]() == f"damaged: 1 of {len(COMPILED)} modules are not compiled"
    assert names_of(package)["pure_modules"]() == [COMPILED[-2]]
    assert not names_of(package)["is_compiled"]()


def test_what_it_says_here_is_true_of_what_is_imported_here() -> None:
    code = (
        "import importlib, sys, rlite_pubsub.build as build\n"
        "names = [*build.COMPILED, *(build.WRITTEN_IN_C if build.is_compiled() and sys.platform == 'linux' else ())]\n"
        "files = {importlib.import_module(name).__file__.endswith('.py') for name in names}\n"
        "print(build.state(), files)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said in ("compiled {False}\n", "pure Python {True}\n")


def test_version_names_the_package_that_python_in_this_folder_would_import(tmp_path: Path) -> None:
    other = tmp_path / "rlite_pubsub"
    other.mkdir()
    (other / "__init__.py").touch()
    version = [sys.executable, "-P", "-m", "rlite_pubsub", "--version"]

    def said(folder: Path) -> str:
        return subprocess.run(version, cwd=folder, capture_output=True, text=True, check=True).stdout

    told = "Python that you start in this folder imports another package: rlite_pubsub\n"
    assert said(other).count("\n") == 1
    assert said(tmp_path) == said(other) + told
