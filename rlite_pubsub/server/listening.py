"""Where a server listens: its addresses and its unix socket, from the start, by CONFIG SET, to the end."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import socket
from pathlib import Path

from rlite_pubsub.engine.settings.settings import SettingError
from rlite_pubsub.server.connection import Connection
from rlite_pubsub.server.connections import Connections
from rlite_pubsub.server.sockets import is_loopback, spelled
from rlite_pubsub.server.turns import Turns


class StartupError(Exception):
    """The server cannot start; the message says why, in redis-server's words where it has some."""


log = logging.getLogger("rlite_pubsub")

MAX_ACCEPTS_PER_TURN = 1000

_MAX_CLIENTS = b"-ERR max number of clients reached\r\n"
_DENIED = (
    b"-DENIED Redis is running in protected mode because protected mode is enabled and no password is set "
    b"for the default user. In this mode connections are only accepted from the loopback interface. If you"
    b" want to connect from external computers to Redis you may adopt one of the following solutions: 1) "
    b"Just disable protected mode sending the command 'CONFIG SET protected-mode no' from the loopback "
    b"interface by connecting to Redis from the same host the server is running, however MAKE SURE Redis "
    b"is not publicly accessible from internet if you do so. Use CONFIG REWRITE to make this change "
    b"permanent. 2) Alternatively you can just disable the protected mode by editing the Redis "
    b"configuration file, and setting the protected mode option to 'no', and then restarting the server. "
    b"3) If you started the server manually just for testing, restart it with the '--protected-mode no' "
    b"option. 4) Setup a an authentication password for the default user. NOTE: You only need to do one of"
    b" the above things in order for the server to start accepting connections from the outside.\r\n"
)


class Listener:
    """One listening socket."""

    def __init__(
        self, turns: Turns, admission: Admission, sock: socket.socket, path: str | None = None
    ) -> None:
        self._turns = turns
        self._admission = admission
        self._path = path
        self.socket = sock
        sock.setblocking(False)
        turns.watch(sock.fileno(), self)

    @property
    def is_open(self) -> bool:
        """Whether it still listens."""
        return self.socket.fileno() >= 0

    @property
    def port(self) -> int:
        """The TCP port; 0 for a unix socket, or once it is closed."""
        return int(self.socket.getsockname()[1]) if self._path is None and self.is_open else 0

    @property
    def host(self) -> str:
        """The address of a TCP socket that listens."""
        return str(self.socket.getsockname()[0])

    def on_ready(self, events: int) -> None:
        """Accept whoever waits."""
        for _ in range(MAX_ACCEPTS_PER_TURN):
            try:
                sock, address = self.socket.accept()
            except (BlockingIOError, InterruptedError):
                return
            except OSError as failure:
                if failure.errno in (errno.EMFILE, errno.ENFILE):
                    self._admission.shed(self.socket, failure)
                else:
                    log.warning("Accepting client connection: %s", failure.strerror)
                return
            self._admission.welcome(sock, address, self._path)

    def on_failure(self) -> None:
        """The next one may succeed."""

    def close(self) -> None:
        """Accept no longer; remove the socket's file."""
        self._turns.unwatch(self.socket.fileno())
        self.socket.close()
        if self._path is not None:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._path)


class Admission:
    """Who is let in, and who is turned away."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._engine = connections.engine
        self._spare_fd = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)

    def welcome(self, sock: socket.socket, address: object, path: str | None) -> None:
        """Somebody has come: through this unix socket, or from this address."""
        engine, stats, settings = self._engine, self._engine.stats, self._engine.settings
        stats.connections_received += 1
        if len(engine.sessions) >= settings["maxclients"]:
            stats.rejected_connections += 1
            self._turn_away(sock, _MAX_CLIENTS)
            return
        sock.setblocking(False)
        if path is None:
            assert isinstance(address, tuple)
            host, port = str(address[0]), int(address[1])
            if not is_loopback(host) and settings["protected-mode"] and engine.users.default.no_password:
                stats.rejected_connections += 1
                self._turn_away(sock, _DENIED)
                return
            _tune(sock, settings["tcp-keepalive"])
            peer = spelled(host, port)
        else:
            peer = f"{path}:0"
        connection = Connection(self._connections, sock, peer)
        engine.sessions[connection.id] = connection
        self._connections.turns.watch(connection.fd, connection)

    @staticmethod
    def _turn_away(sock: socket.socket, text: bytes) -> None:
        with contextlib.suppress(OSError):
            sock.send(text)
        sock.close()

    def shed(self, listening: socket.socket, failure: OSError) -> None:
        """Out of descriptors: accept with the spare one and close: the peer knows, and the loop does not spin."""
        self.close()
        with contextlib.suppress(OSError):
            sock, _ = listening.accept()
            sock.close()
            self._engine.stats.rejected_connections += 1
        log.warning("Accepting client connection: %s", failure.strerror)  # now, for the log needs a descriptor too
        with contextlib.suppress(OSError):  # another thread was quicker
            self._spare_fd = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)

    def close(self) -> None:
        """Let go of the spare descriptor."""
        if self._spare_fd >= 0:
            os.close(self._spare_fd)
            self._spare_fd = -1


def listen_tcp(host: str, port: int, backlog: int) -> socket.socket:
    """A listening TCP socket. Raises OSError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        sock.bind((host, port))
        sock.listen(backlog)
    except OSError:
        sock.close()
        raise
    return sock


