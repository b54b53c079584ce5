"""Replies -> bytes, in RESP2 or RESP3. Only this file knows how the two differ.

`encode(reply, protocol)` never fails on what `replies.py` lists; anything else is our fault and raises TypeError.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from rlite_pubsub.protocol.replies import (
    NO_REPLY,
    NULL_ARRAY,
    OK,
    Encoded,
    Error,
    Map,
    Push,
    Replies,
    Reply,
    SetReply,
    Status,
    Verbatim,
)

_OK: Final = OK  # compiled code finds what is its own without a look-up
_ENCODED: Final = Encoded
LENGTHS: Final = [b"%d\r\n" % size for size in range(1024)]
"""As they stand before what is so long."""
_HEADERS: Final = [b"$" + length for length in LENGTHS]
"""Of bulk strings as most are."""
_INTEGERS: Final = [b":" + length for length in LENGTHS]
"""Replies that are small numbers."""
_EXACT: Final = 1e15
"""Below that an integer is said with all its digits."""
_NO_NEWLINES: Final = bytes.maketrans(b"\r\n", b"  ")


def bulk(text: bytes) -> bytes:
    """Return a bulk string; the same in both versions."""
    return b"$%d\r\n%b\r\n" % (len(text), text)


def bulk_array(elements: list[bytes] | tuple[bytes, ...], header: bytes | None = None) -> bytes:
    """Return an array of bulk strings; the same in both versions. With a header it is another aggregate of them."""
    made = _bulk_array(elements, header)
    if made is None:
        raise TypeError("bulk strings are bytes")
    return made


def pure_bulk_array(elements: list[Any] | tuple[Any, ...], header: bytes | None) -> bytes | None:
    for element in elements:
        if type(element) is not bytes:
            return None
    texts: list[bytes] = elements if isinstance(elements, list) else list(elements)
    if header is None:
        header = b"*%d\r\n" % len(texts)
    if not texts:
        return header
    size = len(texts[0])
    for text in texts:
        if len(text) != size:
            break
    else:  # as names often are: one join puts the same between all of them
        head = _HEADERS[size] if size < len(_HEADERS) else b"$%d\r\n" % size
        return b"".join((header, head, (b"\r\n" + head).join(texts), b"\r\n"))
    parts = [header]
    for text in texts:
        size = len(text)
        parts.append(_HEADERS[size] if size < len(_HEADERS) else b"$%d\r\n" % size)
        parts.append(text)
        parts.append(b"\r\n")
    return b"".join(parts)


_made_by: Callable[[list[Any] | tuple[Any, ...], bytes | None], bytes | None]
try:
    from rlite_pubsub.protocol import _bulk_array as _in_c
except ImportError:
    _made_by = pure_bulk_array
else:
    _made_by = _in_c.bulk_array
_bulk_array: Final = _made_by
"""None: these are not all bytes, and nothing that was made of bytes. In a compiled package this is _bulk_array.c."""


def integer(number: int) -> bytes:
    """Return an integer; the same in both versions."""
    return b":%d\r\n" % number


def error(text: bytes) -> bytes:
    """Return an error line. Newlines in it become spaces: it may quote the peer, who must not forge a reply."""
    return b"-%b\r\n" % text.strip(b"\r\n").translate(_NO_NEWLINES)


def double(number: float) -> bytes:
    """Text that reads back as the same number, in Redis's spelling: 17 digits, though fewer may do."""
    if 0 < number < _EXACT or -_EXACT < number < 0:
        whole = int(number)
        if whole == number:  # as most scores are
            return str(whole).encode()
    return b"%.17g" % number


def encode(reply: Reply, protocol: int) -> bytes:
    """Return the whole reply in the given version of the protocol, 2 or 3."""
    if reply is _OK:
        return b"+OK\r\n"
    kind = type(reply)
    if kind is bytes:
        text: bytes = reply
        size = len(text)
        return b"%b%b\r\n" % (_HEADERS[size], text) if size < len(_HEADERS) else b"$%d\r\n%b\r\n" % (size, text)
    if reply is None:
        return b"$-1\r\n" if protocol == 2 else b"_\r\n"
    if kind is int:
        number: int = reply
        return _INTEGERS[number] if 0 <= number < len(_INTEGERS) else b":" + str(number).encode() + b"\r\n"
    if kind is _ENCODED:
        return bytes(reply)
    return _ENCODERS[kind](reply, protocol)


