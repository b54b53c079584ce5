"""Users: the same random rules make the same users here and there, in the same words; the same random requests of such
users are refused or not for the same reason, are logged alike, and the same connections are closed when rules change.

Left out is whose commands stand in which order in a user's words: for Redis that is by chance.
"""

from __future__ import annotations

import os
import re

import pytest

from compat_tests.acl_rules import PASSWORDS, USERS, Requests, Rules, settled
from compat_tests.seeds import in_turn
from compat_tests.servers import SocketServer
from compat_tests.transcript import comparable
from compat_tests.wire import Wire

RULES = 400
REQUESTS = 700
SEEDS = range(int(os.environ.get("RLITE_COMPAT_EXAMPLES", 400)) // 100)
_BULK = re.compile(rb"\$\d+\r\n")
_CHANCE = re.compile(rb"(?<=age-seconds\r\n)(?:\$\d+\r\n|,)[0-9.e-]+|\$\d+\r\nid=[^\r]*")
_ERROR = re.compile(rb"^-.*", re.MULTILINE)


@pytest.fixture
def vocabulary(theirs: SocketServer) -> tuple[list[bytes], list[bytes]]:
    """All commands and categories of redis-server."""
    control = theirs.client()
    categories = [word for word in control.execute_command("ACL", "CAT")]
    commands: dict[bytes, None] = {}
    for category in categories:
        commands.update(dict.fromkeys(sorted(control.execute_command("ACL", "CAT", category))))
    control.close()
    return list(commands), categories


@pytest.fixture(autouse=True)
def no_users(ours: SocketServer, theirs: SocketServer) -> None:
    for server in (ours, theirs):
        control = server.client()
        control.execute_command("ACL", "DELUSER", *USERS)
        control.execute_command("ACL", "LOG", "RESET")
        control.close()


def told(wire: Wire) -> bytes:
    """What a user is, without what is by chance."""
    said = b"".join(wire.ask(b"ACL", b"GETUSER", user) for user in USERS) + wire.ask(b"ACL", b"LIST")
    return settled(_BULK.sub(b"", said).replace(b"\r\n", b" "))


@in_turn(SEEDS)
def test_users_are_what_they_are_in_redis(
    ours: SocketServer, theirs: SocketServer, protocol: int, vocabulary: tuple[list[bytes], list[bytes]], seed: int
) -> None:
    rules = Rules(seed, *vocabulary)
    sides = [server.wire(protocol) for server in (ours, theirs)]
    for _ in range(RULES):
        words = (b"ACL", b"SETUSER", rules.random.choice(USERS), *rules.sequence())
        replies = [wire.ask(*words) for wire in sides]
        assert replies[0] == replies[1], words
        mine, yours = map(told, sides)
        assert mine == yours, words
    for wire in sides:
        wire.close()


@pytest.mark.parametrize("seed", SEEDS)
def test_a_dry_run_says_what_redis_says(
    ours: SocketServer, theirs: SocketServer, vocabulary: tuple[list[bytes], list[bytes]], seed: int
) -> None:
    rules, requests = Rules(seed, *vocabulary), Requests(seed)
    sides = [server.wire() for server in (ours, theirs)]
    for _ in range(RULES):
        change = (b"ACL", b"SETUSER", rules.random.choice(USERS), *rules.sequence())
        assert sides[0].ask(*change) == sides[1].ask(*change), change
        for _ in range(8):
            words = (b"ACL", b"DRYRUN", rules.random.choice(USERS), *requests.next())
            replies = [wire.ask(*words) for wire in sides]
            assert replies[0] == replies[1], (words, told(sides[0]))
    for wire in sides:
        wire.close()


class Side:
    """One server: one who makes rules, and users who obey them."""

    def __init__(self, server: SocketServer, protocol: int) -> None:
        self._server = server
        self._protocol = protocol
        self._control = server.wire()
        self._control.ask(b"FLUSHALL")
        self._users = [server.wire(protocol) for _ in USERS]

    def rule(self, words: tuple[bytes, ...]) -> bytes:
        return self._control.ask(*words)

    def say(self, at: int, words: tuple[bytes, ...]) -> None:
        try:
            self._users[at].say(*words)
        except OSError:
            pass  # closed, as `told` will say

    def told(self) -> list[tuple[bytes, bool]]:
        """What each connection has been told, and whether it still is one. Who was closed comes again."""
        for _ in range(2):
            self._control.ask(b"PING")
        found = []
        for at, wire in enumerate(self._users):
            came, is_open = wire.take_what_came()
            found.append((came, is_open))
            if not is_open:
                wire.close()
                self._users[at] = self._server.wire(self._protocol)
        return found

    def log(self) -> bytes:
        return _CHANCE.sub(b"", self._control.ask(b"ACL", b"LOG", b"30"))

    def close(self) -> None:
        for wire in (self._control, *self._users):
            wire.close()


def same(words: tuple[bytes, ...], mine: bytes, yours: bytes) -> bool:
    """CLIENT ID and HELLO tell ids; what stands in an EXEC may do so, too, and names in no order: of that the refusals
    must be the same."""
    if words[0] in (b"CLIENT", b"HELLO"):
        return mine[:1] == yours[:1]
    if words[0] == b"EXEC":
        return _ERROR.findall(mine) == _ERROR.findall(yours)
    return comparable(mine, True) == comparable(yours, True)


@in_turn(SEEDS)
def test_users_may_do_what_they_may_do_in_redis(
    ours: SocketServer, theirs: SocketServer, protocol: int, vocabulary: tuple[list[bytes], list[bytes]], seed: int
) -> None:
    rules, requests = Rules(seed, *vocabulary), Requests(seed)
    sides = [Side(ours, protocol), Side(theirs, protocol)]
    for user in USERS:
        for side in sides:
            side.rule((b"ACL", b"SETUSER", user, b"on", b"nopass", b"~*", b"&*", b"+@all"))
    said: list[object] = []
    for number in range(REQUESTS):
        if rules.random.random() < 0.12:
            change: tuple[bytes, ...] = (b"ACL", b"SETUSER", rules.random.choice(USERS), *rules.sequence())
            if rules.random.random() < 0.3:
                change = (*change, b"on", b"nopass", b"+@pubsub", b"+@all", b"resetchannels", b"&news*", b"&chat.*")
            elif rules.random.random() < 0.1:
                change = (b"ACL", b"DELUSER", rules.random.choice(USERS))
            said.append(change)
            replies = [side.rule(change) for side in sides]
            assert replies[0] == replies[1], said[-10:]
        at = rules.random.randrange(len(USERS))
        words = requests.next()
        if rules.random.random() < 0.15:
            words = (b"AUTH", USERS[at], rules.random.choice(PASSWORDS))
        said.append((at, words))
        for side in sides:
            side.say(at, words)
        for mine, yours in zip(*(side.told() for side in sides), strict=True):
            assert mine[1] == yours[1], f"one is closed, the other is not, after {said[-12:]}"
            assert same(words, mine[0], yours[0]), f"{mine} is not {yours} after {said[-12:]}"
        if number % 20 == 0:
            assert sides[0].log() == sides[1].log(), said[-25:]
    for side in sides:
        side.close()
