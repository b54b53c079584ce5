"""A process that stands still in the middle of a write transaction, as one does that was stopped (SIGSTOP) there."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from types import TracebackType

_PROGRAM = """
import os, signal, sys
from rlite_pubsub.storage.store import Store

store = Store.open(sys.argv[1])
environment = getattr(store, sys.argv[2])

def work(txn):
    txn.put(b"\\xff" + sys.argv[3].encode(), b"")  # of no room
    os.kill(os.getpid(), signal.SIGSTOP)

print("open", flush=True)
while sys.stdin.readline():
    environment.write(work)
    print("written", flush=True)
store.close()
"""
MARK = "stopped"


class StoppedWriter:
    """Stopped from its construction until `go_on`; it has the store open until its end."""

    def __init__(self, folder: Path, environment: str = "data") -> None:
        """`environment`: data or live."""
        command = [sys.executable, "-c", _PROGRAM, str(folder), environment, MARK]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.pid = self._process.pid
        assert self._line() == "open"
        self.stop()

    def stop(self) -> None:
        """Begin a transaction, and be stopped in it."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        _, status = os.waitpid(self.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status)

    def go_on(self) -> None:
        """Returns when the transaction is committed."""
        os.kill(self.pid, signal.SIGCONT)
        assert self._line() == "written"

    def kill(self) -> None:
        """As by kill -9, wherever it is."""
        self._process.kill()
        self._process.wait()

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def __enter__(self) -> StoppedWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()