def listen_unix(path: str, mode: int | None, backlog: int) -> socket.socket:
    """A listening unix socket. A file that a dead server left is replaced; a living server's is not."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        if Path(path).is_socket():
            if _answers(path):
                raise StartupError(f"Failed opening Unix socket: bind: Address already in use: {path}")
            os.unlink(path)
        sock.bind(path)
        if mode:
            os.chmod(path, mode)
        sock.listen(backlog)
    except OSError as failure:
        sock.close()
        raise StartupError(f"Failed opening Unix socket: bind: {failure.strerror or failure}: {path}") from failure
    except StartupError:
        sock.close()
        raise
    return sock


def _answers(path: str) -> bool:
    """Doubt is not death: only a refused connection proves that nobody listens."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)  # a living server's queue may be full
        return probe.connect_ex(path) != errno.ECONNREFUSED


def _tune(sock: socket.socket, keepalive_seconds: int) -> None:
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if keepalive_seconds:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if hasattr(socket, "TCP_KEEPIDLE"):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, keepalive_seconds)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, max(keepalive_seconds // 3, 1))
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3)


_BAD_PORT = "Unable to listen on this port. Check server logs."
_BAD_ADDRESS = "Failed to bind to specified addresses."


class Listening:
    """All listeners of one server."""

    def __init__(self, connections: Connections) -> None:
        self._turns = connections.turns
        self._admission = Admission(connections)
        self._settings = connections.engine.settings
        self._listeners: list[Listener] = []

    @property
    def port(self) -> int:
        """The TCP port, 0 if there is none."""
        return next((listener.port for listener in self._listeners if listener.port), 0)

    def start(self, any_port: bool) -> None:
        """Listen as the settings say; with `any_port` on a free port, which they then name. Raises StartupError."""
        settings = self._settings
        port = settings["port"]
        if port or any_port:
            self._listeners += self._tcp(settings["bind"], 0 if any_port else port)
        path = settings["unixsocket"].decode()
        if path:
            sock = listen_unix(path, settings["unixsocketperm"], settings["tcp-backlog"])
            self._listeners.append(Listener(self._turns, self._admission, sock, path))
        if any_port:
            settings.set("port", [b"%d" % self.port])
        if not self._listeners:
            raise StartupError("Configured to not listen anywhere, exiting.")

    def stop(self) -> None:
        """Accept no longer."""
        self._close(list(self._listeners))
        self._admission.close()

    def follow_port(self, _: int) -> None:
        """CONFIG SET port. Raises SettingError."""
        self._move(_BAD_PORT)

    def follow_bind(self, _: tuple[bytes, ...]) -> None:
        """CONFIG SET bind. Raises SettingError."""
        self._move(_BAD_ADDRESS)

    def _move(self, refusal: str) -> None:
        """The new sockets first, and then the old ones are closed."""
        port = self._settings["port"]
        old = [listener for listener in self._listeners if listener.port]
        same_port = [listener.host for listener in old if listener.port == port]
        if same_port:  # on other addresses: it must be let go first
            self._close(old)
        try:
            new = self._tcp(self._settings["bind"], port) if port else []
        except StartupError as failure:
            log.warning("%s", failure)
            self._listeners += self._tcp(tuple(host.encode() for host in same_port), port)
            raise SettingError(refusal) from failure
        self._close([listener for listener in old if listener.is_open])
        self._listeners += new

    def _tcp(self, addresses: tuple[bytes, ...], port: int) -> list[Listener]:
        """Listen on every address; one with a leading minus may be missing on this machine. Raises StartupError."""
        sockets: list[socket.socket] = []
        for word in addresses:
            address = word.decode()
            host = address.removeprefix("-")
            host = {"*": "0.0.0.0", "::*": "::"}.get(host, host)
            try:
                sockets.append(listen_tcp(host, port, self._settings["tcp-backlog"]))
            except OSError as failure:
                text = f"Could not create server TCP listening socket {host}:{port}: bind: {failure.strerror}"
                if address.startswith("-") and failure.errno != errno.EADDRINUSE:
                    log.debug(text)
                    continue
                for sock in sockets:
                    sock.close()
                raise StartupError(text) from failure
            port = port or sockets[0].getsockname()[1]
        return [Listener(self._turns, self._admission, sock) for sock in sockets]

    def _close(self, listeners: list[Listener]) -> None:
        for listener in listeners:
            listener.close()
            self._listeners.remove(listener)
