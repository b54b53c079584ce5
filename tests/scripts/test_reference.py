"""The generated pages of docs/ are what their generator writes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_generated_pages_match_the_declarations() -> None:
    command = [sys.executable, ROOT / "scripts" / "reference.py", "--check"]
    check = subprocess.run(command, capture_output=True, text=True)

    assert check.returncode == 0, check.stderr
