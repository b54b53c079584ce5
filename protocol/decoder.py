"""Bytes -> replies: what a command has as the wire wants it, as the values that it is made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import hiredis

from rlite_pubsub.protocol.replies import Error, Map, Push, Reply, SetReply, Status, Verbatim

_PLAIN: Final = frozenset((b"*", b"$", b":"))


class BigNumber(bytes):
    """A number of any size, in digits."""

    __slots__ = ()


def decode(reply: bytes) -> Reply:
    """One whole reply. What tells something of it and is not of it (attributes) is left out."""
    if reply[:1] in _PLAIN:  # all that it holds is one of these, too
        reader = hiredis.Reader()
        reader.feed(reply)
        return reader.gets()
    return _decode(reply, 0)[0]


def told_apart(reply: bytes) -> Reply:
    """One whole reply with the types that the wire has, wherever they stand: a Status is no bulk string, an Error no
    exception."""
    return _decode(reply, 0)[0]


def _decode(data: bytes, at: int) -> tuple[Reply, int]:
    """Return the reply that begins there, and where it ends."""
    end = data.index(b"\r\n", at)
    kind, text = data[at : at + 1], data[at + 1 : end]
    end += 2
    if kind in (b"$", b"="):
        size = int(text)
        if size < 0:
            return None, end
        body = data[end : end + size]
        return (body if kind == b"$" else Verbatim(body[4:], body[:3])), end + size + 2
    if kind in _SIMPLE:
        return _SIMPLE[kind](text), end
    if text == b"-1":
        return None, end
    elements: list[Reply] = []
    for _ in range(int(text) * (2 if kind in (b"%", b"|") else 1)):
        element, end = _decode(data, end)
        elements.append(element)
    if kind == b"|":
        return _decode(data, end)
    if kind == b"%":
        return Map(zip(elements[::2], elements[1::2], strict=True)), end
    if kind == b"*":
        return elements, end
    return (SetReply if kind == b"~" else Push)(elements), end


_SIMPLE: Final[dict[bytes, Callable[[bytes], Reply]]] = {
    b"+": Status,
    b"-": Error,
    b":": int,
    b",": float,
    b"(": BigNumber,
    b"#": lambda text: text == b"t",
    b"_": lambda text: None,
}
