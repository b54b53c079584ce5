"""Random rules of users, and random requests that such users may or may not make."""

from __future__ import annotations

import hashlib
import re
from random import Random

Words = tuple[bytes, ...]

USERS = (b"alice", b"bob", b"carol")
PASSWORDS = (b"one", b"two", b"three", b"")
CHANNELS = (b"news", b"news.a", b"chat", b"chat.b", b"x")
KEYS = (b"a", b"b", b"aa", b"ab", b"topic:1", b"topic:2", b"x")
_PATTERNS = (b"a*", b"b", b"topic:?", b"[ab]", b"*", b"news*", b"chat.*", b"x", b"", b"n\xffw", b"topic:1")
_ODD = (b"%", b"%%", b"%X~a", b"%RR~a", b"%RW", b"%r", b"+@", b"+@nothing", b"-@x", b"-nothing", b"nonsense", b"%~a",
        b"+select|",
        b"+config|nothing", b"+config|get|x", b"+select|0|1", b"-select|0", b"~a b", b"&a\tb", b"~a\0", b"on\0x", b")",
        b"(", b"", b"()", b"(on)", b"(nopass)", b"(~a", b"#abc", b"!abc", b"<none", b"(+@read", b"(reset)", b"+get|x|y",
        b"(\"\")", b"(~\"a\")", b"(~a \"b)", b"+debug|object", b"-config|nothing", b"+@ALL", b"~\n", b"&")  # fmt: skip
"""Left out is what ends redis-server 7.0.15: a bare plus or minus."""
_PLAIN = (b"on", b"off", b"nopass", b"resetpass", b"allkeys", b"resetkeys", b"allchannels", b"resetchannels",
          b"allcommands", b"nocommands", b"clearselectors", b"reset", b"sanitize-payload", b"skip-sanitize-payload",
          b"+@all", b"-@all", b"~*", b"&*", b"+select|0", b"+select|1", b"+get|a", b"+Config|GET", b"ON", b"AllKeys",
          b"+publish|news", b"+xadd|topic:1")  # fmt: skip
_LATER = (
    b"client|setinfo client|no-touch delex digest msetex hexpire hexpireat hexpiretime hgetdel hgetex hpersist "
    b"hpexpire hpexpireat hpexpiretime hpttl hsetex httl xackdel xcfgset xdelex"
).split()
_OURS = re.compile(
    rb" [+-](?:(?:topic|queue|subscriber|shard)\.[a-z]+|link(?:\|[a-z]+)?|"
    + b"|".join(map(re.escape, _LATER))
    + rb")(?= |$|\))"
)
_SINGLES = re.compile(rb"(?<![^ (])[+-](?!@)[^ ()]+(?: [+-](?!@)[^ ()]+)*")


class Rules:
    """Of users; `commands` and `categories` are those that rules may name."""

    def __init__(self, seed: int, commands: list[bytes], categories: list[bytes]) -> None:
        self.random = Random(seed)
        self._commands = commands
        self._categories = categories

    def sequence(self) -> Words:
        """A few rules, most of them good."""
        return tuple(self.rule() for _ in range(self.random.randrange(7)))

    def rule(self) -> bytes:
        pick, kind = self.random.choice, self.random.random()
        if kind < 0.05:
            return pick(_ODD)
        if kind < 0.2:
            return pick(_PLAIN)
        if kind < 0.3:
            return pick((b">", b"<", b"#", b"!")) + self._password()
        if kind < 0.38:
            inner = [self.of_selector() for _ in range(self.random.randrange(4))]
            return b"(" + b" ".join(inner) + b")"
        return self.of_selector()

    def _password(self) -> bytes:
        password = self.random.choice(PASSWORDS)
        return password if self.random.random() < 0.5 else hashlib.sha256(password).hexdigest().encode()

    def of_selector(self) -> bytes:
        """One about commands, keys or channels."""
        pick, kind = self.random.choice, self.random.random()
        if kind < 0.35:
            return pick((b"+@", b"-@", b"+@")) + pick(self._categories)
        if kind < 0.65:
            return pick((b"+", b"-", b"+")) + pick(self._commands)
        if kind < 0.85:
            return pick((b"~", b"%R~", b"%W~", b"%RW~", b"%w~")) + pick(_PATTERNS)
        return b"&" + pick(_PATTERNS)


