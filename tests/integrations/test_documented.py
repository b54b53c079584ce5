"""Every program of docs/frameworks.md runs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from patience import PATIENCE_S

PROGRAMS = re.findall(r"```python\n(.*?)```", (Path(__file__).parents[2] / "docs/frameworks.md").read_text(), re.S)


@pytest.mark.parametrize("number", range(len(PROGRAMS)))
def test_a_program_of_the_page_runs(number: int, tmp_path: Path) -> None:
    file = tmp_path / "program.py"
    file.write_text(PROGRAMS[number])
    ended = subprocess.run([sys.executable, file], cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE_S)
    assert ended.returncode == 0, ended.stderr
