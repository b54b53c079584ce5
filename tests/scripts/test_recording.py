"""The picture of the README shows what the session of scripts/recording.py prints."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ALONE = ["unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "alone"]
"""With a network of its own, where its port is free."""


def test_picture_shows_what_the_session_prints() -> None:
    if shutil.which("redis-cli") is None:
        pytest.skip("no redis-cli: the session of the README's picture was not played")
    if subprocess.run([*ALONE, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("no network of its own is to be had: the session of the README's picture was not played")
    command = [*ALONE, sys.executable, str(ROOT / "scripts/recording.py"), "--check"]
    played = subprocess.run(command, capture_output=True, text=True, check=False)
    assert played.returncode == 0, played.stderr
