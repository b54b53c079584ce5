"""RDB files that are sent to clients (`redis-cli --rdb`), each by a process of its own, which has the client's socket.

The loop goes on meanwhile. A client that takes nothing for `repl-timeout` seconds is left.
"""

from __future__ import annotations

import os
import socket
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

_TIMEVAL = struct.Struct("ll")


class Dumps:
    """Sends RDB files to clients of one server."""

    def __init__(self, folder: Path, patience_s: Callable[[], int]) -> None:
        self._folder = folder
        self._patience_s = patience_s
        self._processes: list[subprocess.Popen[bytes]] = []

    def send(self, descriptor: int, *, only_functions: bool) -> None:
        """Send all keys to whoever is behind this descriptor, which is closed here."""
        with socket.socket(fileno=descriptor) as peer:
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, _TIMEVAL.pack(self._patience_s(), 0))
            words = [os.fspath(self._folder), "functions" if only_functions else "keys"]
            command = [sys.executable, "-m", "rlite_pubsub.replication.sending", *words]
            self._processes.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=peer.fileno()))

    def cron(self) -> None:
        """Those that have ended leave nothing behind."""
        if self._processes:
            self._processes = [process for process in self._processes if process.poll() is None]

    def stop(self) -> None:
        """The server ends: what is under way is cut off."""
        for process in self._processes:
            process.kill()
            process.wait()
        self._processes = []
