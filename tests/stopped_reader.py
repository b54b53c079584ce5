"""A process that stands still with LMDB's lock of its table of readers, which each reader has for an instant."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from types import TracebackType

_PROGRAM = """
import ctypes, os, signal, sys
from pathlib import Path
from rlite_pubsub.storage.locks import mutex
from rlite_pubsub.storage.store import Store

store = Store.open(sys.argv[1])
words = mutex.mapped(Path(sys.argv[1]) / (sys.argv[2] + "-lock"), 64)
lock = ctypes.c_void_p(ctypes.addressof(words) + 8)  # behind a magic number and a version
here = ctypes.PyDLL(None)
print("open", flush=True)
sys.stdin.readline()
assert not here.pthread_mutex_lock(lock)
os.kill(os.getpid(), signal.SIGSTOP)
assert not here.pthread_mutex_unlock(lock)
print("on", flush=True)
sys.stdin.readline()
"""


class StoppedReader:
    """Stopped from its construction until `go_on`."""

    def __init__(self, folder: Path, environment: str = "data.mdb") -> None:
        command = [sys.executable, "-c", _PROGRAM, str(folder), environment]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.pid = self._process.pid
        assert self._line() == "open"
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        _, status = os.waitpid(self.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status)

    def go_on(self) -> None:
        os.kill(self.pid, signal.SIGCONT)
        assert self._line() == "on"

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def __enter__(self) -> StoppedReader:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()
