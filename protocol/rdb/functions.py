"""Dumped libraries of functions (FUNCTION DUMP, FUNCTION RESTORE).

    each library   f5: a string, its code                                        RDB's opcode FUNCTION2
                   f6: strings name and engine, a length (0: there is none), a string that describes it, a string, its
                       code without the first line                               FUNCTION, of Redis 7.0's candidates
    behind them what stands behind every dumped value (envelope.py)

A dump of ours is of kind f5.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rlite_pubsub.protocol.rdb import envelope
from rlite_pubsub.protocol.rdb.envelope import PayloadReader
from rlite_pubsub.protocol.rdb.malformed import Malformed

FUNCTION_2, FUNCTION = 0xF5, 0xF6


def pack(codes: Iterable[bytes]) -> bytes:
    """The codes of libraries, sealed."""
    return envelope.seal(b"".join([bytes((FUNCTION_2,)) + envelope.string(code) for code in codes]))


def unpack(payload: bytes) -> Iterator[bytes]:
    """The codes of libraries in a sealed payload, one after the other. Raises Malformed, with redis-server's text."""
    reader = PayloadReader(payload[: -envelope.FOOTER_BYTES])
    while not reader.is_at_end:
        yield read_library(reader.byte(), reader)


def read_library(kind: int, reader: PayloadReader) -> bytes:
    """The code of a library. Raises Malformed, with redis-server's text."""
    if kind == FUNCTION_2:
        return _string(reader, "library payload")
    if kind != FUNCTION:
        raise Malformed("given type is not a function")
    name, engine = _string(reader, "library name"), _string(reader, "engine name")
    if _has_description(reader):
        _string(reader, "library description")
    return b"#!%b name=%b\n%b" % (engine, name, _string(reader, "library blob"))


def _string(reader: PayloadReader, what: str) -> bytes:
    try:
        return next(iter(reader.each([reader.string()])))
    except Malformed as failure:
        raise Malformed(f"Failed loading {what}") from failure


def _has_description(reader: PayloadReader) -> bool:
    try:
        return reader.length() != 0
    except Malformed as failure:
        raise Malformed("Failed loading library description indicator") from failure
