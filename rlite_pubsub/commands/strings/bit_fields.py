"""Strings as arrays of integers of any width: BITFIELD, BITFIELD_RO."""

from __future__ import annotations

from typing import Final

from rlite_pubsub.engine.arguments.integers import bit_offset, integer
from rlite_pubsub.engine.arguments.lookup import find_text, keyspace_of, text_for_change
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.table import Arg, KeySpec, command
from rlite_pubsub.keyspace.records import RAW
from rlite_pubsub.protocol.errors import SYNTAX, CommandError
from rlite_pubsub.protocol.replies import Reply

_BAD_TYPE: Final = b"ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is."
_BAD_OVERFLOW: Final = b"ERR Invalid OVERFLOW type specified"
_ONLY_GET: Final = b"ERR BITFIELD_RO only supports the GET subcommand"
_LENGTHS: Final = {b"get": 3, b"set": 4, b"incrby": 4, b"overflow": 2}


class _Operation:
    """One of the things to be done."""

    __slots__ = ("bits", "is_signed", "number", "offset", "overflow", "word")

    def __init__(self, word: bytes, is_signed: bool, bits: int, offset: int, number: int, overflow: bytes) -> None:
        self.word = word
        self.is_signed = is_signed
        self.bits = bits
        self.offset = offset
        self.number = number
        self.overflow = overflow


_READ: Final = KeySpec(("RO", "ACCESS"), ("index", 1), ("range", 0, 1, 0))
_CHANGED: Final = KeySpec(("RW", "ACCESS", "UPDATE"), ("index", 1), ("range", 0, 1, 0))
_WORDS_BEHIND: Final = {b"get": 2, b"overflow": 1}


def _keys_of_bitfield(args: list[bytes]) -> list[tuple[int, KeySpec]]:
    """Return the key, as read or changed: a request that only reads is allowed to users who may only read; one that
    makes no sense counts as a change."""
    place = 2
    while place < len(args):
        behind = _WORDS_BEHIND.get(args[place].lower())
        if behind is None or place + behind >= len(args):
            return [(1, _CHANGED)]
        place += 1 + behind
    return [(1, _READ)]


@command(
    "bitfield",
    arity=-2,
    flags="write denyoom",
    group="bitmap",
    since="3.2.0",
    categories="bitmap",
    summary="Perform arbitrary bitfield integer operations on strings",
    complexity="O(1) for each subcommand specified",
    arguments=(
        Arg("key", "key", key_spec=0),
        Arg(
            "operation",
            "oneof",
            optional=True,
            multiple=True,
            arguments=(
                Arg(
                    "encoding_offset",
                    "block",
                    token="GET",
                    arguments=(
                        Arg("encoding"),
                        Arg("offset", "integer"),
                    ),
                ),
                Arg(
                    "write",
                    "block",
                    arguments=(
                        Arg(
                            "wrap_sat_fail",
                            "oneof",
                            token="OVERFLOW",
                            optional=True,
                            arguments=(
                                Arg("wrap", "pure-token", token="WRAP"),
                                Arg("sat", "pure-token", token="SAT"),
                                Arg("fail", "pure-token", token="FAIL"),
                            ),
                        ),
                        Arg(
                            "write_operation",
                            "oneof",
                            arguments=(
                                Arg(
                                    "encoding_offset_value",
                                    "block",
                                    token="SET",
                                    arguments=(
                                        Arg("encoding"),
                                        Arg("offset", "integer"),
                                        Arg("value", "integer"),
                                    ),
                                ),
                                Arg(
                                    "encoding_offset_increment",
                                    "block",
                                    token="INCRBY",
                                    arguments=(
                                        Arg("encoding"),
                                        Arg("offset", "integer"),
                                        Arg("increment", "integer"),
                                    ),
                                ),
                            ),
                        ),
                    ),
                ),
            ),
        ),
    ),
    key_specs=(
        KeySpec(
            ("RW", "UPDATE", "ACCESS", "VARIABLE_FLAGS"),
            ("index", 1),
            ("range", 0, 1, 0),
            notes="This command allows both access and modification of the key",
        ),
    ),
    find_keys=_keys_of_bitfield,
)
def bitfield(session: CommandSession, args: list[bytes]) -> Reply:
    return _run(session, args[1], _steps(session, args[2:]))


@command(
    "bitfield_ro",
    arity=-2,
    flags="readonly fast",
    group="bitmap",
    since="6.0.0",
    categories="bitmap",
    summary="Perform arbitrary bitfield integer operations on strings. Read-only variant of BITFIELD",
    complexity="O(1) for each subcommand specified",
    arguments=(
        Arg("key", "key", key_spec=0),
        Arg(
            "encoding_offset",
            "block",
            token="GET",
            optional=True,
            multiple=True,
            multiple_token=True,
            arguments=(
                Arg("encoding"),
                Arg("offset", "integer"),
            ),
        ),
    ),
    key_specs=(KeySpec(("RO", "ACCESS"), ("index", 1), ("range", 0, 1, 0)),),
)
def bitfield_ro(session: CommandSession, args: list[bytes]) -> Reply:
    steps = _steps(session, args[2:])
    if any(step.word != b"get" for step in steps):
        raise CommandError(_ONLY_GET)
    return _run(session, args[1], steps)


