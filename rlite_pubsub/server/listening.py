"""The addresses and the unix socket of a server, from the start, through CONFIG SET, to the end."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import socket
from pathlib import Path
from typing import TYPE_CHECKING

from rlite_pubsub.engine.doors import CannotListen, Doors
from rlite_pubsub.engine.settings.settings import SettingError
from rlite_pubsub.server.connection import Connection
from rlite_pubsub.server.connections import Connections
from rlite_pubsub.server.port_holders import in_use
from rlite_pubsub.server.sockets import is_loopback, spelled
from rlite_pubsub.server.turns import Turns
from rlite_pubsub.storage.log.home import is_there

if TYPE_CHECKING:  # only who is asked for TLS loads it
    import ssl


class StartupError(Exception):
    """The server cannot start; the message says why, in redis-server's words where it has some."""

    port: int | None = None
    """The port that could not be listened on."""

    def log(self) -> None:
        """Say it, and the line by which Redis's own tests see that they have to take another port."""
        log.warning("%s", self)
        if self.port is not None:
            log.warning("Failed listening on port %d (TCP), aborting.", self.port)


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
        self,
        turns: Turns,
        admission: Admission,
        sock: socket.socket,
        path: str | None = None,
        *,
        speaks_tls: bool = False,
        owns_file: bool = False,
    ) -> None:
        self._turns = turns
        self._admission = admission
        self._path = path
        self._owns_file = owns_file
        self.speaks_tls = speaks_tls
        self.socket = sock
        sock.setblocking(False)
        turns.watch(sock.fileno(), self)

    @property
    def is_open(self) -> bool:
        """True if it still listens."""
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
        """Accept the waiting connections."""
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
            self._admission.welcome(sock, address, self._path, self.speaks_tls)

    def on_failure(self) -> None:
        """The next one may succeed."""

    def close(self) -> None:
        """Accept no longer; remove the socket's file, if it is ours."""
        self._turns.unwatch(self.socket.fileno())
        self.socket.close()
        if self._path is not None and self._owns_file:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._path)


class Admission:
    """Decides which connections are accepted."""

    def __init__(self, connections: Connections, private: str | None) -> None:
        self._connections = connections
        self._private = private
        self._engine = connections.engine
        self._spare_fd = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        self._context: ssl.SSLContext | None = None

    def secure_by(self, context: ssl.SSLContext) -> None:
        """Later TLS connections are served in this context."""
        self._context = context

    def welcome(self, sock: socket.socket, address: object, path: str | None, speaks_tls: bool) -> None:
        """Accept a client that has come through this unix socket, or from this address."""
        engine, stats, settings = self._engine, self._engine.stats, self._engine.settings
        if path is not None and path == self._private:
            self._welcome_fellow(sock, path)
            return
        stats.connections_received += 1
        if len(engine.sessions) >= settings["maxclients"]:
            stats.rejected_connections += 1
            self._turn_away(sock, b"" if speaks_tls else _MAX_CLIENTS)  # nothing can be said before a handshake
            return
        sock.setblocking(False)
        refusal: bytes | None = None
        if path is None:
            assert isinstance(address, tuple)
            host, port = str(address[0]), int(address[1])
            if not is_loopback(host) and settings["protected-mode"] and engine.users.default.no_password:
                stats.rejected_connections += 1
                refusal = _DENIED
                if not speaks_tls:
                    self._turn_away(sock, refusal)
                    return
            _tune(sock, settings["tcp-keepalive"])
            peer = spelled(host, port)
        else:
            peer = f"{path}:0"
        connection = self._secured(sock, peer, refusal) if speaks_tls else Connection(self._connections, sock, peer)
        engine.sessions[connection.id] = connection
        self._connections.turns.watch(connection.fd, connection)
        connection.read_along()

    def _welcome_fellow(self, sock: socket.socket, path: str) -> None:
        """Accept another worker, which asks for a client that may: nobody else can come through its folder."""
        sock.setblocking(False)
        connection = Connection(self._connections, sock, f"{path}:0")
        connection.authenticated = connection.logged_in = True
        connection.restrict(None)
        self._engine.sessions[connection.id] = connection
        self._connections.turns.watch(connection.fd, connection)
        connection.read_along()

    def _secured(self, sock: socket.socket, peer: str, refusal: bytes | None) -> Connection:
        from rlite_pubsub.server.secure_connection import SecureConnection

        assert self._context is not None
        return SecureConnection(self._connections, sock, peer, self._context, refusal)

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


def listen_unix(path: str, mode: int | None, backlog: int) -> socket.socket:
    """A listening unix socket. As in Redis, a file that lies there is replaced, and so is what a dead server left; a
    living server's socket is not, nor a file of a store."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        if Path(path).is_socket():
            if _answers(path):
                raise StartupError(f"Failed opening Unix socket: bind: Address already in use: {path}")
            os.unlink(path)
        elif os.path.islink(path) or Path(path).is_file():
            if _is_of_a_store(Path(path)):
                raise StartupError(f"Failed opening Unix socket: {path} is a file of a store")
            log.warning("The file %s is replaced by the Unix socket.", path)
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


def _is_of_a_store(path: Path) -> bool:
    """Return whether it lies in a store's folder, or in one below."""
    return any(map(is_there, (path.parent, *path.absolute().parent.parents[:2])))


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
_BAD_TLS = "Unable to update TLS configuration. Check server logs."


