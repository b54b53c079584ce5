"""The bytes of RESP, as a client sends them and as a subscriber must receive them."""

from __future__ import annotations

RESP2 = 2
RESP3 = 3


def bulk(data: bytes) -> bytes:
    return b"$%d\r\n%s\r\n" % (len(data), data)


def command(*words: bytes) -> bytes:
    return b"*%d\r\n" % len(words) + b"".join(map(bulk, words))


def publish(channel: bytes, payload: bytes) -> bytes:
    return command(b"PUBLISH", channel, payload)


def integer(number: int) -> bytes:
    return b":%d\r\n" % number


def pushed(protocol: int, *words: bytes) -> bytes:
    """What a subscriber is sent: an array in RESP2, a push in RESP3."""
    mark = b">" if protocol == RESP3 else b"*"
    return mark + b"%d\r\n" % len(words) + b"".join(map(bulk, words))


def message(channel: bytes, payload: bytes, protocol: int = RESP2) -> bytes:
    return pushed(protocol, b"message", channel, payload)


def pattern_message(pattern: bytes, channel: bytes, payload: bytes) -> bytes:
    return pushed(RESP2, b"pmessage", pattern, channel, payload)


def confirmation(kind: bytes, name: bytes, count: int, protocol: int = RESP2) -> bytes:
    """The answer to subscribing to one more name, when `count` names are held then."""
    mark = b">" if protocol == RESP3 else b"*"
    return mark + b"3\r\n" + bulk(kind) + bulk(name) + integer(count)


LINES_OF_AN_ID = 2


def is_id(reply: bytes) -> bool:
    """Whether this is the whole answer to an XADD."""
    return reply[:1] == b"$" and reply[-2:] == b"\r\n" and b"-" in reply


def entry(entry_id: bytes, *fields: bytes) -> bytes:
    """As XRANGE sends it."""
    return b"*2\r\n" + bulk(entry_id) + command(*fields)
