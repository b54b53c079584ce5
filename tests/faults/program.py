"""Another Python process on a store: it does as it is told, may be less powerful than we are, and can be killed."""

from __future__ import annotations

import ctypes
import os
import select
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

from patience import PATIENCE_S

ROOT = Path(__file__).parents[2]
_START = f"""
import os, sys
import rlite_pubsub
PATIENCE_S = {PATIENCE_S}
folder = sys.argv[1]
def say(*words):
    os.write(1, " ".join(word.decode() if isinstance(word, bytes) else str(word) for word in words).encode() + b"\\n")
def told():
    return sys.stdin.readline().strip()
"""


class Program:
    """Runs `source` in an interpreter of its own; it has `folder`, `rlite_pubsub`, `PATIENCE_S`, `say` and `told`."""

    prefix: tuple[str, ...] = ()
    """What runs the interpreter."""

    def __init__(
        self,
        folder: Path,
        source: str,
        *,
        environment: dict[str, str] | None = None,
        before_start: Callable[[], None] | None = None,
    ) -> None:
        self._process = subprocess.Popen(
            [*self.prefix, sys.executable, "-c", _START + textwrap.dedent(source), str(folder)],
            cwd=ROOT,
            env=os.environ | (environment or {}),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            preexec_fn=before_start,
        )
        self._heard = b""

    @property
    def pid(self) -> int:
        return self._process.pid

    def hear(self) -> str:
        """The next line that it says. One that ends instead, or is silent for long, is a failure, with what it wrote
        to stderr."""
        assert self._process.stdout is not None
        deadline = time.monotonic() + PATIENCE_S
        while b"\n" not in self._heard:
            ready, _, _ = select.select([self._process.stdout], [], [], deadline - time.monotonic())
            data = os.read(self._process.stdout.fileno(), 65536) if ready else b""
            if not data:
                self.kill()
                raise AssertionError(f"it {'ended' if ready else 'was silent'}: {self.errors()}")
            self._heard += data
        line, _, self._heard = self._heard.partition(b"\n")
        return line.decode()

    def tell(self, line: str = "") -> None:
        """What its `told` returns."""
        assert self._process.stdin is not None
        self._process.stdin.write(line.encode() + b"\n")
        self._process.stdin.flush()

    def end(self) -> int:
        """Wait for it; its exit code."""
        return self._process.wait(PATIENCE_S)

    def kill(self) -> None:
        """As `kill -9`."""
        self._process.kill()
        self._process.wait()

    def errors(self) -> str:
        """All that it wrote to stderr, once it has ended."""
        assert self._process.stderr is not None
        return self._process.stderr.read().decode()

    def processor_s(self) -> float:
        """How long it has been busy."""
        fields = Path(f"/proc/{self.pid}/stat").read_bytes().rpartition(b")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def clean_up(self) -> None:
        if self._process.poll() is None:
            self.kill()
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            assert pipe is not None
            if not pipe.closed:
                pipe.close()


def without_power() -> None:
    """Root may read and write anything, unless it gives up that capability: called in the child."""
    CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, PR_CAPBSET_DROP = 1, 2, 24
    for capability in (CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH):
        ctypes.CDLL(None).prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)


def command(*words: str, before_start: Callable[[], None] | None = None) -> subprocess.CompletedProcess[str]:
    """`rlite-pubsub`, and what it says."""
    return subprocess.run(
        [sys.executable, "-m", "rlite_pubsub", *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        preexec_fn=before_start,
        timeout=PATIENCE_S,
    )


Start = Callable[..., Program]
"""The fixture `start`."""
