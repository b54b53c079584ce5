"""Keys of all types, with and without a pipeline. What a command takes out, another one puts in: the two go by turns,
so that a collection stays as large as it was. Redis keeps an append-only file synced every second, as our store does.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from hashlib import sha1
from itertools import cycle, islice
from typing import NamedTuple

from .. import wire
from ..client import WrongAnswer
from ..contestant import Server
from ..load import Batch
from ..shape import Effort, Figure, Reading, Shape, Target, command_reading
from ..traffic import Appender, alternate, drive
from .append import PERSISTENT

CONNECTIONS = 50
DEPTH = 64
BATCHES = 16
ALONE = 4096
"""Requests that are asked again and again where there is no pipeline,"""
NEW_A_SECOND = 300_000
"""and for each second, where half of them put in something new: if they came round, the collection would be drained."""
MEMBERS = 10_000
AT_ONCE = 100
HASHES, FIELDS = 1000, 10
VALUE = b"v" * 100
SHORT_VALUE = b"v" * 20
SCRIPT = b"redis.call('SET', KEYS[1], ARGV[1]) return redis.call('GET', KEYS[1])"
SEED = 20_26

Asked = tuple[bytes, int]
"""A request, and how many lines its reply has."""


def _member(number: int) -> bytes:
    return b"element:%06d" % number


def _any(chance: random.Random) -> bytes:
    return _member(chance.randrange(MEMBERS))


def _new(chance: random.Random) -> bytes:
    """One that has not been there."""
    return b"new:%010d" % chance.randrange(10**10)


def _score(chance: random.Random) -> bytes:
    return b"%d" % chance.randrange(10**6)


def _field(chance: random.Random) -> tuple[bytes, bytes]:
    return b"h:%04d" % chance.randrange(HASHES), b"f:%d" % chance.randrange(FIELDS)


def _key(chance: random.Random) -> bytes:
    return b"key:%04d" % chance.randrange(1000)


def _members() -> Iterator[list[bytes]]:
    for first in range(0, MEMBERS, AT_ONCE):
        yield [_member(number) for number in range(first, first + AT_ONCE)]


def _ask(lines: int, *words: bytes) -> Asked:
    return wire.command(*words), lines


def _some(chance: random.Random) -> Asked:
    first = chance.randrange(MEMBERS - AT_ONCE)
    return _ask(1 + 2 * AT_ONCE, b"ZRANGE", b"sorted", b"%d" % first, b"%d" % (first + AT_ONCE - 1))


def _with_scores(members: Iterable[bytes]) -> list[bytes]:
    return [word for member in members for word in (b"%d" % int(member[-6:]), member)]


LIST = [wire.command(b"RPUSH", b"list", *members) for members in _members()]
SET = [wire.command(b"SADD", b"set", *members) for members in _members()]
HASH = [wire.command(b"HSET", b"hash", *[word for name in names for word in (name, VALUE)]) for names in _members()]
SORTED_SET = [wire.command(b"ZADD", b"sorted", *_with_scores(members)) for members in _members()]
SMALL_HASHES = [
    wire.command(b"HSET", b"h:%04d" % number, *[word for at in range(FIELDS) for word in (b"f:%d" % at, SHORT_VALUE)])
    for number in range(HASHES)
]
STRINGS = [wire.command(b"SET", b"key:%04d" % number, VALUE) for number in range(1000)]


class Work(NamedTuple):
    """One row of the table."""

    name: str
    sentence: str
    before: Sequence[bytes]
    """What makes that of which it is."""
    ask: Callable[[random.Random], Asked]
    put_back: Callable[[random.Random], Asked] | None = None
    """What is asked by turns with it."""


WORKS: tuple[Work, ...] = (
    Work("incr", "INCR of 1,000 counters", (), lambda chance: _ask(1, b"INCR", b"counter:" + _key(chance))),
    Work(
        "lpush-rpop",
        "LPUSH and RPOP by turns, a list of 10,000 elements",
        LIST,
        lambda chance: _ask(2, b"RPOP", b"list"),
        lambda chance: _ask(1, b"LPUSH", b"list", _any(chance)),
    ),
    Work("lpush", "LPUSH to one list", (), lambda chance: _ask(1, b"LPUSH", b"pushed", _any(chance))),
    Work("sadd", "SADD to a set of 10,000 members", SET, lambda chance: _ask(1, b"SADD", b"set", _any(chance))),
    Work(
        "sadd-spop",
        "SADD and SPOP by turns, a set of 10,000 members",
        SET,
        lambda chance: _ask(2, b"SPOP", b"set"),
        lambda chance: _ask(1, b"SADD", b"set", _new(chance)),
    ),
    Work(
        "hset",
        "HSET of 100 bytes, a hash of 10,000 fields",
        HASH,
        lambda chance: _ask(1, b"HSET", b"hash", _any(chance), VALUE),
    ),
    Work(
        "hget",
        "HGET of 100 bytes, a hash of 10,000 fields",
        HASH,
        lambda chance: _ask(2, b"HGET", b"hash", _any(chance)),
    ),
    Work(
        "hset-small",
        "HSET of 20 bytes, 1,000 hashes of 10 fields",
        SMALL_HASHES,
        lambda chance: _ask(1, b"HSET", *_field(chance), SHORT_VALUE),
    ),
    Work(
        "hget-small",
        "HGET of 20 bytes, 1,000 hashes of 10 fields",
        SMALL_HASHES,
        lambda chance: _ask(2, b"HGET", *_field(chance)),
    ),
    Work(
        "zadd",
        "ZADD of other scores, a sorted set of 10,000 members",
        SORTED_SET,
        lambda chance: _ask(1, b"ZADD", b"sorted", _score(chance), _any(chance)),
    ),
    Work(
        "zadd-zpopmin",
        "ZADD and ZPOPMIN by turns, a sorted set of 10,000 members",
        SORTED_SET,
        lambda chance: _ask(5, b"ZPOPMIN", b"sorted"),
        lambda chance: _ask(1, b"ZADD", b"sorted", _score(chance), _new(chance)),
    ),
    Work("zrange-100", "ZRANGE of 100, a sorted set of 10,000 members", SORTED_SET, _some),
    Work(
        "mset-10",
        "MSET of 10 strings of 100 bytes",
        STRINGS,
        lambda chance: _ask(1, b"MSET", *[word for _ in range(10) for word in (_key(chance), VALUE)]),
    ),
    Work(
        "evalsha",
        "EVALSHA of a script that calls SET and GET",
        [wire.command(b"SCRIPT", b"LOAD", SCRIPT)],
        lambda chance: _ask(2, b"EVALSHA", sha1(SCRIPT).hexdigest().encode(), b"1", _key(chance), VALUE),
    ),
)


def _is_answer(got: bytes) -> bool:
    """Whether it is a whole reply, neither an error nor nothing."""
    return got[-1:] == b"\n" and got[:1] != b"-" and got[:2] not in (b"$-", b"*0")


class Commands(Shape):
    """One kind of work."""

    options = PERSISTENT + "everysec"

    def __init__(self, work: Work, depth: int) -> None:
        how = "no pipeline" if depth == 1 else f"{depth}-deep pipelines"
        self.name = f"{work.name}-50" if depth == 1 else f"{work.name}-pipelined-50"
        self.sentence = f"{work.sentence}, 50 connections, {how}; fsync every second"
        self.figures = (Figure("rate", "commands/s", target=Target(0.85 if depth == 1 else 0.6)),)
        self._work, self._depth = work, depth

    def asked(self, connection: int) -> Iterator[Asked]:
        """Half a pipeline puts in what the other half takes out; without one each does so by turns."""
        chance = random.Random(SEED + connection)
        work, half = self._work, max(1, self._depth // 2)
        while True:
            for _ in range(half):
                yield (work.put_back or work.ask)(chance)
            for _ in range(half):
                yield work.ask(chance)

    def batches(self, connection: int) -> Iterator[Batch]:
        asked = self.asked(connection)
        made = []
        for _ in range(BATCHES):
            some = [next(asked) for _ in range(self._depth)]
            made.append(Batch(b"".join([one for one, _ in some]), b"", self._depth, lines=sum(n for _, n in some)))
        return cycle(made)

    def run(self, server: Server, effort: Effort) -> tuple[Reading, ...]:
        with ExitStack() as stack:
            clients = [stack.enter_context(server.connect()) for _ in range(CONNECTIONS)]
            for request in self._work.before:
                if clients[0].ask(request).startswith(b"-"):
                    raise WrongAnswer(f"{request[:40]!r} was refused")
            if self._depth == 1:
                asked = self.asked(0)
                count = ALONE if self._work.put_back is None else max(ALONE, int(NEW_A_SECOND * effort.seconds))
                requests = cycle([request for request, _ in islice(asked, count)])
                return (command_reading(alternate(server, clients, requests, _is_answer, effort.seconds)),)
            publishers = [Appender(client, self.batches(number)) for number, client in enumerate(clients)]
            return (command_reading(drive(server, publishers, (), effort.seconds)),)


SHAPES: tuple[Shape, ...] = tuple(Commands(work, depth) for work in WORKS for depth in (1, DEPTH))
