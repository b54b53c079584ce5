"""The replies of commands. A handler gives the reply's type; the encoder alone knows RESP2 from RESP3.

    bytes              bulk string                 None        null
    int                integer                     bool        boolean (RESP2: 1 or 0)
    list, tuple        array                       float       double (RESP2: bulk string)
    Status             simple string               dict, Map   map (RESP2: flat array)
    Error              error                       SetReply    set (RESP2: array)
    Verbatim           verbatim string             Push        push (RESP2: array)
    NULL_ARRAY         null array                  Replies     several replies, one after another
    NO_REPLY           nothing at all              Encoded     bytes that are wire format already
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, TypeAlias

Reply: TypeAlias = Any
"""One of the types above; nested freely."""


class Status(bytes):
    """A simple string, such as +OK."""

    __slots__ = ()


class Error(bytes):
    """An error as an element of a reply; its text begins with the code word, without the minus."""

    __slots__ = ()


class Encoded(bytes):
    """Bytes that are already what the wire wants, whatever its version."""

    __slots__ = ()


class Push(list[Reply]):
    """A message that no request asked for."""

    __slots__ = ()


class SetReply(list[Reply]):
    """An unordered collection; a list, because its elements may be unhashable and order is kept."""

    __slots__ = ()


class Map(list[tuple[Reply, Reply]]):
    """Pairs, in order; for keys that are not hashable or repeat. A dict does as well otherwise."""

    __slots__ = ()


class Replies(tuple[Reply, ...]):
    """Several replies to one request, as SUBSCRIBE sends one for each channel."""

    __slots__ = ()

    def __new__(cls, replies: Iterable[Reply]) -> Replies:
        return super().__new__(cls, replies)


class Verbatim(bytes):
    """Text to be shown as it is; `txt` or `mkd` tells its format."""

    format: bytes

    def __new__(cls, text: bytes, format: bytes = b"txt") -> Verbatim:
        self = super().__new__(cls, text)
        self.format = format
        return self


class _Singleton:
    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name


NULL_ARRAY: Final = _Singleton("NULL_ARRAY")
NO_REPLY: Final = _Singleton("NO_REPLY")
OK: Final = Status(b"OK")
QUEUED: Final = Status(b"QUEUED")
PONG: Final = Status(b"PONG")
