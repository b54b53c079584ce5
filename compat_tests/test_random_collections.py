"""Lists and sets: the same random requests to ours and to the real server get the same replies."""

from __future__ import annotations

import os
import random

import pytest

from compat_tests.servers import SocketServer
from compat_tests.transcript import Frame, frames

REQUESTS = 1500
SEEDS = range(int(os.environ.get("RLITE_COMPAT_EXAMPLES", 400)) // 100)
KEYS = [b"l1", b"l2", b"s1", b"s2", b"text", b"topic"]
VALUES = [b"a", b"b", b"c", b"", b"long" * 30]
NUMBERS = [b"0", b"1", b"-1", b"2", b"-3", b"100", b"x", b"", b"9223372036854775808"]
TIMEOUTS = [b"0.001", b"-1", b"x", b"0.01", b"1e400", b"0x1p-9", b" 1"]
UNORDERED = (b"smembers", b"spop")


def request(luck: random.Random) -> list[bytes]:
    """One that makes sense, mostly."""
    key = luck.choice(KEYS)
    match luck.randrange(9):
        case 0 | 1:
            word = luck.choice([b"lpush", b"rpush", b"lpushx", b"rpushx", b"sadd", b"srem", b"smismember"])
            return [word, key, *[luck.choice(VALUES) for _ in range(luck.randrange(4))]]
        case 2:
            counted = [luck.choice(NUMBERS)] if luck.random() < 0.4 else []
            return [luck.choice([b"lpop", b"rpop"]), key, *counted]
        case 3:
            return [luck.choice([b"lrange", b"ltrim"]), key, luck.choice(NUMBERS), luck.choice(NUMBERS)]
        case 4:
            return [b"lrem", key, luck.choice(NUMBERS), luck.choice(VALUES)]
        case 5:
            return [luck.choice([b"blpop", b"brpop"]), key, luck.choice(KEYS), luck.choice(TIMEOUTS)]
        case 6:
            return [b"spop", key, luck.choice([b"0", b"100", b"-1", b"x"])]
        case 7:
            return [luck.choice([b"rename", b"copy"]), key, luck.choice(KEYS)]
        case _:
            word = luck.choice([b"llen", b"scard", b"smembers", b"type", b"del", b"exists", b"persist", b"lindex"])
            return [word, key, luck.choice(NUMBERS)] if word == b"lindex" else [word, key]


def comparable(words: list[bytes], frame: Frame) -> Frame:
    """A reply; the order of a set's members means nothing."""
    kind, content = frame
    if words[0] in UNORDERED and isinstance(content, list):
        return kind, sorted(content, key=repr)
    return frame


@pytest.mark.parametrize("seed", SEEDS)
def test_lists_and_sets_answer_what_redis_answers(
    ours: SocketServer, theirs: SocketServer, protocol: int, seed: int
) -> None:
    wires = [server.wire(protocol) for server in (ours, theirs)]
    for wire in wires:
        wire.ask(b"FLUSHALL")
        wire.ask(b"SET", b"text", b"x")
        wire.ask(b"XADD", b"topic", b"1-1", b"a", b"1")
    luck = random.Random(seed)
    said: list[list[bytes]] = []
    for _ in range(REQUESTS):
        words = request(luck)
        said.append(words)
        mine, yours = (comparable(words, frames(wire.ask(*words))[0]) for wire in wires)
        assert mine == yours, f"after {said[-10:]}"
