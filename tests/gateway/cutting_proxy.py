"""A proxy that cuts connections at random, in the middle of a line as soon as behind one."""

from __future__ import annotations

import contextlib
import random
import socket
import threading
from types import TracebackType

from patience import PATIENCE_S


class CuttingProxy:
    """Each connection is cut after at most so many bytes from the server."""

    def __init__(self, port: int, seed: int, most_bytes: int) -> None:
        self._port = port
        self._dice = random.Random(seed)
        self._most_bytes = most_bytes
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listening.getsockname()[1])
        self.cuts = 0
        self._under_way: tuple[socket.socket, ...] = ()
        self._thread = threading.Thread(target=self._accept, daemon=True)

    def __enter__(self) -> CuttingProxy:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for each in (self._listening, *self._under_way):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self._thread.join(PATIENCE_S)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                with client, socket.create_connection(("127.0.0.1", self._port)) as server:
                    self._under_way = (client, server)
                    self._serve(client, server)

    def _serve(self, client: socket.socket, server: socket.socket) -> None:
        """One connection after the other, as a reader that comes back makes them."""
        left = self._dice.randint(1, self._most_bytes)
        with contextlib.suppress(OSError):
            server.sendall(client.recv(65536))
            while left:
                data = server.recv(min(left, self._dice.randint(1, 4096)))
                if not data:
                    return
                client.sendall(data)
                left -= len(data)
        self.cuts += 1
