"""RDB files that are sent to clients (`redis-cli --rdb`) and to new replicas, by processes of their own, which have the
peers' sockets.

The loop goes on meanwhile. While a file is made, whoever comes waits, and then one is made for all who wait, as by
Redis: so however many ask at once, few processes run. One that is sent while it is made is waited for a while only: its
peer may read slowly. A peer that takes nothing for `repl-timeout` seconds is left.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import monotonic
from typing import NamedTuple

from rlite_pubsub.engine.replicas.replicas import FileWish

MOST_PROCESSES = 8
"""So many run at once, of which one makes a file: the others have peers that read slowly."""
_SIGN_OF_LIFE_S = 1.0
_WAITED_FOR_S = 10.0
_MARKED = "replica-marked"
MADE = b"made\n"
"""What a process says when its file is there as a whole."""


class _Waiting(NamedTuple):
    """A peer that waits for a file."""

    descriptor: int
    what: str
    done: Callable[[int | None], None] | None

    def end(self, offset: int | None) -> None:
        if self.done is not None:
            self.done(offset)


class _Sending:
    """A process, and who gets its file."""

    def __init__(self, process: subprocess.Popen[bytes], told: int, peers: list[_Waiting], *, is_marked: bool) -> None:
        """`told`: where it says that the file is made, and at last which offset that stands for and who has it.
        `is_marked`: it is sent while it is made."""
        self.process = process
        self._waited_for_until = monotonic() + _WAITED_FOR_S if is_marked else float("inf")
        self.peers = peers
        self._told = told
        self._said = b""
        os.set_blocking(told, False)

    @property
    def is_making(self) -> bool:
        """Others wait until it is made."""
        self._hear()
        return not self._said.startswith(MADE) and monotonic() < self._waited_for_until

    def _hear(self) -> None:
        try:
            while piece := os.read(self._told, 4096):
                self._said += piece
        except BlockingIOError:
            pass

    def end(self) -> None:
        """Tell those who wait for it that it has ended."""
        self._hear()
        self.close()
        words = self._said.removeprefix(MADE).split() if self.process.returncode == 0 else []
        offset = int(words[0]) if words and words[0] != b"-" else None
        reached = {int(word) for word in words[1:]}
        for number, peer in enumerate(self.peers):
            peer.end(offset if number in reached else None)


    def close(self) -> None:
        """Hear nothing more."""
        os.close(self._told)


class Dumps:
    """Sends RDB files to clients of one server."""

    def __init__(self, folder: Path, patience_s: Callable[[], int]) -> None:
        self._folder = folder
        self._patience_s = patience_s
        self._waiting: list[_Waiting] = []
        self._under_way: list[_Sending] = []
        self._life_at = 0.0

    def send(self, descriptor: int, *, only_functions: bool) -> None:
        """Send all keys to the peer of this descriptor, which is closed here."""
        self._await(_Waiting(descriptor, "functions" if only_functions else "keys", None))

    def send_to_replica(self, descriptor: int, wish: FileWish, done: Callable[[int | None], None]) -> None:
        """The same for a replica; `done` is called with the offset that the file stands for, or None: it was not
        sent."""
        what = _MARKED if wish.is_marked else "replica" if wish.says_position else "sync"
        self._await(_Waiting(descriptor, what, done))

    def _await(self, peer: _Waiting) -> None:
        self._waiting.append(peer)
        self._start_next()

    def _start_next(self) -> None:
        """Have a file made for all who wait for the same, unless one is being made."""
        sending = self._under_way
        if not self._waiting or len(sending) >= MOST_PROCESSES or any(each.is_making for each in sending):
            return
        what = _form(self._waiting[0].what)
        peers = [peer for peer in self._waiting if _form(peer.what) == what]
        self._waiting = [peer for peer in self._waiting if _form(peer.what) != what]
        self._start(peers[0].what if len(peers) == 1 else what, peers)

    def _start(self, what: str, peers: list[_Waiting]) -> None:
        told, tell = os.pipe()
        descriptors = [peer.descriptor for peer in peers]
        words = [os.fspath(self._folder), str(self._patience_s()), what, str(tell), *map(str, descriptors)]
        command = [sys.executable, "-m", "rlite_pubsub.replication.sending", *words]
        try:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, pass_fds=(tell, *descriptors)
            )
        except BaseException:
            os.close(told)
            raise
        finally:
            for descriptor in (tell, *descriptors):
                os.close(descriptor)
        self._under_way.append(_Sending(process, told, peers, is_marked=what == _MARKED))

    def cron(self) -> None:
        """Clean up after those that have ended, notify those who wait for them, and begin with the next."""
        if not self._under_way and not self._waiting:
            return
        ended = [sending for sending in self._under_way if sending.process.poll() is not None]
        self._under_way = [sending for sending in self._under_way if sending not in ended]
        for sending in ended:
            sending.end()
        self._start_next()
        self._show_life()

    def _show_life(self) -> None:
        """To those who wait an empty line says that this goes on; who is gone waits no longer."""
        if not self._waiting or monotonic() < self._life_at:
            return
        self._life_at = monotonic() + _SIGN_OF_LIFE_S
        for peer in list(self._waiting):
            try:
                os.write(peer.descriptor, b"\n")
            except BlockingIOError:
                pass  # it does not even read this
            except OSError:
                self._waiting.remove(peer)
                os.close(peer.descriptor)
                peer.end(None)

    def stop(self) -> None:
        """Cut off what is under way: the server ends."""
        for sending in self._under_way:
            sending.process.kill()
            sending.process.wait()
            sending.close()
        for peer in self._waiting:
            os.close(peer.descriptor)
        self._under_way, self._waiting = [], []


def _form(what: str) -> str:
    """Who can be sent the same file together: those who take one with a mark take one of a size."""
    return "replica" if what == _MARKED else what
