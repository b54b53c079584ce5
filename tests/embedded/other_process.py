"""A second Python process on the same store, which does as it is told, and can be killed."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

from patience import PATIENCE_S

_START = f"""
import os, sys
import rlite_pubsub
PATIENCE_S = {PATIENCE_S}
folder = sys.argv[1]
def say(*words):
    os.write(1, " ".join(map(str, words)).encode() + b"\\n")
"""


class OtherProcess:
    """Runs `sources`, which have `folder`, `rlite_pubsub`, `PATIENCE_S` and `say`, in an interpreter of its own."""

    def __init__(self, folder: Path, *sources: str, quiet: bool = False) -> None:
        """`quiet`: what it says of its errors is not for us to see."""
        self._process = subprocess.Popen(
            [sys.executable, "-c", _START + "".join(map(textwrap.dedent, sources)), str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL if quiet else None,
            text=True,
        )

    def hear(self) -> str:
        """The next line that it says; empty if it has ended."""
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def tell(self, line: str) -> None:
        """A line for it to read."""
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def send_signal(self, number: int) -> None:
        """Stop it, or let it go on."""
        self._process.send_signal(number)

    def rest(self) -> list[str]:
        """All that it has said before it ended."""
        assert self._process.stdout is not None
        return self._process.stdout.read().split("\n")[:-1]

    def end(self) -> int:
        """Wait for it; its exit code."""
        return self._process.wait(PATIENCE_S)

    def kill(self) -> None:
        """As `kill -9`."""
        self._process.kill()
        self._process.wait()

    def __enter__(self) -> OtherProcess:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self.kill()
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
