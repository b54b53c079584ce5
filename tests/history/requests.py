"""What clients ask for at random, and what the replies mean. Every value that is written is written once in a history,
so that whoever reads it knows who has written it."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from tests.history import spaces
from tests.history.words import Request, Words, bare
from tests.soak.worker import CHANNELS

GROUP = "group"
COPIES = 2
"""How many keys there are of each form."""
LIVES_APART = 10**6
PADDING_BYTES = (0, 0, 0, 10, 10, 300, 5000)
BLOCK_S = "0.05"
EVENTS = "event:0"
"""There is one topic of events."""
PASSWORD = "secret"
LAST_EVENT = "last"
"""The type of events that tell that all is over."""


class Author:
    """One client's requests."""

    def __init__(self, name: str, life: int, dice: random.Random) -> None:
        self._name = name
        self._life = life
        self.dice = dice
        self.taken: list[tuple[str, str]] = []
        """Entries that it was given and has not acknowledged: topic, id."""

    def next(self, number: int) -> Request:
        key = self.dice.choice(list(FORMS)) + str(self.dice.randrange(COPIES))
        return FORMS[key[:-1]](self, key, number)

    def value(self, number: int, part: int = 0) -> str:
        padding = "x" * self.dice.choice(PADDING_BYTES)
        return f"{self._life}.{number}.{part}:{padding}"

    # -- registers

    def text(self, key: str, number: int) -> Request:
        if self.dice.random() < 0.5:
            return Request("read", key, None, [("GET", key)], lambda replies: bare(replies[0]))
        value = self.value(number)
        return Request("write", key, bare(value), [("SET", key, value)], _nothing)

    def two_fields(self, key: str, number: int) -> Request:
        """Written at once, so whoever reads both reads one value."""
        if self.dice.random() < 0.5:
            return Request("read", key, None, [("HMGET", key, "a", "b")], lambda replies: _same(replies[0]))
        value = self.value(number)
        return Request("write", key, bare(value), [("HSET", key, "a", value, "b", value)], _nothing)

    def transaction(self, key: str, number: int) -> Request:
        """A string, a field and the end of a list, all written in one transaction."""
        hash, log = f"{key}:hash", f"{key}:list"
        if self.dice.random() < 0.5:
            commands: list[Words] = [("GET", key), ("HGET", hash, "f"), ("LINDEX", log, "-1")]
            return Request("read", key, None, commands, _same)
        value = self.value(number)
        commands = [("SET", key, value), ("HSET", hash, "f", value), ("RPUSH", log, value), ("LTRIM", log, "-9", "-1")]
        return Request("write", key, bare(value), commands, _nothing)

    def score(self, key: str, number: int) -> Request:
        if self.dice.random() < 0.5:
            return Request("read", key, None, [("ZSCORE", key, "m")], lambda replies: _from_score(replies[0]))
        score = self._life * LIVES_APART + number
        return Request("write", key, f"{self._life}.{number}.0", [("ZADD", key, str(score), "m")], _nothing)

    # -- counters

    def _counter(self, key: str, add: Words, look: Words) -> Request:
        if self.dice.random() < 0.3:
            return Request("count", key, None, [look], lambda replies: int(replies[0] or 0))
        return Request("add", key, 1, [add], lambda replies: int(replies[0]))

    def integer(self, key: str, number: int) -> Request:
        return self._counter(key, ("INCR", key), ("GET", key))

    def field(self, key: str, number: int) -> Request:
        return self._counter(key, ("HINCRBY", key, "n", "1"), ("HGET", key, "n"))

    def member(self, key: str, number: int) -> Request:
        return self._counter(key, ("ZINCRBY", key, "1", "n"), ("ZSCORE", key, "n"))

    # -- bags: what is put there is taken once

    def _bag(self, key: str, number: int, put: Callable[[list[str]], Words], take: Words) -> Request:
        if self.dice.random() < 0.45:
            return Request("take", key, None, [take], lambda replies: _taken(replies[0]))
        values = [self.value(number, part) for part in range(self.dice.choice([1, 1, 1, 3]))]
        return Request("put", key, [bare(value) for value in values], [put(values)], _nothing)

    def queue(self, key: str, number: int) -> Request:
        take = self.dice.choice([("RPOP", key), ("BRPOP", key, BLOCK_S)])
        return self._bag(key, number, lambda values: ("LPUSH", key, *values), take)

    def set(self, key: str, number: int) -> Request:
        return self._bag(key, number, lambda values: ("SADD", key, *values), ("SPOP", key))

    def sorted_set(self, key: str, number: int) -> Request:
        def put(values: list[str]) -> Words:
            return ("ZADD", key, *(word for value in values for word in (str(self.dice.randrange(50)), value)))

        return self._bag(key, number, put, self.dice.choice([("ZPOPMIN", key), ("ZPOPMAX", key)]))

    # -- topics and their groups

    def topic(self, key: str, number: int) -> Request:
        mine = [at for at, (topic, _) in enumerate(self.taken) if topic == key]
        kinds = ["append", "append", "append", "deliver", "tail", "claim"] + ["acknowledge"] * (4 if mine else 0)
        kind = self.dice.choice(kinds)
        count = str(self.dice.choice([1, 3, 20]))
        if kind == "append":
            value = self.value(number)
            return Request(kind, key, bare(value), [("XADD", key, "*", "v", value)], lambda got: got[0].decode())
        if kind == "tail":
            return Request(kind, key, int(count), [("XREVRANGE", key, "+", "-", "COUNT", count)], _entries)
        if kind == "acknowledge":
            _, id = self.taken.pop(self.dice.choice(mine))
            return Request(kind, key, id, [("XACK", key, GROUP, id)], lambda got: int(got[0]))
        if kind == "claim":
            commands: list[Words] = [("XAUTOCLAIM", key, GROUP, self._name, "0", "0-0", "COUNT", count)]
            return Request(kind, key, self._name, commands, lambda got: self._given(key, _entries([got[0][1]])))
        block = self.dice.choice([(), ("BLOCK", "50")])
        commands = [("XREADGROUP", "GROUP", GROUP, self._name, "COUNT", count, *block, "STREAMS", key, ">")]
        return Request(
            kind, key, self._name, commands, lambda got: self._given(key, _entries([got[0][0][1]]) if got[0] else [])
        )

    def _given(self, key: str, entries: list[tuple[str, str]]) -> list[tuple[str, str]]:
        self.taken += [(key, id) for id, _ in entries]
        return entries

    # -- several keys at once

    def space(self, key: str, number: int) -> Request:
        return spaces.request(self, key, number)

    # -- rights

    def right(self, key: str, number: int) -> Request:
        """Somebody has it, and uses it."""
        user = user_of(key)
        kind = self.dice.choice(["use", "use", "use", "use", "grant", "revoke"])
        if kind == "use":
            return Request(kind, key, user, [("GET", key)], lambda replies: True, user)
        return Request(kind, key, user, [("ACL", "SETUSER", user, "+get" if kind == "grant" else "-get")], _nothing)

    # -- events

    def event(self, key: str, number: int) -> Request:
        """Posted over HTTP, or appended by a Redis client."""
        value = self.value(number)
        if self.dice.random() < 0.7:
            return Request("append", EVENTS, bare(value), [("thing", value)], lambda got: got[0], is_event=True)
        command = ("XADD", "events", "*", "type", "thing", "body", value)
        return Request("append", EVENTS, bare(value), [command], lambda got: got[0].decode())

    # -- messages

    def message(self, key: str, number: int) -> Request:
        channel = self.dice.choice(CHANNELS)
        payload = f"{self._name}:{number}:" + "x" * self.dice.choice(PADDING_BYTES)
        return Request("publish", channel, number, [("PUBLISH", channel, payload)], lambda got: int(got[0]))


