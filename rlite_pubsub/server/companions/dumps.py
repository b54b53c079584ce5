"""RDB files that are sent to clients (`redis-cli --rdb`) and to new replicas, each by a process of its own, which has
the peer's socket.

The loop goes on meanwhile. A peer that takes nothing for `repl-timeout` seconds is left.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from rlite_pubsub.engine.replicas.replicas import FileWish
from rlite_pubsub.server.companions.companion import OWN_GROUP


class _Sending(NamedTuple):
    process: subprocess.Popen[bytes]
    told: int
    """Where it says which offset its file stands for; -1: nowhere."""
    done: Callable[[int | None], None] | None


class Dumps:
    """Sends RDB files to clients of one server."""

    def __init__(self, folder: Path, patience_s: Callable[[], int]) -> None:
        self._folder = folder
        self._patience_s = patience_s
        self._under_way: list[_Sending] = []

    def send(self, descriptor: int, *, only_functions: bool) -> None:
        """Send all keys to the peer of this descriptor, which is closed here."""
        self._start(descriptor, "functions" if only_functions else "keys", None)

    def send_to_replica(self, descriptor: int, wish: FileWish, done: Callable[[int | None], None]) -> None:
        """The same for a replica; `done` is called with the offset that the file stands for, or None: it was not
        sent."""
        what = "replica-marked" if wish.is_marked else "replica" if wish.says_position else "sync"
        self._start(descriptor, what, done)

    def _start(self, descriptor: int, what: str, done: Callable[[int | None], None] | None) -> None:
        told, tell = os.pipe() if done is not None else (-1, -1)
        words = [os.fspath(self._folder), str(self._patience_s()), what, str(tell)]
        command = [sys.executable, "-m", "rlite_pubsub.replication.sending", *words]
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=descriptor,
                process_group=OWN_GROUP,
                pass_fds=() if tell < 0 else (tell,),
            )
        finally:
            os.close(descriptor)
            if tell >= 0:
                os.close(tell)
        self._under_way.append(_Sending(process, told, done))

    def cron(self) -> None:
        """Clean up after those that have ended, and notify those who wait for them."""
        if not self._under_way:
            return
        ended = [sending for sending in self._under_way if sending.process.poll() is not None]
        self._under_way = [sending for sending in self._under_way if sending not in ended]
        for sending in ended:
            if sending.done is not None:
                said = os.read(sending.told, 64)
                os.close(sending.told)
                sending.done(int(said) if said and sending.process.returncode == 0 else None)

    def stop(self) -> None:
        """Cut off what is under way: the server ends."""
        for sending in self._under_way:
            sending.process.kill()
            sending.process.wait()
            if sending.told >= 0:
                os.close(sending.told)
        self._under_way = []
