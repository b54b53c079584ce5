"""The routes version: every change of receivers moves it, and tells others that their routes are old.

    key \\0 "routes"   value  counter u64

The true version is in live.mdb. Numbers in shared memory say that it may have changed: a look at them costs 50 ns where
a read transaction costs 1.4 us, and every publish has to look. Two change with the routes version, one with the commons
(storage/commons/, in data.mdb), and one when somebody asks the processes about their clients (client_reports.py). They
are written after the commit and before the reply to the subscriber, so that no later publisher can miss the change.
They mean nothing but that they differ from what was seen before.

    routes.hint    routes u64 | patterns u64 | commons u64 | clients u64    (native byte order: all are on one machine)
"""

from __future__ import annotations

import mmap
import os
import secrets
from pathlib import Path
from struct import Struct

from rlite_pubsub import permissions
from rlite_pubsub.storage.databases import ROUTES_VERSION
from rlite_pubsub.storage.environment import Txn
from rlite_pubsub.storage.system import take_blocks

FILE_NAME = "routes.hint"
_COUNTER = Struct(">Q")
_BYTES = 32


def routes_version(txn: Txn) -> int:
    found = txn.get(ROUTES_VERSION)
    return 0 if found is None else int(_COUNTER.unpack(found)[0])


def bump(txn: Txn) -> int:
    following = routes_version(txn) + 1
    txn.put(ROUTES_VERSION, _COUNTER.pack(following))
    return following


class RoutesHint:
    """One process's view of the file."""

    def __init__(self, folder: Path) -> None:
        """Map the file, and create it if it does not exist. Raises OSError."""
        descriptor = permissions.opened(folder / FILE_NAME, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW)
        try:
            take_blocks(descriptor, 0, _BYTES)  # on a full disk this is an error now, instead of a SIGBUS later
            self._map = mmap.mmap(descriptor, _BYTES)
        finally:
            os.close(descriptor)
        self.numbers = memoryview(self._map).cast("Q")
        """[routes, patterns, commons, clients]"""

    def forget(self) -> None:
        """Reset the numbers: nobody else has the store open, and live.mdb may begin again at version 0. No number
        announced before may be taken for one still to come."""
        fresh = secrets.randbits(60) | 1 << 60  # beyond any count of changes
        self.numbers[0] = self.numbers[1] = self.numbers[2] = self.numbers[3] = fresh

    def announce(self, version: int, patterns: bool) -> None:
        """Announce the routes version, and whether patterns are among the changes."""
        if patterns:
            self.numbers[1] = version
        self.numbers[0] = version

    def announce_commons(self, version: int) -> None:
        """Announce the version of the commons."""
        self.numbers[2] = version

    def nudge(self) -> None:
        """Make all processes look at the commons before their next turn, though the version is the same."""
        self.numbers[2] = secrets.randbits(63) | 1 << 63

    def announce_question(self) -> None:
        """Announce that somebody asks the processes about their clients, or wants one closed."""
        self.numbers[3] = secrets.randbits(63) | 1 << 63

    def close(self) -> None:
        self.numbers.release()
        self._map.close()
