"""Bits of strings: GETBIT, SETBIT, BITCOUNT, BITPOS."""

from __future__ import annotations

from rlite_pubsub.engine.arguments.integers import bit_offset, integer
from rlite_pubsub.engine.arguments.lookup import find_text, keyspace_of, text_for_change
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.table import Arg, KeySpec, command
from rlite_pubsub.keyspace.records import RAW
from rlite_pubsub.protocol.errors import SYNTAX, CommandError
from rlite_pubsub.protocol.replies import Reply

_NOT_A_BIT = b"ERR bit is not an integer or out of range"
_NO_BIT = b"ERR The bit argument must be 1 or 0."


@command(
    "bitcount",
    arity=-2,
    flags="readonly",
    group="bitmap",
    since="2.6.0",
    categories="bitmap",
    summary="Count set bits in a string",
    complexity="O(N)",
    arguments=(
        Arg("key", "key", key_spec=0),
        Arg(
            "index",
            "block",
            optional=True,
            arguments=(
                Arg("start", "integer"),
                Arg("end", "integer"),
                Arg(
                    "index_unit",
                    "oneof",
                    optional=True,
                    since="7.0.0",
                    arguments=(
                        Arg("byte", "pure-token", token="BYTE"),
                        Arg("bit", "pure-token", token="BIT"),
                    ),
                ),
            ),
        ),
    ),
    key_specs=(KeySpec(("RO", "ACCESS"), ("index", 1), ("range", 0, 1, 0)),),
    history=(("7.0.0", "Added the `BYTE|BIT` option."),),
)
def bitcount(session: CommandSession, args: list[bytes]) -> Reply:
    text = find_text(session, args[1])
    if text is None:
        return 0
    if len(args) == 2:
        return int.from_bytes(text.value, "little").bit_count()
    if len(args) not in (4, 5):
        raise CommandError(SYNTAX)
    start, end = integer(args[2]), integer(args[3])
    if start < 0 and end < 0 and start > end:
        return 0
    is_bits = len(args) == 5 and _is_bits(args[4])
    start, end = _bounds(start, end, len(text.value) * (8 if is_bits else 1))
    if start > end:
        return 0
    if not is_bits:
        return int.from_bytes(text.value[start : end + 1], "little").bit_count()
    part = int.from_bytes(text.value[start >> 3 : (end >> 3) + 1], "big") >> (7 - (end & 7))
    return (part & ((1 << (end - start + 1)) - 1)).bit_count()


@command(
    "bitpos",
    arity=-3,
    flags="readonly",
    group="bitmap",
    since="2.8.7",
    categories="bitmap",
    summary="Find first bit set or clear in a string",
    complexity="O(N)",
    arguments=(
        Arg("key", "key", key_spec=0),
        Arg("bit", "integer"),
        Arg(
            "index",
            "block",
            optional=True,
            arguments=(
                Arg("start", "integer"),
                Arg(
                    "end_index",
                    "block",
                    optional=True,
                    arguments=(
                        Arg("end", "integer"),
                        Arg(
                            "index_unit",
                            "oneof",
                            optional=True,
                            since="7.0.0",
                            arguments=(
                                Arg("byte", "pure-token", token="BYTE"),
                                Arg("bit", "pure-token", token="BIT"),
                            ),
                        ),
                    ),
                ),
            ),
        ),
    ),
    key_specs=(KeySpec(("RO", "ACCESS"), ("index", 1), ("range", 0, 1, 0)),),
    history=(("7.0.0", "Added the `BYTE|BIT` option."),),
)
def bitpos(session: CommandSession, args: list[bytes]) -> Reply:
    bit = integer(args[2])
    if bit not in (0, 1):
        raise CommandError(_NO_BIT)
    text = find_text(session, args[1])
    if text is None:
        return -1 if bit else 0
    if len(args) > 6:
        raise CommandError(SYNTAX)
    start, end, is_bits = 0, -1, False
    if len(args) > 3:
        start = integer(args[3])
        is_bits = len(args) == 6 and _is_bits(args[5])
        if len(args) > 4:
            end = integer(args[4])
    start, end = _bounds(start, end, len(text.value) * (8 if is_bits else 1))
    if start > end:
        return -1
    if not is_bits:
        start, end = start * 8, end * 8 + 7
    found = _first(text.value, bit, start, end)
    if found < 0 and not bit and len(args) < 5:
        return end + 1  # behind the string are zeros, where nobody has said where it ends
    return found


