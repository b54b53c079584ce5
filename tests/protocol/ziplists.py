"""Ziplists, written for tests: nothing of ours writes any."""

from __future__ import annotations

_INTEGERS = ((0xFE, 1), (0xC0, 2), (0xF0, 3), (0xD0, 4), (0xE0, 8))


def ziplist(words: list[bytes | int]) -> bytes:
    """A ziplist of these strings and integers."""
    body = b""
    before = last = 0
    for word in words:
        last = len(body)
        previous = bytes((before,)) if before < 254 else b"\xfe" + before.to_bytes(4, "little")
        body += previous + _element(word)
        before = len(body) - last
    head = (11 + len(body)).to_bytes(4, "little") + (10 + last).to_bytes(4, "little")
    return head + min(len(words), 0xFFFF).to_bytes(2, "little") + body + b"\xff"


def _element(word: bytes | int) -> bytes:
    if isinstance(word, int):
        if 0 <= word <= 12:
            return bytes((0xF1 + word,))
        head, size = next(kind for kind in _INTEGERS if -(1 << 8 * kind[1] - 1) <= word < 1 << 8 * kind[1] - 1)
        return bytes((head,)) + word.to_bytes(size, "little", signed=True)
    length = len(word)
    if length < 1 << 6:
        return bytes((length,)) + word
    if length < 1 << 14:
        return (1 << 14 | length).to_bytes(2, "big") + word
    return b"\x80" + length.to_bytes(4, "big") + word
