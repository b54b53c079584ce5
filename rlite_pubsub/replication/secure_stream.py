"""TLS to a master: a socket that waits for its peer, of which one thread reads while another says how far it is.

OpenSSL's own object serves one thread at a time, so it stands between two buffers, under a lock that nobody keeps while
waiting for the peer.
"""

from __future__ import annotations

import socket
import ssl
from threading import Lock
from typing import Any, Final

_READ_AT_ONCE: Final = 1 << 16


class SecureStream:
    """What a master's link asks of a socket."""

    def __init__(self, raw: socket.socket, context: ssl.SSLContext, host: str) -> None:
        """Shakes hands; the socket is closed where that fails. Raises OSError (ssl.SSLError is one)."""
        self._raw = raw
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=host)
        self._lock = Lock()
        self._plain = b""  # decrypted, and not asked for yet
        try:
            while not self._has_shaken_hands():
                self._fetch()
        except BaseException:
            raw.close()
            raise

    def fileno(self) -> int:
        """What is to be watched; -1 once it is closed."""
        return self._raw.fileno()

    def getpeername(self) -> Any:
        """The peer's address, as of a socket. Raises OSError."""
        return self._raw.getpeername()

    def getsockname(self) -> Any:
        """Our address, as of a socket. Raises OSError."""
        return self._raw.getsockname()

    @property
    def pending(self) -> bool:
        """Whether something is here that `recv` would answer without waiting."""
        with self._lock:
            if not self._plain:
                try:
                    self._plain = self._tls.read(_READ_AT_ONCE)
                except ssl.SSLWantReadError:
                    return False
                except ssl.SSLError:
                    return True  # which `recv` meets again
            return True

    def recv(self, size: int) -> bytes:
        """Receive as a socket does. Raises OSError."""
        while True:
            with self._lock:
                data = self._take(size)
            if data is not None:
                return data
            self._fetch()

    def sendall(self, data: bytes) -> None:
        """Send all, as a socket does. Raises OSError."""
        with self._lock:
            self._tls.write(data)
            self._flush()

    def shutdown(self, how: int) -> None:
        """Shut down as a socket does: a reader in another thread meets the end. Raises OSError."""
        self._raw.shutdown(how)

    def close(self) -> None:
        self._raw.close()

    def _has_shaken_hands(self) -> bool:
        with self._lock:
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                self._flush()
                return False
            self._flush()
            return True

    def _take(self, size: int) -> bytes | None:
        """What is decrypted; empty at the end, None where more has to come."""
        if self._plain:
            data, self._plain = self._plain[:size], self._plain[size:]
            return data
        try:
            return self._tls.read(size)
        except ssl.SSLWantReadError:
            self._flush()
            return None
        except (ssl.SSLEOFError, ssl.SSLZeroReturnError):
            return b""

    def _fetch(self) -> None:
        data = self._raw.recv(_READ_AT_ONCE)
        with self._lock:
            if data:
                self._incoming.write(data)
            else:
                self._incoming.write_eof()

    def _flush(self) -> None:
        if self._outgoing.pending:
            self._raw.sendall(self._outgoing.read())
