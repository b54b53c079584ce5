"""How much the other end of a connection holds that its program has not read, if both ends are on this machine.

Data acknowledged by the peer's kernel has not been read yet. Over a unix socket our own kernel tells what has been
read; for TCP, Linux tells of every socket of this network namespace how much lies in it (sock_diag). Nothing is known
of a peer that is elsewhere, and nobody is asked for it again.
"""

from __future__ import annotations

import errno
import os
import socket
from struct import Struct

_SOCK_DIAG = 4  # NETLINK_SOCK_DIAG
_BY_FAMILY = 20  # SOCK_DIAG_BY_FAMILY, of the request and of its answer
_REQUEST = 1  # NLM_F_REQUEST
_ALL_STATES = 0xFFF
_NO_COOKIE = 0xFFFFFFFF

# nlmsghdr:         length u32 | type u16 | flags u16 | sequence u32 | sender u32
# inet_diag_req_v2: family u8 | protocol u8 | extensions u8 | padding u8 | states u32 | socket id
# inet_diag_sockid: port u16be | peer's port u16be | address 16 | peer's address 16 | interface u32 | cookie 2 u32
# inet_diag_msg:    family u8 | state u8 | timer u8 | retransmits u8 | socket id | expires u32 | unread u32 | more
_HEADER = Struct("=IHHII")
_QUERY = Struct("=BBBBI")
_PORTS = Struct("!HH")
_TAIL = Struct("=III")
_ERROR = Struct("=i")
_SOCKET_ID_BYTES = _PORTS.size + 2 * 16 + _TAIL.size
_UNREAD = Struct("=I")
_UNREAD_AT = _HEADER.size + 4 + _SOCKET_ID_BYTES + 4


class PeerSocket:
    """The other end of one connection."""

    def __init__(self, sock: socket.socket) -> None:
        self._query = _query(sock)
        self._was_seen = False

    def unread_bytes(self) -> int | None:
        """Return how much its program has not read of what its kernel has acknowledged; None if that is not known."""
        if not self._query:
            return None
        try:
            unread = _ask(self._query)
        except OSError:  # nobody here has this end, or it was reset; or the kernel does not tell
            if not self._was_seen:
                self._query = b""
            return None
        self._was_seen = True
        return unread


def _query(sock: socket.socket) -> bytes:
    """Empty where there is nobody to ask."""
    if sock.family not in (socket.AF_INET, socket.AF_INET6) or not hasattr(socket, "AF_NETLINK"):
        return b""
    try:
        own, peer = sock.getsockname(), sock.getpeername()
    except OSError:
        return b""
    ends = b"".join([socket.inet_pton(sock.family, end[0].partition("%")[0]).ljust(16, b"\0") for end in (peer, own)])
    socket_id = _PORTS.pack(peer[1], own[1]) + ends + _TAIL.pack(0, _NO_COOKIE, _NO_COOKIE)
    return _QUERY.pack(sock.family, socket.IPPROTO_TCP, 0, 0, _ALL_STATES) + socket_id


class _Asking:
    """This process's line to the kernel."""

    def __init__(self) -> None:
        self._pid = 0
        self._line: socket.socket | None = None
        self._sequence = 0

    def __call__(self, query: bytes) -> int:
        """Unread bytes of the socket that is meant. Raises OSError: there is none, or nobody can tell."""
        if self._line is None or self._pid != os.getpid():
            self._line = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _SOCK_DIAG)
            self._pid = os.getpid()
        self._sequence = self._sequence % 0xFFFFFFFF + 1
        length = _HEADER.size + len(query)
        self._line.send(_HEADER.pack(length, _BY_FAMILY, _REQUEST, self._sequence, 0) + query)
        while True:
            answer = self._line.recv(4096, socket.MSG_DONTWAIT)  # it is there when `send` returns
            _, kind, _, sequence, _ = _HEADER.unpack_from(answer)
            if sequence != self._sequence:
                continue
            if kind != _BY_FAMILY:
                number = -_ERROR.unpack_from(answer, _HEADER.size)[0]
                raise OSError(number or errno.EPROTO, os.strerror(number))
            return int(_UNREAD.unpack_from(answer, _UNREAD_AT)[0])


_ask = _Asking()