FORMS: dict[str, Callable[[Author, str, int], Request]] = {
    "register:text:": Author.text,
    "register:fields:": Author.two_fields,
    "register:transaction:": Author.transaction,
    "register:score:": Author.score,
    "counter:integer:": Author.integer,
    "counter:field:": Author.field,
    "counter:member:": Author.member,
    "queue:": Author.queue,
    "set:": Author.set,
    "sorted:": Author.sorted_set,
    "topic:": Author.topic,
    "topic:other:": Author.topic,
    "message:": Author.message,
    "space:": Author.space,
    "right:": Author.right,
    "event:": Author.event,
}


def keys(form: str) -> list[str]:
    """All of this form."""
    return [f"{form}{copy}" for copy in range(COPIES)]


def last_words() -> list[Request]:
    """What is asked when all is over: everything that is there."""
    requests = []
    for form, commands in {
        "register:text:": lambda key: [("GET", key)],
        "register:fields:": lambda key: [("HGET", key, "a"), ("HGET", key, "b")],
        "register:transaction:": lambda key: [
            ("GET", key),
            ("HGET", f"{key}:hash", "f"),
            ("LINDEX", f"{key}:list", "-1"),
        ],
    }.items():
        requests += [Request("read", key, None, commands(key), _same) for key in keys(form)]
    for key in keys("register:score:"):
        requests.append(Request("read", key, None, [("ZSCORE", key, "m")], lambda got: _from_score(got[0])))
    for form, words in {"integer": ("GET",), "field": ("HGET", "n"), "member": ("ZSCORE", "n")}.items():
        for key in keys(f"counter:{form}:"):
            command = (words[0], key, *words[1:])
            requests.append(Request("count", key, None, [command], lambda got: int(got[0] or 0)))
    for form, (name, *rest) in {
        "queue:": ("LRANGE", "0", "-1"),
        "set:": ("SMEMBERS",),
        "sorted:": ("ZRANGE", "0", "-1"),
    }.items():
        for key in keys(form):
            requests.append(
                Request("rest", key, None, [(name, key, *rest)], lambda got: [bare(one) for one in got[0]])
            )
    for key in keys("topic:") + keys("topic:other:"):
        requests.append(Request("entries", key, None, [("XRANGE", key, "-", "+")], _entries))
        pending: list[Words] = [("XPENDING", key, GROUP, "-", "+", "1000000")]
        requests.append(Request("pending", key, None, pending, lambda got: [_pending(one) for one in got[0]]))
        requests.append(Request("delivered", key, None, [("XINFO", "GROUPS", key)], _last_delivered))
    requests += [spaces.read_all(key) for key in keys("space:")]
    requests.append(Request("entries", EVENTS, None, [("XRANGE", "events", "-", "+")], _events))
    return requests


