"""A server that answers whoever connects with what a test wants: for those who are its clients."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable


class HostileServer:
    """Listens while it is entered; `answer` is called for each connection, in a thread."""

    def __init__(self, answer: Callable[[socket.socket], None]) -> None:
        self.met = 0
        self._answer = answer
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                peer, _ = self._listening.accept()
            except OSError:
                return
            self.met += 1
            threading.Thread(target=self._meet, args=(peer,), daemon=True).start()

    def _meet(self, peer: socket.socket) -> None:
        try:
            with peer:
                self._answer(peer)
        except OSError:
            pass  # whoever asked has heard enough

    def __enter__(self) -> HostileServer:
        return self

    def __exit__(self, *_: object) -> None:
        self._listening.close()


def endless(head: bytes, unit: bytes = b"x" * (1 << 20), most: int = 4096) -> Callable[[socket.socket], None]:
    """Say this, and then as many units as somebody takes (so many at the most: no test is to use up the memory)."""

    def answer(peer: socket.socket) -> None:
        peer.recv(1 << 16)
        peer.sendall(head)
        for _ in range(most):
            peer.sendall(unit)

    return answer
