"""Inline requests: a line typed by hand, split as a shell would, quotes and escapes included (Redis: sdssplitargs)."""

from __future__ import annotations

_BLANKS = b" \t\n\v\f\r"
_ENDS = b" \t\n\r"
_ESCAPES = {ord("n"): b"\n", ord("r"): b"\r", ord("t"): b"\t", ord("b"): b"\b", ord("a"): b"\a"}
_HEX = b"0123456789abcdefABCDEF"
_DOUBLE, _SINGLE, _BACKSLASH = b"\"'\\"
_ODD = (b'"', b"'", b"\v", b"\f")


def split(line: bytes) -> list[bytes] | None:
    """Return the words of a line that holds no NUL; None when its quotes are unbalanced."""
    if not any(odd in line for odd in _ODD):
        return line.split()
    words: list[bytes] = []
    at = 0
    while True:
        while at < len(line) and line[at] in _BLANKS:
            at += 1
        if at >= len(line):
            return words
        word = _word(line, at)
        if word is None:
            return None
        words.append(word[0])
        at = word[1]


def _word(line: bytes, at: int) -> tuple[bytes, int] | None:
    """One word and where it ends. A quote may open anywhere in it, but must close at its end."""
    word = bytearray()
    while at < len(line) and line[at] not in _ENDS:
        if line[at] in (_DOUBLE, _SINGLE):
            end = (_double_quoted if line[at] == _DOUBLE else _single_quoted)(line, at + 1, word)
            if end is None or (end < len(line) and line[end] not in _BLANKS):
                return None
            return bytes(word), end
        word.append(line[at])
        at += 1
    return bytes(word), at


def _double_quoted(line: bytes, at: int, word: bytearray) -> int | None:
    while at < len(line):
        if line[at] == _DOUBLE:
            return at + 1
        if line[at] == _BACKSLASH and at + 1 < len(line):
            if line[at + 1] == ord("x") and at + 3 < len(line) and line[at + 2] in _HEX and line[at + 3] in _HEX:
                word.append(int(line[at + 2 : at + 4], 16))
                at += 4
                continue
            word += _ESCAPES.get(line[at + 1], line[at + 1 : at + 2])
            at += 2
            continue
        word.append(line[at])
        at += 1
    return None


def _single_quoted(line: bytes, at: int, word: bytearray) -> int | None:
    while at < len(line):
        if line[at] == _SINGLE:
            return at + 1
        if line[at] == _BACKSLASH and line[at + 1 : at + 2] == b"'":
            word.append(_SINGLE)
            at += 2
            continue
        word.append(line[at])
        at += 1
    return None
