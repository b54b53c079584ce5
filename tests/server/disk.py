"""A disk that is full."""

from __future__ import annotations

from pathlib import Path


def fill(folder: Path) -> Path:
    """Write a file that takes all that is left; remove it to have room again."""
    ballast = folder / "ballast"
    with open(ballast, "wb", buffering=0) as file:
        try:
            while file.write(b"x" * 4096):
                pass
        except OSError:
            return ballast
    raise AssertionError
