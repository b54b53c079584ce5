"""Every declared command, with arguments that mean harm, alone and in transactions, over keys of every type."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random

import declared
from victim import OfServer, Victim

CALM_AFTER = 150
"""Attacks: then the keys are as at first."""
EXCLUDED = frozenset(
    b"shutdown debug migrate monitor sync psync replicaof slaveof client|kill client|pause client|reply config|set "
    b"config|rewrite acl|setuser acl|deluser acl|load acl|save multi exec discard module|load module|loadex "
    b"quit topic.export topic.commit failover".split()
)
"""What ends or holds the server by its meaning, or changes who may ask it."""
PUSHED = frozenset(
    b"subscribe psubscribe ssubscribe unsubscribe punsubscribe sunsubscribe topic.subscribe topic.unsubscribe "
    b"subscriber.attach subscriber.detach hello reset client|setname auth".split()
)
"""After these the connection is another one."""
MANY = 3000
_OFTEN = re.compile("Durable subscriber .* was away|is not on the disk after")
"""What a server says in good health, on a machine that is busy."""


class Commands(OfServer):
    """Attacks a server of its own in `folder`."""

    def __init__(self, folder: Path) -> None:
        super().__init__(Victim(folder, expected=lambda line: _OFTEN.search(line) is not None))
        self._commands = declared.commands(EXCLUDED)
        self._done = 0

    def attack(self, chance: Random) -> None:
        count = 1 if chance.random() < 0.9 else chance.randrange(2, 6)
        chosen = [chance.choice(self._commands) for _ in range(count)]
        requests = [declared.request_of(chance, command) for command in chosen]
        if count > 1:
            requests = [[b"MULTI"], *requests, [b"EXEC"]]
        what = ("; " if count > 1 else "").join(shown(words) for words in requests)
        if any(command.name in PUSHED for command in chosen):
            self.victim.forget_attacker()
            data = b"".join(_encoded(words) for words in requests)
            self.victim.watch(what, lambda: self.victim.throw(data))
        else:
            self.victim.watch(what, lambda: self.victim.ask(requests))
        self._done += 1
        if self._done % CALM_AFTER == 0:
            self.start_over()

    def fill(self) -> None:
        for words in _KEYS:
            reply = self.victim.control(*words)
            assert not isinstance(reply, Exception), (words, reply)


def _encoded(words: list[bytes]) -> bytes:
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in words)


def shown(words: list[bytes]) -> str:
    """A request for the reader; long words are cut."""
    return " ".join(
        word.decode() if word.isalnum() else repr(word)[1:] if len(word) < 80 else f"{word[:20]!r}*{len(word)}"
        for word in words
    )


_KEYS: list[list[bytes | str | int]] = [
    ["SET", "string", "hello"],
    ["SET", "number", "41"],
    ["RPUSH", "list", "a", "b", "1", "x" * 100],
    ["SADD", "set", "a", "b", "m1"],
    ["SADD", "integers", 1, 2, 300000],
    ["HSET", "hash", "f", "1", "a", "b", "f1", "1.5"],
    ["ZADD", "sorted", 1, "a", 2, "b", "inf", "m1", "-inf", "m77"],
    ["XADD", "topic", "1-1", "f", "v"],
    ["XADD", "topic", "5-5", "f", "v", "g", "w"],
    ["XGROUP", "CREATE", "topic", "g", 0],
    ["XREADGROUP", "GROUP", "g", "c", "STREAMS", "topic", ">"],
    ["GEOADD", "geo", "13.361389", "38.115556", "a", "15.087269", "37.502669", "b", "180", "85", "m1"],
    ["PFADD", "hll", *(f"e{number}" for number in range(300))],
    ["SETRANGE", "bits", 60, "\x01\x02"],
    ["SET", "expiring", "x", "EX", 1000],
    ["SET", "k_1", "1"],
    ["HSET", "k_2", "f", "2"],
    ["QUEUE.CREATE", "queue"],
    ["QUEUE.PUSH", "queue", "item"],
    ["RPUSH", "big-list", *(f"e{number}" for number in range(MANY))],
    ["SADD", "big-set", *(f"m{number}" for number in range(MANY))],
    ["HSET", "big-hash", *(word for number in range(MANY) for word in (f"f{number}", number))],
    ["ZADD", "big-sorted", *(word for number in range(MANY) for word in (number % 100, f"m{number}"))],
    *(["XADD", "big-topic", f"{number}-1", "f", "v" * 50] for number in range(1, 300)),
    ["XGROUP", "CREATE", "big-topic", "h", 0],
    ["XREADGROUP", "GROUP", "h", "d", "COUNT", 200, "STREAMS", "big-topic", ">"],
    ["SETRANGE", "big-string", 300_000, "end"],
]
