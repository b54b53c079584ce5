"""A connection to a master, as its replicas have one: what it keeps, whole, and then every change (PSYNC).

    PING | AUTH | REPLCONF listening-port, capa | PSYNC id offset
    +FULLRESYNC id offset, then an RDB file: $size and this many bytes, or $EOF:mark, and behind the file the mark again
    +CONTINUE [id], where the master still has what comes behind that offset
    then requests (appended.py), each of which moves the offset by its bytes

It waits for its peer, so it belongs to a thread of its own. Raises OSError where the peer goes or says nothing for too
long, and Refused where it says no.
"""

from __future__ import annotations

import re
import select
import socket
import ssl
from collections.abc import Callable
from time import monotonic
from typing import Any, NamedTuple
from urllib.parse import urlsplit, urlunsplit

from rlite_pubsub.protocol.encoder import bulk_array
from rlite_pubsub.replication.incoming import Incoming
from rlite_pubsub.replication.secure_stream import SecureStream

_READ_AT_ONCE = 1 << 16
_MARK_BYTES = 40
_LONGEST_LINE = 1 << 16
_MOST_BULK_BYTES = 1 << 30
_HISTORY = re.compile(rb"[0-9a-zA-Z]{40}")
_OFFSET = re.compile(rb"[0-9]{1,18}")


class MasterRefused(Exception):
    """The master refused; the text is what it said."""


class MasterAddress(NamedTuple):
    """Where a master is, and who asks."""

    host: str
    port: int
    path: str = ""
    """Of its unix socket, in the place of host and port."""
    username: bytes = b""
    password: bytes = b""
    context: ssl.SSLContext | None = None
    """For TLS."""
    source: str = ""
    """The address of ours from which to connect; empty: whichever the system picks."""

    def __str__(self) -> str:
        if self.path:
            return self.path
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def address_of(url: str) -> MasterAddress:
    """The address in a redis://, rediss:// or unix:// URL, as redis-py reads it. Raises ValueError."""
    from redis.connection import SSLConnection, parse_url

    parts = urlsplit(url)
    known: dict[str, Any] = dict(parse_url(urlunsplit(parts._replace(fragment=""))))  # type: ignore[no-untyped-call]
    context = None
    if known.pop("connection_class", None) is SSLConnection:
        context = ssl.create_default_context(cafile=known.get("ssl_ca_certs"))
        if known.get("ssl_cert_reqs") == "none":
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if known.get("ssl_certfile"):
            context.load_cert_chain(known["ssl_certfile"], known.get("ssl_keyfile"))
    return MasterAddress(
        known.get("host") or "localhost",
        int(known.get("port") or 6379),
        known.get("path") or "",
        (known.get("username") or "").encode(),
        (known.get("password") or "").encode(),
        context,
    )


class MasterPosition(NamedTuple):
    """A position in a master's history."""

    history: bytes
    """Its replication id, of 40 letters."""
    offset: int


