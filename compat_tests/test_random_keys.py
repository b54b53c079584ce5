"""Strings and keys: the same random requests to ours and to the real server get the same replies, the same keyspace
events and invalidations, in the same order, and leave the same keys.

Two connections take turns; in RESP3 one of them listens to some of the events itself, and so shows on which side of its
replies they stand. Left out is MGET: there Redis pushes events into the midst of the reply.
"""

from __future__ import annotations

import os

from compat_tests.key_commands import KEYS, Requests, Words
from compat_tests.seeds import in_turn
from compat_tests.servers import SocketServer
from compat_tests.transcript import Frame, frames

REQUESTS = 1500
DATABASES = (b"0", b"1", b"2", b"15")
"""Those that the requests can reach."""
SEEDS = range(int(os.environ.get("RLITE_COMPAT_EXAMPLES", 400)) // 100)
TOLERANCE_MS = 20_000
"""Less than the least time that the requests set."""
_TIMED = (b"TTL", b"PTTL", b"EXPIRETIME", b"PEXPIRETIME", b"EXEC")


class Side:
    """One server: two who say something, and one who listens."""

    def __init__(self, server: SocketServer, protocol: int) -> None:
        self._control = server.wire()
        for words in ([b"CONFIG", b"SET", b"notify-keyspace-events", b"KEAnm"], [b"FLUSHALL"],
                      [b"DEBUG", b"SET-ACTIVE-EXPIRE", b"0"]):  # fmt: skip
            assert self._control.ask(*words) == b"+OK\r\n"
        self._speakers = [server.wire(protocol), server.wire(protocol)]
        self._listener = server.wire()
        self._listener.ask(b"PSUBSCRIBE", b"__key*")
        if protocol == 3:
            self._speakers[1].ask(b"PSUBSCRIBE", b"__key*@?__:[ab]")

    def say(self, at: int, words: Words) -> None:
        self._speakers[at].say(*words)

    def told(self) -> list[list[Frame]]:
        """What each connection has been told."""
        for _ in range(2):
            self._control.ask(b"PING")
        return [frames(wire.take_what_came()[0]) for wire in (*self._speakers, self._listener)]

    def digest(self) -> bytes:
        """Of all keys; first those whose time is over are noticed, which Redis would count in."""
        for database in DATABASES:
            assert self._control.ask(b"SELECT", database) == b"+OK\r\n"
            self._control.ask(b"EXISTS", *KEYS)
        return self._control.ask(b"DEBUG", b"DIGEST")

    def close(self) -> None:
        self._control.ask(b"CONFIG", b"SET", b"notify-keyspace-events", b"")
        self._control.ask(b"DEBUG", b"SET-ACTIVE-EXPIRE", b"1")


def same(mine: Frame, yours: Frame, timed: bool) -> bool:
    """`timed`: numbers in it may be times, which go on between two servers."""
    ours, theirs = mine[1], yours[1]
    if not timed or mine[0] != yours[0]:
        return mine == yours
    if isinstance(ours, list) and isinstance(theirs, list):
        return len(ours) == len(theirs) and all(same(*pair, timed) for pair in zip(ours, theirs, strict=True))
    if mine[0] == b":":
        assert isinstance(ours, bytes) and isinstance(theirs, bytes)
        return ours == theirs or (int(ours) > TOLERANCE_MS and abs(int(ours) - int(theirs)) < TOLERANCE_MS)
    return ours == theirs


@in_turn(SEEDS)
def test_keys_answer_what_redis_answers(ours: SocketServer, theirs: SocketServer, protocol: int, seed: int) -> None:
    sides = [Side(server, protocol) for server in (ours, theirs)]
    requests, said = Requests(seed), []
    for number in range(REQUESTS):
        at, words = requests.connection(), requests.next()
        said.append((at, words))
        for side in sides:
            side.say(at, words)
        timed = words[0] in _TIMED
        for mine, yours in zip(*(side.told() for side in sides), strict=True):
            assert same((b"*", mine), (b"*", yours), timed), f"{mine} is not {yours} after {said[-10:]}"
        if number % 50 == 0:
            assert sides[0].digest() == sides[1].digest(), f"after {said[-50:]}"
    for side in sides:
        side.close()
