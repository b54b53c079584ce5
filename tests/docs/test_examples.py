"""The programs of examples/ do what they say that they do, with the package and nothing else."""

from __future__ import annotations

import ast
import os
import subprocess
from pathlib import Path

import pytest
import shims
from blocks import ROOT
from expected import matches
from patience import PATIENCE_S
from readers_environment import OURS, ReadersEnvironment

EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


def _said(program: Path) -> tuple[str, str]:
    """The command and the output in its docstring."""
    doc = ast.get_docstring(ast.parse(program.read_text()), clean=False) or ""
    indented = [line.strip() for line in doc.split("\n") if line.startswith("    ")]
    assert indented, f"{program.name} does not say how to run it"
    return indented[0], "\n".join(indented[1:])


@pytest.mark.parametrize("program", EXAMPLES, ids=lambda program: program.name)
def test_example_prints_what_it_says(program: Path, tmp_path: Path) -> None:
    command, prints = _said(program)
    variables = shims.environment(tmp_path)
    reader = ReadersEnvironment(tmp_path / ".venv")
    reader.make()
    for distribution in (OURS, *(["pytest"] if "pytest" in command else [])):
        reader.install(distribution)
    variables["PATH"] = f"{reader.bin}{os.pathsep}{variables['PATH']}"
    (tmp_path / program.name).write_text(program.read_text())
    ended = subprocess.run(
        ["sh", "-c", command], cwd=tmp_path, env=variables, capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert not prints or matches(prints, ended.stdout), ended.stdout + ended.stderr


def test_every_example_is_in_the_table() -> None:
    table = (ROOT / "examples/README.md").read_text()
    assert [program.name for program in EXAMPLES if f"({program.name})" not in table] == []
