"""The process that sends an RDB file of a store to a client. The client's socket is its standard output
(server/companions/dumps.py).

    sending FOLDER SECONDS WHAT DESCRIPTOR
        keys, functions    $size, and so many bytes: for a client that wants a file alone
        replica            +FULLRESYNC history offset, and such a file
        replica-marked     the same, but $EOF:mark, the file and the mark again, without a size
        sync               a file of a size, for a replica that keeps no position

A file of a size is written whole, without a name, before it is sent: a client that reads slowly keeps no snapshot open.
One with a mark is sent while the store is read. Where it fails the client gets no file, but the end of the connection.
To the descriptor it says at last, where the file was for a replica, which offset in the store's stream that stands for.

The server has the socket, too, and never blocks on it: so it stays as it is, and whoever writes here waits by itself.
"""

from __future__ import annotations

import os
import secrets
import select
import sys
import tempfile
from collections.abc import Callable
from time import monotonic

from rlite_pubsub.replication.exporting import export_from
from rlite_pubsub.storage.commons.replica_stream import Stream

_OUT = 1
_BUFFERED = 1 << 20
_PIECE_BYTES = 1 << 18
_MARK_BYTES = 20
_SIGN_OF_LIFE_S = 1.0


class _Peer:
    """The peer of the socket."""

    def __init__(self, patience_s: float) -> None:
        self._patience_s = patience_s
        self._writable = select.poll()
        self._writable.register(_OUT, select.POLLOUT)
        self._said_at = monotonic()

    def say(self, data: bytes) -> None:
        """Send all of it. Raises OSError if the peer is gone, or takes nothing for too long."""
        rest = memoryview(data)
        while rest:
            try:
                rest = rest[os.write(_OUT, rest) :]
            except BlockingIOError:
                if not self._writable.poll(self._patience_s * 1000):
                    raise TimeoutError("it takes nothing") from None
        self._said_at = monotonic()

    def show_life(self) -> None:
        """It waits for a file: now and then an empty line says that this goes on."""
        if monotonic() - self._said_at >= _SIGN_OF_LIFE_S:
            self.say(b"\n")


def main() -> int:
    folder, patience_s, what, tell = sys.argv[1:]
    peer = _Peer(float(patience_s))
    positions: list[Stream] = []

    def begin(stream: Stream) -> None:
        positions.append(stream)
        if what != "sync":
            peer.say(b"+FULLRESYNC %b %d\r\n" % (stream.history, stream.ends))

    for_replica = None if what in ("keys", "functions") else begin
    if what == "replica-marked":
        _send_marked(peer, folder, begin)
    else:
        _send_whole(peer, folder, for_replica, only_functions=what == "functions")
    if positions:
        os.write(int(tell), b"%d" % positions[-1].ends)
    return 0


def _send_whole(
    peer: _Peer, folder: str, for_replica: Callable[[Stream], None] | None, *, only_functions: bool
) -> None:
    with tempfile.TemporaryFile(dir=folder, buffering=_BUFFERED) as file:

        def write(data: bytes) -> None:
            file.write(data)
            if for_replica is not None:
                peer.show_life()

        export_from(folder, write, only_functions=only_functions, for_replica=for_replica)
        size = file.tell()
        file.seek(0)
        peer.say(b"$%d\r\n" % size)
        while piece := file.read(_PIECE_BYTES):
            peer.say(piece)


def _send_marked(peer: _Peer, folder: str, begin: Callable[[Stream], None]) -> None:
    mark = secrets.token_hex(_MARK_BYTES).encode()
    gathered: list[bytes] = []
    size = 0

    def start(stream: Stream) -> None:
        begin(stream)
        peer.say(b"$EOF:%b\r\n" % mark)

    def write(data: bytes) -> None:
        nonlocal size
        gathered.append(data)
        size += len(data)
        if size >= _PIECE_BYTES:
            peer.say(b"".join(gathered))
            gathered.clear()
            size = 0

    export_from(folder, write, for_replica=start)
    peer.say(b"".join(gathered) + mark)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except OSError as failure:
        print(f"rlite-pubsub: an RDB file could not be sent: {failure}", file=sys.stderr)
        sys.exit(1)
