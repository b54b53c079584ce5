"""The process that sends an RDB file of a store to clients, whose sockets it is given (server/companions/dumps.py).

    sending FOLDER SECONDS WHAT DESCRIPTOR SOCKET ...
        keys, functions    $size, and so many bytes: for a client that wants a file alone
        replica            +FULLRESYNC history offset, and such a file
        replica-marked     the same, but $EOF:mark, the file and the mark again, without a size: to one socket
        sync               a file of a size, for a replica that keeps no position

A file of a size is written whole, without a name, before it is sent: a client that reads slowly keeps no snapshot open,
and none that reads quickly waits for it. One with a mark is sent while the store is read. Where it fails the clients
get no file, but the end of the connection.

To the descriptor it says `made` when the file is there, and at last which offset in the store's stream that stands for
(-: it was for no replica), and the numbers of the sockets over which it was sent.

The server has the sockets, too, and never blocks on them: so they stay as they are, and whoever writes here waits by
itself.
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

_BUFFERED = 1 << 20
_PIECE_BYTES = 1 << 18
_MARK_BYTES = 20
_SIGN_OF_LIFE_S = 1.0
_MADE = b"made\n"


class _Peer:
    """The peer of a socket."""

    def __init__(self, descriptor: int, patience_s: float) -> None:
        self.descriptor = descriptor
        self.is_gone = False
        self.at = 0
        """How much of the file it was sent."""
        self.taken_at = monotonic()
        """When it took something last."""
        self._patience_s = patience_s
        self._writable = select.poll()
        self._writable.register(descriptor, select.POLLOUT)
        self._said_at = monotonic()

    def say(self, data: bytes) -> None:
        """Send all of it. Raises OSError if the peer is gone, or takes nothing for too long."""
        rest = memoryview(data)
        while rest:
            try:
                rest = rest[os.write(self.descriptor, rest) :]
            except BlockingIOError:
                if not self._writable.poll(self._patience_s * 1000):
                    raise TimeoutError("it takes nothing") from None
        self._said_at = self.taken_at = monotonic()

    def try_to_say(self, data: bytes) -> None:
        """The same; if it fails, the peer is gone."""
        if not self.is_gone:
            try:
                self.say(data)
            except OSError as failure:
                self.leave(failure)

    def leave(self, failure: OSError) -> None:
        """Note that it gets no file."""
        self.is_gone = True
        print(f"rlite-pubsub: an RDB file could not be sent: {failure}", file=sys.stderr)

    def show_life(self) -> None:
        """It waits for a file: now and then an empty line says that this goes on."""
        if monotonic() - self._said_at >= _SIGN_OF_LIFE_S:
            self.try_to_say(b"\n")


def main() -> int:
    folder, patience, what, tell, *sockets = sys.argv[1:]
    patience_s = float(patience)
    peers = [_Peer(int(descriptor), patience_s) for descriptor in sockets]
    positions: list[Stream] = []

    def begin(stream: Stream) -> None:
        positions.append(stream)
        if what != "sync":
            for peer in peers:
                peer.try_to_say(b"+FULLRESYNC %b %d\r\n" % (stream.history, stream.ends))

    for_replica = None if what in ("keys", "functions") else begin
    if what == "replica-marked":
        _send_marked(peers[0], folder, begin)
        os.write(int(tell), _MADE)
    else:
        with tempfile.TemporaryFile(dir=folder, buffering=_BUFFERED) as file:

            def write(data: bytes) -> None:
                file.write(data)
                if for_replica is not None:
                    for peer in peers:
                        peer.show_life()

            export_from(folder, write, only_functions=what == "functions", for_replica=for_replica)
            file.flush()
            os.write(int(tell), _MADE)
            _send_whole(peers, file.fileno(), file.tell(), patience_s)
    reached = [b"%d" % number for number, peer in enumerate(peers) if not peer.is_gone]
    os.write(int(tell), b" ".join([b"%d" % positions[-1].ends if positions else b"-", *reached]))
    return 0 if reached else 1


def _send_whole(peers: list[_Peer], file: int, size: int, patience_s: float) -> None:
    """Each is sent the file as quickly as it reads."""
    for peer in peers:
        peer.try_to_say(b"$%d\r\n" % size)
    waiting = {peer.descriptor: peer for peer in peers if not peer.is_gone and size}
    poll = select.poll()
    for descriptor in waiting:
        poll.register(descriptor, select.POLLOUT)
    while waiting:
        now = monotonic()
        patient_s = min(peer.taken_at for peer in waiting.values()) + patience_s - now
        for descriptor, _ in poll.poll(max(patient_s, 0.0) * 1000):
            peer = waiting[descriptor]
            try:
                peer.at += os.write(descriptor, os.pread(file, min(_PIECE_BYTES, size - peer.at), peer.at))
                peer.taken_at = monotonic()
            except BlockingIOError:
                continue
            except OSError as failure:
                peer.leave(failure)
        for peer in list(waiting.values()):
            if not peer.is_gone and peer.at < size and monotonic() - peer.taken_at >= patience_s:
                peer.leave(TimeoutError("it takes nothing"))
            if peer.is_gone or peer.at >= size:
                poll.unregister(peer.descriptor)
                del waiting[peer.descriptor]


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