class MasterLink:
    """One connection to a master."""

    def __init__(self, address: MasterAddress, timeout_s: float) -> None:
        """`timeout_s`: the longest that the master may say nothing."""
        self._socket = _connect(address, timeout_s)
        self.peer, self.own = _ends(self._socket)
        """The master's end, and ours: `ip:port`, or a path."""
        self.descriptor = self._socket.fileno()
        self.incoming = Incoming(self._receive)
        """What the master says: behind the answer to `follow` and the file, requests."""
        self._timeout_s = timeout_s
        self._until: float | None = None  # when what is awaited must be there as a whole
        self._size: int | None = None  # of the file, if it is known
        self._mark = b""

    def _receive(self) -> bytes:
        if self._until is not None and monotonic() > self._until:
            raise TimeoutError("the master takes too long to answer")
        return self._socket.recv(_READ_AT_ONCE)

    # -- talking

    def ask(self, *words: bytes) -> bytes:
        """Return the answer, a line without its mark. Raises MasterRefused."""
        self.send(*words)
        line = self._line()
        if line[:1] == b"-":
            raise MasterRefused(line[1:].decode(errors="backslashreplace"))
        return line[1:]

    def ask_bulk(self, *words: bytes) -> bytes:
        """Return the answer, a bulk string. Raises MasterRefused."""
        digits = self.ask(*words)
        if _OFFSET.fullmatch(digits) is None or int(digits) > _MOST_BULK_BYTES:
            raise ConnectionError(f"the other side answers {digits[:40]!r} instead of data")
        size = int(digits)
        data = self._within_the_time(lambda: self.incoming.read(size + 2))
        if len(data) < size + 2:
            raise ConnectionError("the master has closed the connection")
        return data[:size]

    def _within_the_time(self, read: Callable[[], bytes]) -> bytes:
        """What it reads, if it is there in the time that the master may say nothing: each byte of it could come just in
        time. Raises OSError."""
        self._until = monotonic() + self._timeout_s
        try:
            return read()
        finally:
            self._until = None

    def send(self, *words: bytes) -> None:
        """Say something that is not answered."""
        self._socket.sendall(bulk_array(words))

    def _line(self) -> bytes:
        """The next line that is not empty: a master that prepares a file sends empty ones."""
        while True:
            line = self._within_the_time(lambda: self.incoming.readline(_LONGEST_LINE))
            if not line.endswith(b"\n"):
                raise ConnectionError("the master has closed the connection")
            if line.strip():
                return line.rstrip(b"\r\n")

    def introduce(self, address: MasterAddress, port: int) -> None:
        """Log in, and say who asks: `port` is where we listen. Raises Refused."""
        if address.password:
            try:
                self.ask(b"AUTH", *((address.username,) if address.username else ()), address.password)
            except MasterRefused as refusal:
                raise MasterRefused(f"Unable to AUTH to MASTER: {refusal}") from None
        self.ask(b"PING")
        try:
            self.ask(b"REPLCONF", b"listening-port", b"%d" % port)
            self.ask(b"REPLCONF", b"capa", b"eof", b"capa", b"psync2")
        except MasterRefused:
            pass  # an old master does without

    def follow(self, known: MasterPosition | None) -> tuple[MasterPosition, bool]:
        """Ask for all that came behind a position. Where the stream goes on from; True: a file comes first, which
        stands for all before. Raises Refused."""
        if known is None:
            words = self.ask(b"PSYNC", b"?", b"-1").split()
        else:
            words = self.ask(b"PSYNC", known.history, b"%d" % (known.offset + 1)).split()
        match words:
            case [b"FULLRESYNC", history, offset] if _is_history(history) and _OFFSET.fullmatch(offset):
                return MasterPosition(history, int(offset)), True
            case [b"CONTINUE", history] if known is not None and _is_history(history):
                return MasterPosition(history, known.offset), False
            case [b"CONTINUE"] if known is not None:
                return known, False
        raise MasterRefused(f"it answers PSYNC with {b' '.join(words)[:80]!r}")

    # -- the file

    def begin_file(self) -> int | None:
        """The RDB file comes next; returns its size, if the master says that. Raises Refused."""
        head = self._line()
        if head[:1] == b"-":
            raise MasterRefused(head[1:].decode(errors="backslashreplace"))
        self._size, self._mark = None, b""
        if head.startswith(b"$EOF:") and len(head) == 5 + _MARK_BYTES:
            self._mark = head[5:]
        elif head[:1] == b"$" and _OFFSET.fullmatch(head[1:]):
            self._size = int(head[1:])
        else:
            raise MasterRefused(f"it sends {head[:40]!r} instead of a file")
        return self._size

    def end_file(self, size: int) -> None:
        """The file was read: this many bytes. Raises Refused where it does not end there."""
        if self._size is not None:
            if self._size != size:
                raise MasterRefused("it sends a file that is not of the size it announced")
        elif self.incoming.read(_MARK_BYTES) != self._mark:
            raise MasterRefused("it sends a file that does not end where it should")

    @property
    def has_more(self) -> bool:
        """Whether the master has said more, so that nobody would wait for it."""
        if self.incoming.has_more:
            return True
        if isinstance(self._socket, SecureStream) and self._socket.pending:
            return True
        poll = select.poll()  # which takes a descriptor of any number
        poll.register(self._socket.fileno(), select.POLLIN)
        return bool(poll.poll(0))

    def cut(self) -> None:
        """End it; a reader in another thread meets an OSError, or the end, and closes it."""
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # it has gone already

    def close(self) -> None:
        """Close it; a reader in another thread meets an OSError, or the end."""
        self.cut()
        self._socket.close()


def _is_history(word: bytes) -> bool:
    return _HISTORY.fullmatch(word) is not None


def _ends(connected: socket.socket | SecureStream) -> tuple[str, str]:
    """The peer's end and ours. Raises OSError."""
    peer, own = (
        str(MasterAddress(*name[:2])) if isinstance(name, tuple) else str(name)
        for name in (connected.getpeername(), connected.getsockname())
    )
    return peer, own


def _connect(address: MasterAddress, timeout_s: float) -> socket.socket | SecureStream:
    if address.path:
        connected = socket.socket(socket.AF_UNIX)
        connected.settimeout(timeout_s)
        connected.connect(address.path)
    else:
        source = (address.source, 0) if address.source else None
        connected = socket.create_connection((address.host, address.port), timeout_s, source)
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if address.context is None:
        return connected
    return SecureStream(connected, address.context, address.host)
