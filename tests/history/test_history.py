"""A hundred kills, and every history can be so.

RLITE_HISTORY_SEED makes the same dice fall again, RLITE_HISTORY_KILLS is how many; `python -m tests.history` does it by
hand.
"""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
KILLS = os.environ.get("RLITE_HISTORY_KILLS", "100")
SEED = os.environ.get("RLITE_HISTORY_SEED", str(secrets.randbits(32)))


@pytest.mark.timeout(1800)
def test_every_acknowledged_operation_is_there_once_and_in_order_whoever_is_killed() -> None:
    folder = Path(tempfile.mkdtemp(prefix="rlite-"))  # sockets are in it: a path of tmp_path may be too long for one
    words = ["--seed", SEED, "--kills", KILLS, "--folder", str(folder)]
    done = subprocess.run(
        [sys.executable, "-m", "tests.history", *words],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, f"RLITE_HISTORY_SEED={SEED}:\n{done.stdout}"
    print(done.stdout)
    folder.rmdir()
