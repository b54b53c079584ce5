"""Streams that were requests once: what a fuzzer feeds to the parsers."""

from __future__ import annotations

import random

from reference_parser import assert_all_ways_agree, cut
from request_cases import CASES

TOKENS = [
    b"\r\n", b"\r", b"\n", b"\0", b"xx", b"$", b"*", b"$0\r\n", b"$1\r\n", b"$-1\r\n", b"*0\r\n", b"*1\r\n", b"*-1\r\n",
    b"*2\r\n$1\r\na", b"*9999\r\n", b"*1000000000\r\n", b"$536870913\r\n", b":0\r\n", b"#f\r\n", b"_\r\n", b"+", b"-",
    b"%1\r\n*0\r\n", b"~1\r\n*0\r\n", b">1\r\n", b"|1\r\n", b"=5\r\ntxt:a\r\n", b"(1\r\n", b",1\r\n", b"!1\r\na\r\n",
    b"'", b'"', b"\\x4", b"PING\r\n", b"*1\r\n$4\r\nPING\r\n", b"*3\r\n$7\r\nPUBLISH\r\n$1\r\nc\r\n$1\r\nx\r\n",
]  # fmt: skip
SEEDS = [case.data for case in CASES]
LIMITS = (2**29, 2**29, 1, 100)


def mutated(chance: random.Random, seeds: list[bytes]) -> bytes:
    """Some seeds, joined and then damaged in a few places."""
    data = bytearray(b"".join(chance.choices(seeds, k=chance.randrange(1, 5))))
    for _ in range(chance.randrange(5)):
        at = chance.randrange(len(data) + 1)
        end = at + chance.choice((0, 0, 1, 1, 2, 5, 30))
        kind = chance.randrange(6)
        if kind == 0:
            data[at:end] = chance.choice(TOKENS)
        elif kind == 1 and at < len(data):
            data[at] ^= 1 << chance.randrange(8)
        elif kind == 2:
            del data[at:end]
        elif kind == 3:
            data[at:at] = data[at:end] * chance.randrange(4)
        elif kind == 4:
            digits = [place for place, byte in enumerate(data) if 0x30 <= byte <= 0x39]
            if digits:
                data[chance.choice(digits)] = chance.randrange(0x30, 0x3A)
        elif chance.random() < 0.05:
            data[at:at] = chance.choice(b"1a\0 '").to_bytes() * chance.randrange(65500, 65600)
    return bytes(data)


def chunks_of(chance: random.Random, data: bytes) -> list[bytes]:
    """The stream as the network might bring it."""
    return cut(data, (chance.randrange(len(data) + 1) for _ in range(chance.choice((0, 1, 2, 3, 8)))))


def check(chance: random.Random, data: bytes) -> None:
    """All parsers say the same of the stream, in one chunking, with one set of limits."""
    assert_all_ways_agree(chunks_of(chance, data), chance.random() < 0.8, chance.choice(LIMITS))
