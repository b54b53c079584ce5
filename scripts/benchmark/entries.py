"""The entries that are added: one field, and 100 bytes that no two of thousands have in common.

The bytes are such as redis-benchmark makes them, random ones of 64 characters, but not the same in each command: a
rewritten AOF is compressed, and would hold each of them once. They come again so late that no compressor sees it.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cache
from itertools import count, cycle

from . import wire
from .client import Client, WrongAnswer
from .load import Batch

FIELD = b"value"
PAYLOAD_BYTES = 100
SEED = 20_26
FIRST_CHARACTER = ord("0")
DIFFERENT = 8192
AT_ONCE = 512
WINDOW = 4  # of such requests, while a topic is filled
FIRST_NUMBER = 1_000_000
"""Of the ids that the generator gives itself: all of one length."""

_topics = count(1)


@cache
def payloads() -> list[bytes]:
    chance = random.Random(SEED)
    characters = range(FIRST_CHARACTER, FIRST_CHARACTER + 64)
    return [bytes(chance.choices(characters, k=PAYLOAD_BYTES)) for _ in range(DIFFERENT)]


def new_topic() -> bytes:
    """A name that no other round of this run has used: all are equally long."""
    return b"topic:%06d" % next(_topics)


def addition(topic: bytes, entry_id: bytes, payload: bytes) -> bytes:
    return wire.command(b"XADD", topic, entry_id, FIELD, payload)


def batches(topic: bytes, depth: int) -> Iterator[Batch]:
    """Pipelines of XADD to one topic."""
    texts = payloads()
    return cycle(
        [
            Batch(b"".join([addition(topic, b"*", text) for text in texts[first : first + depth]]), b"", depth)
            for first in range(0, DIFFERENT, depth)
        ]
    )


def numbered_id(number: int) -> bytes:
    return b"%d-0" % (FIRST_NUMBER + number)


def numbered(number: int) -> bytes:
    """The entry of this number, as XRANGE sends it."""
    return wire.entry(numbered_id(number), FIELD, payloads()[number % DIFFERENT])


def fill_numbered(client: Client, topic: bytes, entries: int) -> None:
    """Adds entries whose ids are known, from number 0 on."""
    texts = payloads()
    for first in range(0, entries, AT_ONCE):
        numbers = range(first, min(first + AT_ONCE, entries))
        client.call(
            b"".join([addition(topic, numbered_id(number), texts[number % DIFFERENT]) for number in numbers]),
            b"".join([wire.bulk(numbered_id(number)) for number in numbers]),
        )


def fill(client: Client, topic: bytes, entries: int) -> None:
    """Adds so many entries as fast as it goes, and sees that they are there."""
    pipelines = batches(topic, AT_ONCE)
    texts = payloads()
    to_send, awaited = entries, wire.LINES_OF_AN_ID * entries
    while awaited:
        while to_send and awaited - wire.LINES_OF_AN_ID * to_send < WINDOW * AT_ONCE * wire.LINES_OF_AN_ID:
            depth = min(to_send, AT_ONCE)
            client.send(
                next(pipelines).wire
                if depth == AT_ONCE
                else b"".join([addition(topic, b"*", text) for text in texts[:depth]])
            )
            to_send -= depth
        replies = client.socket.recv(1 << 20)
        if not replies or replies.startswith(b"-E") or b"\n-" in replies:
            raise WrongAnswer(f"XADD was answered {replies[:200]!r}")
        awaited -= replies.count(b"\n")
    check_length(client, topic, entries)


def check_length(client: Client, topic: bytes, entries: int) -> None:
    """Nothing was lost, and nothing added twice."""
    client.call(wire.command(b"XLEN", topic), wire.integer(entries))
