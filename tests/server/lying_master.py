"""A master that says what a test wants it to say: to each replica that asks for a file, and to each anew."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable

from rlite_pubsub.protocol.rdb import envelope
from rlite_pubsub.protocol.rdb.crc64 import crc64

HISTORY = b"a" * 40
FULL = b"+FULLRESYNC %b 0\r\n" % HISTORY


def rdb(body: bytes = b"") -> bytes:
    """An RDB file of this, whose sum is right."""
    data = b"REDIS0010" + body + b"\xff"
    return data + crc64(data).to_bytes(8, "little")


def strings(count: int) -> bytes:
    """The body of an RDB file with so many keys."""
    return b"\xfe\x00" + b"".join([b"\x00" + envelope.string(b"k%d" % n) + envelope.string(b"v") for n in range(count)])


def whole(file: bytes, stream: bytes = b"") -> Callable[[socket.socket], None]:
    """Say it as a master does, and stay."""

    def say(peer: socket.socket) -> None:
        peer.sendall(FULL + b"$%d\r\n" % len(file) + file + stream)
        while peer.recv(1 << 16):
            pass

    return say


class LyingMaster:
    """Listens while it is entered. `say` may be replaced."""

    def __init__(self, say: Callable[[socket.socket], None]) -> None:
        self.say = say
        self.asked = 0
        """How many have asked for a file and were told what there is to say."""
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                peer, _ = self._listening.accept()
            except OSError:
                return
            threading.Thread(target=self._meet, args=(peer,), daemon=True).start()

    def _meet(self, peer: socket.socket) -> None:
        try:
            with peer:
                while data := peer.recv(1 << 16):
                    if b"PSYNC" in data:
                        self.say(peer)
                        break
                    peer.sendall(b"+OK\r\n")
        except OSError:
            pass  # the replica has gone
        finally:
            self.asked += 1

    def __enter__(self) -> LyingMaster:
        return self

    def __exit__(self, *_: object) -> None:
        self._listening.close()
