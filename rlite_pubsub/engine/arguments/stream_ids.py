"""Ids among a command's arguments, read as redis-server 7.0.15 reads them.

`ms-seq`, or `ms` alone. Each part is a plain number, or anything else that C's strtoull accepts: leading blanks, a
sign, leading zeros. An argument ends at its first NUL.
"""

from __future__ import annotations

import re
from typing import Final

from rlite_pubsub.protocol.errors import CommandError
from rlite_pubsub.storage.topics import entry_ids
from rlite_pubsub.storage.topics.entry_ids import MAX, MIN, PART_MAX, Id

INVALID_ID: Final = b"ERR Invalid stream ID specified as stream command argument"
INVALID_START: Final = b"ERR invalid start ID for the interval"
INVALID_END: Final = b"ERR invalid end ID for the interval"

_PLAIN: Final = re.compile(rb"(0|[1-9][0-9]{0,19})-(0|[1-9][0-9]{0,19})")
_LOOSE: Final = re.compile(rb"[ \t-\r]*([+-]?)([0-9]+)")
_SIGNED: Final = re.compile(rb"-[1-9][0-9]*")
_LONG_MIN: Final = -(1 << 63)
_PLAIN_LENGTH: Final = 41
_MAX_LENGTH: Final = 127


def strict_id(text: bytes, missing_seq: int = 0) -> Id:
    """Read `ms-seq`, or `ms` with `missing_seq`. Raises CommandError."""
    if len(text) <= _PLAIN_LENGTH:  # as most are: digits, or digits on both sides of a dash
        ms_digits, dash, seq_digits = text.partition(b"-")
        if ms_digits.isdigit() and (seq_digits.isdigit() or not dash):
            ms, seq = int(ms_digits), int(seq_digits) if dash else missing_seq
            if ms <= PART_MAX and seq <= PART_MAX:
                return ms, seq
    ms_text, dash, seq_text = _cut(text)
    return _part(ms_text), _part(seq_text) if dash else missing_seq


def bound_id(text: bytes, missing_seq: int = 0) -> Id:
    """Like `strict_id`, but `-` and `+` are the lowest and the highest id. Raises CommandError."""
    if len(text) <= _MAX_LENGTH:
        word = text.split(b"\0", 1)[0]
        if word == b"-":
            return MIN
        if word == b"+":
            return MAX
    return strict_id(text, missing_seq)


def wanted_id(text: bytes) -> tuple[int, int | None]:
    """Read an id for XADD, like `strict_id`; the sequence of `ms-*` is None. Raises CommandError."""
    plain = _PLAIN.fullmatch(text)
    if plain is None:
        ms_text, dash, seq_text = _cut(text)
        if dash and seq_text == b"*":
            return _part(ms_text), None
    return strict_id(text)


def range_start(text: bytes) -> Id:
    """Read the start of an interval; `(` before an id excludes it. Raises CommandError."""
    if text[:1] == b"(" and len(text) > 1:
        following = entry_ids.after(strict_id(text[1:], 0))
        if following is None:
            raise CommandError(INVALID_START)
        return following
    return bound_id(text, 0)


def range_end(text: bytes) -> Id:
    """Read the end of an interval; `(` before an id excludes it. Raises CommandError."""
    if text[:1] == b"(" and len(text) > 1:
        previous = entry_ids.before(strict_id(text[1:], PART_MAX))
        if previous is None:
            raise CommandError(INVALID_END)
        return previous
    return bound_id(text, PART_MAX)


def _cut(text: bytes) -> tuple[bytes, bytes, bytes]:
    if len(text) > _MAX_LENGTH:
        raise CommandError(INVALID_ID)
    return text.split(b"\0", 1)[0].partition(b"-")


def _part(text: bytes) -> int:
    """Read one half of an id."""
    loose = _LOOSE.fullmatch(text)
    if loose is None:
        raise CommandError(INVALID_ID)
    value = int(loose[2])
    if value > PART_MAX or (_SIGNED.fullmatch(text) is not None and -value >= _LONG_MIN):
        raise CommandError(INVALID_ID)
    return -value & PART_MAX if loose[1] == b"-" else value