def confirmations(word: bytes, names: list[bytes], counts: list[int], protocol: int) -> bytes:
    """Return the pushes of (word, name, count) that confirm each of these names."""
    head = (b"*3\r\n" if protocol == 2 else b">3\r\n") + bulk(word)
    parts: list[bytes] = []
    for at in range(len(names)):
        size, count = len(names[at]), counts[at]
        parts.append(head)
        parts.append(_HEADERS[size] if size < len(_HEADERS) else b"$%d\r\n" % size)
        parts.append(names[at])
        parts.append(b"\r\n")
        parts.append(_INTEGERS[count] if count < len(_INTEGERS) else b":" + str(count).encode() + b"\r\n")
    return b"".join(parts)


def put(parts: list[bytes], reply: Reply, protocol: int) -> None:
    """Put the whole reply behind others that are joined later; a bulk string, as most are, is not copied for that."""
    if type(reply) is bytes and len(reply) < len(_HEADERS):
        parts.append(_HEADERS[len(reply)])
        parts.append(reply)
        parts.append(b"\r\n")
    else:
        parts.append(encode(reply, protocol))


def _aggregate(header: bytes, elements: Iterable[Reply], protocol: int) -> bytes:
    if not isinstance(elements, list):
        elements = list(elements)
    made = _bulk_array(elements, header)
    if made is not None:
        return made  # as most are
    parts = [header]
    for element in elements:
        put(parts, element, protocol)
    return b"".join(parts)


def _array(reply: list[Reply] | tuple[Reply, ...], protocol: int) -> bytes:
    return _aggregate(b"*%d\r\n" % len(reply), reply, protocol)


def _push(reply: Push, protocol: int) -> bytes:
    return _aggregate((b"*%d\r\n" if protocol == 2 else b">%d\r\n") % len(reply), reply, protocol)


def _set(reply: SetReply, protocol: int) -> bytes:
    return _aggregate((b"*%d\r\n" if protocol == 2 else b"~%d\r\n") % len(reply), reply, protocol)


def _pairs(pairs: Iterable[tuple[Reply, Reply]], size: int, protocol: int) -> bytes:
    flat = [element for pair in pairs for element in pair]
    return _aggregate(b"*%d\r\n" % (2 * size) if protocol == 2 else b"%%%d\r\n" % size, flat, protocol)


def _replies(reply: Replies, protocol: int) -> bytes:
    return _aggregate(b"", reply, protocol)


def _null(reply: None, protocol: int) -> bytes:
    return b"$-1\r\n" if protocol == 2 else b"_\r\n"


def _singleton(reply: object, protocol: int) -> bytes:
    if reply is NO_REPLY:
        return b""
    assert reply is NULL_ARRAY
    return b"*-1\r\n" if protocol == 2 else b"_\r\n"


def _boolean(reply: bool, protocol: int) -> bytes:
    if protocol == 2:
        return b":1\r\n" if reply else b":0\r\n"
    return b"#t\r\n" if reply else b"#f\r\n"


def _double(reply: float, protocol: int) -> bytes:
    text = double(reply)
    return bulk(text) if protocol == 2 else b",%b\r\n" % text


def _verbatim(reply: Verbatim, protocol: int) -> bytes:
    if protocol == 2:
        return bulk(reply)
    return b"=%d\r\n%b:%b\r\n" % (len(reply) + 4, reply.format, reply)


class _Encoders(dict[type, Callable[[Reply, int], bytes]]):
    def __missing__(self, kind: type) -> Callable[[Reply, int], bytes]:
        raise TypeError(f"{kind.__name__} is not a reply")


_ENCODERS: Final = _Encoders(
    {
        bytes: lambda reply, protocol: bulk(reply),
        int: lambda reply, protocol: b":%d\r\n" % reply,
        Status: lambda reply, protocol: b"+%b\r\n" % reply,
        Error: lambda reply, protocol: error(reply),
        Encoded: lambda reply, protocol: bytes(reply),
        NO_REPLY.__class__: _singleton,
        type(None): _null,
        bool: _boolean,
        float: _double,
        list: _array,
        tuple: _array,
        dict: lambda reply, protocol: _pairs(reply.items(), len(reply), protocol),
        Map: lambda reply, protocol: _pairs(reply, len(reply), protocol),
        Push: _push,
        SetReply: _set,
        Replies: _replies,
        Verbatim: _verbatim,
    }
)
