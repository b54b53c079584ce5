"""Groups of topics: the same random requests to ours and to the real server get the same replies, and the same keyspace
events follow from them.

Times may differ by as much as passes between two servers; how many nodes a radix tree has is Redis's own affair.
"""

from __future__ import annotations

import os
from random import Random

import pytest

from compat_tests.group_commands import TIMED, Requests, Words
from compat_tests.seeds import in_turn
from compat_tests.servers import SocketServer
from compat_tests.transcript import Frame, frames
from compat_tests.wire import Wire, request

REQUESTS = 1500
SEEDS = range(int(os.environ.get("RLITE_COMPAT_EXAMPLES", 400)) // 100)
TOLERANCE_MS = 20_000
"""Less than the steps in which the requests set times."""
_COUNTED = frozenset((b"length", b"entries-added", b"entries-read", b"lag", b"pel-count", b"pending", b"consumers"))
_NODES = frozenset((b"radix-tree-keys", b"radix-tree-nodes"))


def same_but_for_times(ours: Frame, theirs: Frame, key: object = None) -> bool:
    """Whether two replies tell the same. `key`: the name that stands before a number, in a map or in a list."""
    mine, yours = ours[1], theirs[1]
    if ours[0] != theirs[0] or isinstance(mine, list) != isinstance(yours, list):
        return False
    if isinstance(mine, list) and isinstance(yours, list):
        keys = [None, *[element[1] if element[0] == b"$" else None for element in mine]]
        pairs = zip(mine, yours, keys[: len(mine)], strict=False)
        return len(mine) == len(yours) and all(same_but_for_times(*pair) for pair in pairs)
    if ours[0] == b":" and key is not None and key not in _COUNTED:
        assert isinstance(mine, bytes) and isinstance(yours, bytes)
        return key in _NODES or abs(int(mine) - int(yours)) < TOLERANCE_MS
    return mine == yours


class Listener:
    """Hears of all that happens to keys."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        wire.say(b"PSUBSCRIBE", b"__key*", b"the end")
        wire.read(2)

    def heard_until_the_end(self) -> list[bytes]:
        heard = []
        while b"the end" not in (frame := self._wire.read()):
            heard.append(frame)
        return heard


@in_turn(SEEDS)
def test_groups_answer_what_redis_answers(ours: SocketServer, theirs: SocketServer, protocol: int, seed: int) -> None:
    wires = [server.wire(protocol) for server in (ours, theirs)]
    for wire in wires:
        assert wire.ask(b"CONFIG", b"SET", b"notify-keyspace-events", b"KEAn") == b"+OK\r\n"
        wire.ask(b"FLUSHALL")
        wire.ask(b"SET", b"text", b"x")
    listeners = [Listener(server.wire()) for server in (ours, theirs)]
    requests, said = Requests(seed), []
    for _ in range(REQUESTS):
        words = requests.next()
        said.append(words)
        mine, yours = (frames(wire.ask(*words))[0] for wire in wires)
        if words[0] in TIMED:
            assert same_but_for_times(mine, yours), f"{mine} is not {yours} after {said[-10:]}"
        else:
            assert mine == yours, f"after {said[-10:]}"
    for wire in wires:
        wire.ask(b"PUBLISH", b"the end", b"")
        wire.ask(b"CONFIG", b"SET", b"notify-keyspace-events", b"")
    heard = [listener.heard_until_the_end() for listener in listeners]
    assert len(heard[0]) > REQUESTS / 10
    assert heard[0] == heard[1]


WAITERS = 4
_SETS_IDS = frozenset((b"XSETID", b"SETID"))
"""Redis does not wake anybody for these, though there may be something new then; we may look and find it."""


def waiting_read(random: Random, waiter: int) -> Words:
    keys = [random.choice((b"a", b"b")) for _ in range(random.choice((1, 1, 2)))]
    if random.random() < 0.2:
        return [b"XREAD", b"BLOCK", b"0", b"STREAMS", *keys, *[b"$"] * len(keys)]
    options: Words = random.choice(([], [b"COUNT", b"2"], [b"NOACK"]))
    group, consumer = random.choice((b"g", b"h")), b"waiter %d" % waiter
    return [b"XREADGROUP", b"GROUP", group, consumer, *options, b"BLOCK", b"0", b"STREAMS", *keys, *[b">"] * len(keys)]


@pytest.mark.parametrize("seed", SEEDS)
def test_who_waits_gets_what_redis_gives_at_the_same_time(ours: SocketServer, theirs: SocketServer, seed: int) -> None:
    """Two answered pings on another connection say that all that was due has been written."""
    random, requests, protocol = Random(seed), Requests(seed), 2 + seed % 2
    servers = (ours, theirs)
    wires = [server.wire(protocol) for server in servers]
    waiters = [[server.wire(protocol) for _ in range(WAITERS)] for server in servers]
    for wire in wires:
        wire.ask(b"FLUSHALL")
        wire.ask(b"SET", b"text", b"x")
    waits = [False] * WAITERS
    served, said = 0, []
    for _ in range(REQUESTS):
        at = random.randrange(WAITERS)
        if not waits[at] and random.random() < 0.5:
            words = waiting_read(random, at)
            for side in waiters:
                side[at].send(request(*words))
            waits[at] = True
        else:
            words = requests.next()
            if _SETS_IDS & set(words[:2]):
                continue
            mine, yours = (wire.ask(*words) for wire in wires)
            assert words[0] in TIMED or mine == yours, f"after {said[-10:]}"
        said.append(words)
        for _ in range(2):
            for wire in wires:
                wire.ask(b"PING")
        for at in range(WAITERS):
            mine, yours = (side[at].take_what_came()[0] for side in waiters)
            assert mine == yours, f"{at} after {said[-20:]}"
            if mine:
                waits[at] = False
                served += 1
    assert served > REQUESTS / 10