def _steps(session: CommandSession, words: list[bytes]) -> list[_Operation]:
    """Read the steps. Raises CommandError."""
    steps: list[_Operation] = []
    overflow, at, longest = b"wrap", 0, int(session.engine.settings["proto-max-bulk-len"])
    types: dict[bytes, tuple[bool, int]] = {}
    while at < len(words):
        word = words[at].lower()
        length = _LENGTHS.get(word)
        if length is None or at + length > len(words):
            raise CommandError(SYNTAX)
        if word == b"overflow":
            overflow = words[at + 1].lower()
            if overflow not in (b"wrap", b"sat", b"fail"):
                raise CommandError(_BAD_OVERFLOW)
        else:
            known = types.get(words[at + 1])
            if known is None:
                known = types[words[at + 1]] = _type(words[at + 1])
            is_signed, bits = known
            offset = bit_offset(words[at + 2], longest, bits)
            number = integer(words[at + 3]) if word != b"get" else 0
            steps.append(_Operation(word, is_signed, bits, offset, number, overflow))
        at += length
    return steps


def _type(text: bytes) -> tuple[bool, int]:
    """(whether it has a sign, how many bits). Raises CommandError."""
    is_signed = text[:1] == b"i"
    if not is_signed and text[:1] != b"u":
        raise CommandError(_BAD_TYPE)
    return is_signed, integer(text[1:].split(b"\0", 1)[0], 1, 64 if is_signed else 63, _BAD_TYPE)


def _run(session: CommandSession, key: bytes, steps: list[_Operation]) -> Reply:
    writing = [step for step in steps if step.word != b"get"]
    if not writing:
        text = find_text(session, key)
        value = bytearray(b"" if text is None else text.value)
        return [_read(value, step) for step in steps]
    text = text_for_change(session, key)
    before = b"" if text is None else text.value
    end = max(step.offset + step.bits - 1 for step in writing) >> 3
    value = bytearray(before.ljust(end + 1, b"\0"))
    has_grown = text is None or len(value) > len(before)
    replies: list[int | None] = []
    changes = 0
    for step in steps:
        reply, has_changed = _do(value, step)
        replies.append(reply)
        if has_changed or (has_grown and reply is not None and step.word != b"get"):
            changes += 1
    keyspace = keyspace_of(session)
    if changes or has_grown:
        keyspace.put_string(session.db, key, bytes(value), 0 if text is None else text.expires_ms, RAW)
    elif text is not None:
        text.keep_raw()
        keyspace.stored.keep(text)
    if changes:
        session.engine.notifications.tell("$", b"setbit", session.db, key)
    return replies


def _do(value: bytearray, step: _Operation) -> tuple[int | None, bool]:
    """Do one step; return its answer, None if it overflows and must fail; and whether it has changed anything."""
    before = _read(value, step)
    if step.word == b"get":
        return before, False
    low, high = _range(step)
    wanted = step.number
    if step.word == b"incrby":
        wanted += before
    elif not step.is_signed:
        wanted &= (1 << 64) - 1
    after = wanted
    if not low <= wanted <= high:
        if step.overflow == b"fail":
            return None, False
        after = _wrapped(wanted, step) if step.overflow == b"wrap" else high if wanted > high else low
    _write(value, step, after)
    return (before if step.word == b"set" else after), after != before


def _range(step: _Operation) -> tuple[int, int]:
    if step.is_signed:
        return -(1 << step.bits - 1), (1 << step.bits - 1) - 1
    return 0, (1 << step.bits) - 1


def _wrapped(number: int, step: _Operation) -> int:
    rest = number & ((1 << step.bits) - 1)
    return rest - (1 << step.bits) if step.is_signed and rest >> step.bits - 1 else rest


def _read(value: bytearray, step: _Operation) -> int:
    """Behind the string are zeros."""
    first, last = step.offset >> 3, step.offset + step.bits - 1 >> 3
    part = int.from_bytes(value[first : last + 1].ljust(last + 1 - first, b"\0"), "big")
    return _wrapped(part >> (7 - (step.offset + step.bits - 1 & 7)), step)


def _write(value: bytearray, step: _Operation, number: int) -> None:
    first, last = step.offset >> 3, step.offset + step.bits - 1 >> 3
    shift = 7 - (step.offset + step.bits - 1 & 7)
    mask = (1 << step.bits) - 1
    part = int.from_bytes(value[first : last + 1], "big")
    part = part & ~(mask << shift) | (number & mask) << shift
    value[first : last + 1] = part.to_bytes(last + 1 - first, "big")
