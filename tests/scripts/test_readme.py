"""README.md is what its generator writes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_tables_of_the_readme_are_those_of_the_declarations() -> None:
    check = subprocess.run([sys.executable, ROOT / "scripts" / "readme.py", "--check"], capture_output=True, text=True)

    assert check.returncode == 0, check.stderr
