"""Where a process listens: on sockets that it binds itself, or on those it was given at its start.

systemd (socket activation) and a server's own supervisor (`workers`) hand over listening sockets as sd_listen_fds
describes it: descriptors from 3 on, LISTEN_FDS of them, for the process LISTEN_PID. Such a socket replaces a bind of
the configuration with the same port or the same path. The process that handed it over keeps it, too: clients that
connect while nobody serves wait in its queue, and the file of a unix socket is not ours to remove.
"""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import MutableMapping, Sequence

FIRST_HANDED = 3
_VARIABLES = ("LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES")


class CannotListen(OSError):
    """The process cannot listen on an address."""

    def __init__(self, host: str, port: int, failure: OSError) -> None:
        super().__init__(failure.errno, failure.strerror)
        self.host = host
        self.port = port


class Doors:
    """The sockets that a process listens on."""

    def __init__(self, handed: Sequence[socket.socket] = (), *, are_shared: bool = False) -> None:
        """`are_shared`: other workers of this server listen on the same sockets, so this one cannot move by itself."""
        self._handed = list(handed)
        self.are_shared = are_shared

    @property
    def left(self) -> list[str]:
        """The addresses of sockets that were handed over and that nobody has asked for."""
        return [_spelled(sock) for sock in self._handed]

    def tcp(self, addresses: Sequence[bytes], port: int, backlog: int) -> list[socket.socket]:
        """Return sockets that listen on this port: those handed over, else one for every address. An address with a
        leading minus may be missing on this machine. With port 0 the system chooses one, the same for all. Raises
        CannotListen."""
        handed = [sock for sock in self._handed if port and _port(sock) == port]
        for sock in handed:
            self._handed.remove(sock)
        return handed or _bound(addresses, port, backlog)

    def unix(self, path: str) -> socket.socket | None:
        """Return the socket that was handed over for this path, if there is one."""
        for sock in self._handed:
            if sock.family == socket.AF_UNIX and os.path.abspath(_name(sock)) == os.path.abspath(path):
                self._handed.remove(sock)
                return sock
        return None


def handed_over(environment: MutableMapping[str, str], pid: int) -> list[socket.socket]:
    """Return the sockets that this process was started with, and remove them from the environment, so that its children
    do not claim them. Any other descriptor is left as it is."""
    said = {name: environment.pop(name, "") for name in _VARIABLES}
    if said["LISTEN_PID"] != str(pid) or not said["LISTEN_FDS"].isdecimal():
        return []
    found = []
    for descriptor in range(FIRST_HANDED, FIRST_HANDED + int(said["LISTEN_FDS"])):
        try:
            os.set_inheritable(descriptor, False)
            sock = socket.socket(fileno=descriptor)
        except OSError:  # not a socket
            continue
        if sock.type == socket.SOCK_STREAM and _listens(sock):
            found.append(sock)
        else:
            sock.detach()
    return found


def listen_tcp(host: str, port: int, backlog: int, *, is_shared: bool = False) -> socket.socket:
    """Return a listening TCP socket. `is_shared`: others may listen on its port, too, and get their share of the
    connections. Raises OSError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if is_shared:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        sock.bind((host, port))
        sock.listen(backlog)
        sock.setblocking(False)
    except OSError:
        sock.close()
        raise
    return sock


def hosts(addresses: Sequence[bytes]) -> list[tuple[str, bool]]:
    """Return each address in the form to bind, and whether it may be missing."""
    names = {"*": "0.0.0.0", "::*": "::"}
    words = [address.decode() for address in addresses]
    return [(names.get(word.removeprefix("-"), word.removeprefix("-")), word.startswith("-")) for word in words]


def _bound(addresses: Sequence[bytes], port: int, backlog: int) -> list[socket.socket]:
    sockets: list[socket.socket] = []
    for host, may_be_missing in hosts(addresses):
        try:
            sockets.append(listen_tcp(host, port, backlog))
        except OSError as failure:
            if may_be_missing and failure.errno != errno.EADDRINUSE:
                continue
            for sock in sockets:
                sock.close()
            raise CannotListen(host, port, failure) from failure
        port = port or _port(sockets[0])
    return sockets


def _listens(sock: socket.socket) -> bool:
    try:
        return bool(sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN))
    except OSError:  # macOS does not tell
        return True


def _port(sock: socket.socket) -> int:
    return int(sock.getsockname()[1]) if sock.family in (socket.AF_INET, socket.AF_INET6) else 0


def _name(sock: socket.socket) -> str:
    name = sock.getsockname()
    return os.fsdecode(name) if isinstance(name, (str, bytes)) else ""


def _spelled(sock: socket.socket) -> str:
    return f"port {_port(sock)}" if _port(sock) else f"unix socket {_name(sock)}"
