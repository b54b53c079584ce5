"""The sockets of a server of several processes. The supervisor binds them before there are workers, and keeps them:
what connects while a worker is being replaced waits in its queue.

Each worker has a TCP socket of its own for each address (SO_REUSEPORT: the kernel spreads connections over them by
their addresses), and a private unix socket for the other workers (engine/workers/fellows.py). A unix socket of the
users' can't be shared like that, and one that systemd has handed over is one: there all workers take connections from
one queue.
"""

from __future__ import annotations

import errno
import os
import shutil
import socket
import tempfile
from collections.abc import Sequence

from rlite_pubsub.engine.doors import CannotListen, hosts, listen_tcp
from rlite_pubsub.engine.settings.settings import Settings
from rlite_pubsub.server.listening import StartupError, listen_unix

_PORTS = (("port", "bind"), ("tls-port", "bind"), ("http-port", "http-bind"), ("http-tls-port", "http-bind"))


class Sockets:
    """The private sockets of all workers of one server."""

    def __init__(self, settings: Settings, count: int, handed: Sequence[socket.socket]) -> None:
        """Raises StartupError."""
        backlog = settings["tcp-backlog"]
        self._common = list(handed)
        self._own: list[list[socket.socket]] = [[] for _ in range(count)]
        self._unix_path = ""
        self.folder = tempfile.mkdtemp(prefix="rlite-workers-")
        self.paths = [os.path.join(self.folder, str(number)) for number in range(count)]
        try:
            taken = {_port(sock) for sock in handed}
            for name, addresses in _PORTS:
                if settings[name] and settings[name] not in taken:
                    self._listen(settings[addresses], settings[name], backlog)
            path = settings["unixsocket"].decode()
            if path and not any(sock.family == socket.AF_UNIX for sock in handed):
                self._common.append(listen_unix(path, settings["unixsocketperm"], backlog))
                self._unix_path = path
            if not self._common and not any(self._own):
                raise StartupError("Configured to not listen anywhere, exiting.")
            for number, private in enumerate(self.paths):
                self._own[number].append(listen_unix(private, 0o600, backlog))
        except BaseException:
            self.close()
            raise

    def of(self, number: int) -> list[socket.socket]:
        """Return the sockets of one worker, in its process: the others' are closed here."""
        for other, sockets in enumerate(self._own):
            if other != number:
                for sock in sockets:
                    sock.close()
        return [*self._own[number], *self._common]

    def close(self) -> None:
        """Close the sockets, in the supervisor: nobody serves any more."""
        for sock in [*self._common, *(sock for sockets in self._own for sock in sockets)]:
            sock.close()
        if self._unix_path and os.path.exists(self._unix_path):
            os.unlink(self._unix_path)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _listen(self, addresses: Sequence[bytes], port: int, backlog: int) -> None:
        for host, may_be_missing in hosts(addresses):
            try:
                listen_tcp(host, port, backlog).close()  # nobody else listens there, of this user's neither
                for sockets in self._own:
                    sockets.append(listen_tcp(host, port, backlog, is_shared=True))
            except OSError as failure:
                if may_be_missing and failure.errno != errno.EADDRINUSE:
                    continue
                refusal = StartupError(refused(CannotListen(host, port, failure)))
                refusal.port = port
                raise refusal from failure


def refused(failure: CannotListen) -> str:
    """Return the message in redis-server's words."""
    return f"Could not create server TCP listening socket {failure.host}:{failure.port}: bind: {failure.strerror}"


def _port(sock: socket.socket) -> int:
    return int(sock.getsockname()[1]) if sock.family != socket.AF_UNIX else 0