class Listening:
    """All listeners of one server."""

    def __init__(self, connections: Connections, doors: Doors, private: str | None = None) -> None:
        """`private`: the path of the unix socket through which other workers of this server come."""
        self._turns = connections.turns
        self._doors = doors
        self._private = private
        self._admission = Admission(connections, private)
        self._settings = connections.engine.settings
        self._users = connections.engine.users
        self._listeners: list[Listener] = []

    @property
    def port(self) -> int:
        """The TCP port, 0 if there is none."""
        return self._port(speaks_tls=False)

    @property
    def tls_port(self) -> int:
        """The TCP port with TLS, 0 if there is none."""
        return self._port(speaks_tls=True)

    @property
    def ports(self) -> str:
        """The TCP ports, for the log."""
        named = [str(self.port)] if self.port else []
        return " and ".join([*named, *([f"{self.tls_port} (TLS)"] if self.tls_port else [])])

    def _port(self, speaks_tls: bool) -> int:
        return next((each.port for each in self._listeners if each.port and each.speaks_tls == speaks_tls), 0)

    def start(self, any_port: bool) -> None:
        """Listen as the settings say; with `any_port` on a free port, which they then name. Raises StartupError."""
        settings = self._settings
        port, tls_port = settings["port"], settings["tls-port"]
        if tls_port:
            self._secure_at_start()
        if port or any_port:
            self._listeners += self._tcp(settings["bind"], 0 if any_port else port)
        if tls_port:
            self._listeners += self._tcp(settings["bind"], tls_port, speaks_tls=True)
        path = settings["unixsocket"].decode()
        if path:
            handed = self._doors.unix(path)
            sock = handed or listen_unix(path, settings["unixsocketperm"], settings["tcp-backlog"])
            self._listeners.append(Listener(self._turns, self._admission, sock, path, owns_file=handed is None))
        if self._private is not None:
            private = self._doors.unix(self._private)
            assert private is not None
            self._listeners.append(Listener(self._turns, self._admission, private, self._private))
        if any_port:
            settings.set("port", [b"%d" % self.port])
        if not self._listeners:
            raise StartupError("Configured to not listen anywhere, exiting.")
        self._warn_of_openness()

    def stop(self) -> None:
        """Accept no longer."""
        self._close(list(self._listeners))
        self._admission.close()

    def _warn_of_openness(self) -> None:
        """Warns once if others on the network can come in, or listen."""
        beyond = {each.host for each in self._listeners if each.port and not is_loopback(each.host)}
        if not beyond:
            return
        plain = any(each.port and not each.speaks_tls and each.host in beyond for each in self._listeners)
        lacks = [
            *(["without a password (requirepass)"] if self._users.default.no_password else []),
            *(["without TLS (tls-port)"] if plain else []),
        ]
        if lacks:
            hosts = ", ".join(sorted(beyond))
            log.warning("This server listens beyond this machine (%s) %s.", hosts, " and ".join(lacks))

    # -- as CONFIG SET says

    def follow_port(self, _: int) -> None:
        """CONFIG SET port. Raises SettingError."""
        self._move(_BAD_PORT, "port", speaks_tls=False)

    def follow_tls_port(self, _: int) -> None:
        """CONFIG SET tls-port. Raises SettingError."""
        if self._settings["tls-port"]:
            self._secure()
        self._move(_BAD_PORT, "tls-port", speaks_tls=True)

    def follow_bind(self, _: tuple[bytes, ...]) -> None:
        """CONFIG SET bind. Raises SettingError."""
        self._move(_BAD_ADDRESS, "port", speaks_tls=False)
        self._move(_BAD_ADDRESS, "tls-port", speaks_tls=True)

    def follow_tls(self, _: object) -> None:
        """CONFIG SET of what a context is made of. Raises SettingError."""
        if self._settings["tls-port"]:
            self._secure()

    def _secure(self) -> None:
        from rlite_pubsub.engine.settings.tls import TlsError, make_context

        try:
            self._admission.secure_by(make_context(self._settings, self._settings["tls-auth-clients"]))
        except TlsError as failure:
            raise SettingError(_BAD_TLS) from failure

    def _secure_at_start(self) -> None:
        try:
            self._secure()
        except SettingError as failure:
            raise StartupError(f"Failed to configure TLS: {failure.__cause__}") from failure

    def _move(self, refusal: str, directive: str, *, speaks_tls: bool) -> None:
        """The new sockets first, and then the old ones are closed."""
        if self._doors.are_shared:
            raise SettingError("can't be changed while workers share the port")
        port = self._settings[directive]
        old = [listener for listener in self._listeners if listener.port and listener.speaks_tls == speaks_tls]
        same_port = [listener.host for listener in old if listener.port == port]
        if same_port:  # on other addresses: it must be let go first
            self._close(old)
        try:
            new = self._tcp(self._settings["bind"], port, speaks_tls=speaks_tls) if port else []
        except StartupError as failure:
            log.warning("%s", failure)
            before = tuple(host.encode() for host in same_port)
            self._listeners += self._tcp(before, port, speaks_tls=speaks_tls)
            raise SettingError(refusal) from failure
        self._close([listener for listener in old if listener.is_open])
        self._listeners += new

    def _tcp(self, addresses: tuple[bytes, ...], port: int, *, speaks_tls: bool = False) -> list[Listener]:
        """Listen. Raises StartupError."""
        try:
            sockets = self._doors.tcp(addresses, port, self._settings["tcp-backlog"])
        except CannotListen as failure:
            where = f"{failure.host}:{failure.port}"
            reason = failure.strerror or str(failure)
            if failure.errno == errno.EADDRINUSE:
                reason = in_use(failure.port, "tls-port" if speaks_tls else "port", reason)
            refusal = StartupError(f"Could not create server TCP listening socket {where}: bind: {reason}")
            refusal.port = failure.port
            raise refusal from failure
        return [Listener(self._turns, self._admission, sock, speaks_tls=speaks_tls) for sock in sockets]

    def _close(self, listeners: list[Listener]) -> None:
        for listener in listeners:
            listener.close()
            self._listeners.remove(listener)