def preparations() -> list[Words]:
    """What is done before all else."""
    groups = [("XGROUP", "CREATE", key, GROUP, "0", "MKSTREAM") for key in keys("topic:") + keys("topic:other:")]
    users = [("ACL", "SETUSER", user_of(key), "on", f">{PASSWORD}", "~*", "+ping", "+get") for key in keys("right:")]
    return [*groups, *users]


def user_of(key: str) -> str:
    """Whose right it is."""
    return key.replace("right:", "user-")


def _nothing(replies: list[Any]) -> None:
    return None


def _same(replies: list[Any]) -> str | None:
    found = {bare(reply) for reply in replies}
    return found.pop() if len(found) == 1 else f"torn {sorted(map(str, found))}"


def _from_score(reply: bytes | None) -> str | None:
    if reply is None:
        return None
    life, number = divmod(int(reply), LIVES_APART)
    return f"{life}.{number}.0"


def _taken(reply: Any) -> str | None:
    """RPOP and SPOP answer with a value, BRPOP with its key before it, ZPOPMIN with its score behind it."""
    if isinstance(reply, list):
        return bare(next((one for one in reply if b":" in one and b"." in one), None))
    return bare(reply)


def _entries(replies: list[Any]) -> list[tuple[str, str]]:
    return [(id.decode(), str(bare(fields[1]))) for id, fields in replies[0] or ()]


def _events(replies: list[Any]) -> list[tuple[str, str]]:
    """The last of all are not counted: they only tell that all is over."""
    entries = [(id.decode(), fields[1], bare(fields[3])) for id, fields in replies[0]]
    return [(id, str(body)) for id, type, body in entries if type != LAST_EVENT.encode()]


def _pending(one: list[Any]) -> tuple[str, str, int]:
    return one[0].decode(), one[1].decode(), int(one[3])


def _last_delivered(replies: list[Any]) -> str:
    (group,) = replies[0]
    return str(dict(zip(group[::2], group[1::2], strict=True))[b"last-delivered-id"].decode())