class Requests:
    """Of users, on keys and channels."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)

    def next(self) -> Words:
        """One that is well formed, mostly."""
        pick = self.random.choice
        key, other, channel = pick(KEYS), pick(KEYS), pick(CHANNELS)
        pattern = pick((b"news*", b"*", b"chat.*", b"x"))
        return pick((
            (b"GET", key), (b"SET", key, b"1"), (b"SET", key, b"1", b"GET"), (b"SET", key, b"1", b"EX", b"100"),
            (b"MGET", key, other), (b"MSET", key, b"1", other, b"2"), (b"DEL", key, other), (b"EXISTS", key),
            (b"RENAME", key, other), (b"COPY", key, other, b"REPLACE"), (b"EXPIRE", key, b"1000"), (b"TTL", key),
            (b"APPEND", key, b"x"), (b"STRLEN", key), (b"GETDEL", key), (b"TYPE", key), (b"OBJECT", b"ENCODING", key),
            (b"XADD", key, b"1-*", b"f", b"v"), (b"XLEN", key), (b"XRANGE", key, b"-", b"+"), (b"XDEL", key, b"1-1"),
            (b"XREAD", b"STREAMS", key, other, b"0", b"0"), (b"XREAD", b"COUNT", b"1", b"STREAMS", key, b"0"),
            (b"XGROUP", b"CREATE", key, b"g", b"0", b"MKSTREAM"), (b"XINFO", b"STREAM", key),
            (b"XREADGROUP", b"GROUP", b"g", b"c", b"STREAMS", key, b">"), (b"XACK", key, b"g", b"1-1"),
            (b"XPENDING", key, b"g"), (b"XTRIM", key, b"MAXLEN", b"5"), (b"XREAD", b"STREAMS", key),
            (b"PUBLISH", channel, b"hello"), (b"SPUBLISH", channel, b"hello"), (b"PUBSUB", b"NUMSUB", channel),
            (b"PING",), (b"ECHO", key), (b"SELECT", b"0"), (b"SELECT", b"1"), (b"DBSIZE",), (b"KEYS", b"*"),
            (b"ACL", b"WHOAMI"), (b"CONFIG", b"GET", b"maxclients"), (b"CLIENT", b"ID"), (b"CLIENT", b"GETNAME"),
            (b"MULTI",), (b"EXEC",), (b"EXEC",), (b"DISCARD",), (b"WATCH", key), (b"UNWATCH",), (b"LPUSH", key, b"v"),
            (b"SADD", key, b"v"), (b"LRANGE", key, b"0", b"-1"), (b"SMEMBERS", key), (b"RESET",), (b"NOTHING", key),
            (b"SUBSCRIBE", channel), (b"SSUBSCRIBE", channel), (b"PSUBSCRIBE", pattern), (b"UNSUBSCRIBE",),
            (b"SUNSUBSCRIBE",), (b"PUNSUBSCRIBE",), (b"AUTH", pick(USERS), pick(PASSWORDS)), (b"GET",),
            (b"AUTH", pick(PASSWORDS)), (b"HELLO", b"3", b"AUTH", pick(USERS), pick(PASSWORDS)), (b"HELLO", b"2"),
        ))  # fmt: skip


def settled(text: bytes) -> bytes:
    """A user in words, without commands that Redis does not have, and its single commands in one order: Redis's is that
    of a hash table with a random seed."""
    text = _OURS.sub(b"", text)
    return _SINGLES.sub(lambda found: b" ".join(sorted(found.group().split(b" "))), text)
