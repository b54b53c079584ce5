"""Words that a peer says who means harm: numbers at every limit and what only looks like one, names, ids, globs."""

from __future__ import annotations

from random import Random

_EDGES = [0, 1, 2, 3, 7, 63, 64, 127, 128, 255, 256, 511, 512, 1000, 16384, 65535, 65536, 2**24, 2**31, 2**32, 2**53]
_EDGES += [2**62, 2**63, 2**64, 10**30]
NUMBERS = [b"%d" % (sign * edge + step) for edge in _EDGES for step in (-1, 0, 1) for sign in (1, -1)]
LOOKALIKES = [
    b"", b" ", b"+1", b" 1", b"1 ", b"1\n", b"01", b"-0", b"00", b"1_000", b"0x10", b"1e3", b"1.5", b"1.0", b"--1",
    b"1-",
    b"\0", b"1\0", b"\xd9\xa1", b"nan", b"-nan", b"NaN(1)", b"inf", b"+inf", b"-Inf", b"infinity", b"1e400", b"-1e400",
    b"1e-400", b"5e-324", b"1.7976931348623157e308", b"0x1p3", b"0x1p-1074", b".5", b"5.", b"1e", b"e1", b"9" * 400,
    b"9" * 5000, b"0." + b"1" * 5000, b"-" + b"9" * 20_000, b"1" + b"0" * 400, b"3.4e38", b"1e17", b"4.9e-325",
]  # fmt: skip
DOUBLES = [
    b"0",
    b"1",
    b"-1",
    b"1.5",
    b"0.1",
    b"-0.0",
    b"3e3",
    b"180",
    b"-180",
    b"85.05112878",
    b"-85.06",
    b"90",
    b"1e9",
]
IDS = [
    b"0", b"0-0", b"0-1", b"1-*", b"*", b"$", b">", b"+", b"-", b"(0", b"(+", b"(-", b"1-", b"-1", b"1-1-1", b"5-5",
    b"18446744073709551615-18446744073709551615", b"18446744073709551616", b"18446744073709551615", b"(5-5", b"1-01",
    b"(18446744073709551615-18446744073709551615", b"(0-0", b"99999999999999999999-1", b"9223372036854775808-0",
]  # fmt: skip
RANGES = [b"[a", b"(a", b"[", b"(", b"+", b"-", b"(1", b"(inf", b"-inf", b"+inf", b"(nan", b"[\xff", b"(1e400", b"((1"]
PATTERNS = [
    b"*", b"?", b"a*", b"[", b"[a", b"[^", b"[^]", b"[]", b"[z-a]", b"[\\", b"\\", b"**", b"*\\", b"[a-", b"\xff*", b"",
    b"*a" * 50, b"[^a]*" * 50, b"a*" * 5000, b"?" * 10_000, b"*?" * 2000 + b"z", b"[a-z]*" * 2000, b"*[" * 3000,
    b"k_*->f", b"k_*->", b"*->*", b"k*->*->f", b"#", b"nosort", b"->", b"*->f\0",
]  # fmt: skip
KEYS = [
    b"string", b"number", b"list", b"set", b"integers", b"hash", b"sorted", b"topic", b"geo", b"hll", b"bits",
    b"big-list", b"big-set", b"big-hash", b"big-sorted", b"big-topic", b"big-string", b"expiring", b"queue",
]  # fmt: skip
NEW_KEYS = [
    b"",
    b"new",
    b"new2",
    b"k" * 600,
    b"k" * 511,
    b"\0",
    b"\xff\r\n",
    b"t#ephemeral",
    b"{x}a",
    b"a{}b",
    b"k_1",
    b"-",
]
MEMBERS = [b"a", b"b", b"f", b"1", b"2", b"m1", b"m77", b"f1", b"f77", b"", b"\0", b"\xff" * 3, b"x" * 100, b"x" * 5000]
NAMES = [b"g", b"c", b"h", b"d", b"durable:x", b"", b"default", b"name", b"two words", b"\xff", b"n" * 600, b"\0"]
ENCODINGS = [
    b"u8", b"i8", b"u63", b"i64", b"u64", b"i65", b"u0", b"i0", b"i1", b"u1", b"u", b"i", b"x8", b"u-1", b"i+8",
    b"u008",
]  # fmt: skip
OFFSETS = [b"#0", b"#1", b"#-1", b"#4294967295", b"#9223372036854775807", b"#", b"#x"]


def number(chance: Random) -> bytes:
    """Mostly small, often at a limit, sometimes none."""
    kind = chance.random()
    if kind < 0.4:
        return b"%d" % chance.randrange(-3, 12)
    if kind < 0.85:
        return chance.choice(NUMBERS)
    return chance.choice(LOOKALIKES)


def double(chance: Random) -> bytes:
    kind = chance.random()
    if kind < 0.5:
        return chance.choice(DOUBLES)
    return number(chance) if kind < 0.7 else chance.choice(LOOKALIKES + RANGES)


def key(chance: Random) -> bytes:
    return chance.choice(KEYS) if chance.random() < 0.75 else chance.choice(NEW_KEYS)


def text(chance: Random) -> bytes:
    """Anything."""
    kind = chance.random()
    if kind < 0.5:
        return chance.choice(MEMBERS)
    if kind < 0.99:
        return chance.choice(chance.choice(_ALL))
    return chance.choice((b"v", b"\0", b"ab\xff")) * chance.randrange(1, 100_000)


_ALL = [NUMBERS, LOOKALIKES, DOUBLES, IDS, RANGES, PATTERNS, KEYS, NEW_KEYS, NAMES, ENCODINGS, OFFSETS]
BY_NAME = {
    "id": IDS, "ID": IDS, "start": IDS + RANGES, "end": IDS + RANGES, "min": RANGES + IDS, "max": RANGES + IDS,
    "stop": RANGES, "group": NAMES, "groupname": NAMES, "consumer": NAMES, "consumername": NAMES, "last-id": IDS,
    "encoding": ENCODINGS, "offset": OFFSETS, "threshold": IDS + NUMBERS, "max_deleted_entry_id": IDS, "first": IDS,
    "last": IDS, "min-idle-time": NUMBERS, "name": NAMES, "subscriber": NAMES, "username": NAMES, "member": MEMBERS,
    "field": MEMBERS, "channel": NAMES, "shardchannel": NAMES, "pattern": PATTERNS,
}  # fmt: skip
"""What an argument of this name may be."""
