"""Tests that would run on another package than they seem to are not run at all."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import installed
import pytest

ROOT = Path(__file__).parents[2]


def run_beside_no_sources(folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    (folder / "tests").mkdir()
    for name in ("conftest.py", "pyproject.toml", "tests/installed.py", "tests/progress.py"):
        shutil.copy(ROOT / name, folder / name)
    (folder / "tests/test_nothing.py").write_text("def test_nothing() -> None:\n    pass\n")
    words = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider"]
    return subprocess.run(words, cwd=folder, env={**os.environ, **environment}, capture_output=True, text=True)


@pytest.mark.sources("has no compiled package to begin with")
def test_tests_beside_no_sources_do_not_run_on_sources_from_elsewhere(tmp_path: Path) -> None:
    done = run_beside_no_sources(tmp_path, PYTHONPATH=str(ROOT), RLITE_PURE="")

    assert done.returncode == 4
    assert "these tests would not test what they are to test:" in done.stderr
    assert f"rlite_pubsub.build is {ROOT}/rlite_pubsub/build.py" in done.stderr
    assert "1 passed" not in done.stdout


@pytest.mark.sources("has no sources to begin with")
def test_who_wants_a_pure_package_gets_its_tests(tmp_path: Path) -> None:
    assert "1 passed" in run_beside_no_sources(tmp_path, PYTHONPATH=str(ROOT), RLITE_PURE="1").stdout


def test_tests_beside_sources_do_not_run_on_another_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installed, "_HERE", tmp_path)
    monkeypatch.setattr(installed, "IS_INSTALLED", False)
    assert "they would run on" in installed.wrong_package()[0]


def test_replacing_what_compiled_code_does_not_look_up_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "hot.py").write_text("LIMIT: Final = 5\nnames: Final = make()\nASKED = 1\n")
    module = ModuleType("hot")
    module.__file__ = str(tmp_path / "hot.cpython-311-x86_64-linux-gnu.so")
    vars(module).update({"LIMIT": 5, "ASKED": 1, "boot_id": lambda: b"", "Own": type("Own", (), {"f": None})})
    module.Own.__module__ = "hot"
    monkeypatch.setattr(installed, "_compiled", lambda: frozenset({"hot"}))
    replaced = [
        (owner, name)
        for owner, name in ((module, "LIMIT"), (module, "ASKED"), (module, "boot_id"), (module.Own, "f"))
        if installed._is_bound(owner, name)
    ]
    assert replaced == [(module, "LIMIT"), (module.Own, "f")]