def _is_bits(word: bytes) -> bool:
    """BIT or BYTE. Raises CommandError."""
    unit = word.lower()
    if unit not in (b"bit", b"byte"):
        raise CommandError(SYNTAX)
    return unit == b"bit"


def _bounds(start: int, end: int, length: int) -> tuple[int, int]:
    """Turn a first and a last place, either counted from an end, into places within the length."""
    start = max(0, start + length) if start < 0 else start
    end = max(0, end + length) if end < 0 else end
    return start, min(end, length - 1)


def _first(value: bytes, bit: int, start: int, end: int) -> int:
    """Return the place of the first such bit from one place to another, -1 if there is none."""
    part = bytearray(value[start >> 3 : (end >> 3) + 1])
    before, behind = (0xFF00 >> (start & 7)) & 0xFF, 0x7F >> (end & 7)
    if bit:
        part[0] &= ~before
        part[-1] &= ~behind
    else:
        part[0] |= before
        part[-1] |= behind
    rest = part.lstrip(b"\0" if bit else b"\xff")
    if not rest:
        return -1
    byte = rest[0] if bit else rest[0] ^ 0xFF
    return (start & ~7) + (len(part) - len(rest)) * 8 + 8 - byte.bit_length()


@command(
    "getbit",
    arity=3,
    flags="readonly fast",
    group="bitmap",
    since="2.2.0",
    categories="bitmap",
    summary="Returns the bit value at offset in the string value stored at key",
    complexity="O(1)",
    arguments=(
        Arg("key", "key", key_spec=0),
        Arg("offset", "integer"),
    ),
    key_specs=(KeySpec(("RO", "ACCESS"), ("index", 1), ("range", 0, 1, 0)),),
)
def getbit(session: CommandSession, args: list[bytes]) -> Reply:
    offset = bit_offset(args[2], session.engine.settings["proto-max-bulk-len"])
    text = find_text(session, args[1])
    byte = offset >> 3
    if text is None or byte >= len(text.value):
        return 0
    return text.value[byte] >> (7 - (offset & 7)) & 1


@command(
    "setbit",
    arity=4,
    flags="write denyoom",
    group="bitmap",
    since="2.2.0",
    categories="bitmap",
    summary="Sets or clears the bit at offset in the string value stored at key",
    complexity="O(1)",
    arguments=(
        Arg("key", "key", key_spec=0),
        Arg("offset", "integer"),
        Arg("value", "integer"),
    ),
    key_specs=(KeySpec(("RW", "ACCESS", "UPDATE"), ("index", 1), ("range", 0, 1, 0)),),
)
def setbit(session: CommandSession, args: list[bytes]) -> Reply:
    offset = bit_offset(args[2], session.engine.settings["proto-max-bulk-len"])
    bit = integer(args[3], 0, 1, _NOT_A_BIT)
    text = text_for_change(session, args[1])
    before = b"" if text is None else text.value
    byte, mask = offset >> 3, 0x80 >> (offset & 7)
    was = int(byte < len(before) and bool(before[byte] & mask))
    if text is not None and byte < len(before) and was == bit:
        text.keep_raw()
        keyspace_of(session).stored.keep(text)
        return was
    value = bytearray(before.ljust(byte + 1, b"\0"))
    value[byte] = value[byte] | mask if bit else value[byte] & ~mask
    expires_ms = 0 if text is None else text.expires_ms
    keyspace_of(session).put_string(session.db, args[1], bytes(value), expires_ms, RAW)
    session.engine.notifications.tell("$", b"setbit", session.db, args[1])
    return was
