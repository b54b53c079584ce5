"""A peer's data as a file: by line, and by byte."""

from __future__ import annotations

from collections.abc import Callable


class Incoming:
    """Reads by `receive`, which answers some bytes, and none at the end."""

    def __init__(self, receive: Callable[[], bytes]) -> None:
        self._receive = receive
        self._data = b""
        self._at = 0

    @property
    def has_more(self) -> bool:
        """True if something has come that was not read."""
        return self._at < len(self._data)

    def readline(self, limit: int, /) -> bytes:
        """A line with its end; less where it is longer than that, or ends before."""
        while True:
            end = self._data.find(b"\n", self._at, self._at + limit)
            if end >= 0:
                return self._take(end + 1 - self._at)
            if len(self._data) - self._at >= limit or not self._fetch():
                return self._take(min(limit, len(self._data) - self._at))

    def read(self, size: int, /) -> bytes:
        """This many bytes; fewer where it ends before."""
        missing = self._at + size - len(self._data)
        if missing <= 0:
            return self._take(size)
        pieces = [self._take(len(self._data) - self._at)]
        while missing > 0:
            more = self._receive()
            if not more:
                break
            pieces.append(more[:missing])
            if len(more) > missing:
                self._data, self._at = more, missing
            missing -= len(more)
        return b"".join(pieces)

    def _take(self, size: int) -> bytes:
        taken = self._data[self._at : self._at + size]
        self._at += size
        return taken

    def _fetch(self) -> bool:
        more = self._receive()
        self._data = self._data[self._at :] + more
        self._at = 0
        return bool(more)
