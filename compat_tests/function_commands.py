"""Random requests about libraries of functions: right ones, wrong ones, and codes that fail in each way there is."""

from __future__ import annotations

import random

NAMES = (b"lib", b"other", b"Lib", b"third", b"")
_FUNCTIONS = (b"f", b"g", b"long_name_1", b"h")
"""None is another one in capitals: with both in one library, redis-server ends when that is removed."""
_ODD_NAMES = (b"", b"a-b", b"a b", b"x\0y", b"\xff", b"foo.bar")
_SHEBANGS = (
    b"", b"#!", b"#!lua", b"#!lua\n", b"#!lua name", b"#!lua name=\n", b"#!lua name=lib", b"#!LUA NAME=lib\n",
    b"#!Lua name=lib \n", b"#!lua name=lib name=lib\n", b"#!lua name=lib foo=bar\n", b"#!lua name=lib-1\n",
    b"#!lua name='lib'\n", b"#!lua 'name=lib'\n", b"#!js name=lib\n", b"#! lua name=lib\n", b"#!lua \"name=lib\n",
    b" #!lua name=lib\n", b"#!lua name=lib\0\n", b"#!lua\tname=lib\r\n", b"#!\n", b"# lua name=lib\n",
    b"#!lua \"name=l\\x69b\"\n", b"#!lua x\0 name=lib\n", b"#!lua  \v name=lib\n",
)  # fmt: skip
_BODIES = (
    b"return 1",
    b"return redis.register_function",
    b"syntax error here",
    b"local x = 1 return y",
    b"redis.call('ping')",
    b"math.floor(1)",
    b"x = 5",
    b"redis.x = 5",
    b"error('my error')",
    b"error({err='my error'})",
    b"error({err='CODE my error'})",
    b"error({})",
    b"error(5)",
    b"redis.log(redis.LOG_DEBUG, 'x')",
    b"redis.log()",
    b"redis.setresp(3)",
    b"return redis.REDIS_VERSION",
    b"redis.register_function()",
    b"redis.register_function('f')",
    b"redis.register_function('f', 1)",
    b"redis.register_function(1, function() end)",
    b"redis.register_function('f', function() end, 1)",
    b"redis.register_function(nil, function() end)",
    b"redis.register_function({}, function() end)",
    b"redis.register_function{}",
    b"redis.register_function{function_name='f'}",
    b"redis.register_function{callback=function() end}",
    b"redis.register_function{function_name={}, callback=function() end}",
    b"redis.register_function{function_name='f', callback=1}",
    b"redis.register_function{function_name='f', callback=function() end, flags=1}",
    b"redis.register_function{function_name='f', callback=function() end, flags={'x'}}",
    b"redis.register_function{function_name='f', callback=function() end, flags={{}}}",
    b"redis.register_function{function_name='f', callback=function() end, flags={'NO-writes', 'no-writes'}}",
    b"redis.register_function{function_name='f', callback=function() end, description={}}",
    b"redis.register_function{function_name='f', callback=function() end, description=7}",
    b"redis.register_function{function_name='f', callback=function() end, unknown=1}",
    b"redis.register_function{FUNCTION_NAME='f', Callback=function() end, [1]=2}",
    b"redis.register_function{function_name='f', callback=function() end, [true]=2}",
    b"redis.register_function{[true]=2}",
    b"redis.register_function('f', function() end) redis.register_function('f', function() end)",
    b"redis.register_function('f', function() end) error('late')",
    b"pcall(function() end)",
    b"local ok = redis.pcall",
    b"redis.register_function('f', function() return redis.register_function('g', function() end) end)",
    b"redis.register_function('f', function() x = 1 end)",
    b"redis.register_function('f', function() return x end)",
    b"redis.register_function('f', function() error('failed') end)",
    b"redis.register_function('f', function() return redis.call('nope') end)",
    b"redis.register_function('f', function(k, a) return redis.call('set', k[1], a[1]) end)",
    b"local n = 0 redis.register_function('f', function() n = n + 1 return n end)",
    b"redis.register_function('f', function(...) return select('#', ...) end)",
    b"redis.register_function('f', function() return {KEYS == nil, ARGV == nil} end)",
    b"redis.register_function('f', function(k, a) return cjson.encode({k, a}) end)",
    b"redis.register_function('f', function() return math.random() end)",
    b"redis.register_function('f', function() return {1, 2, {3, 'x'}, false, true, 1.9} end)",
    b"redis.register_function('f', function() redis.setresp(3) return redis.call('hgetall', 'h') end)",
    b"redis.register_function('f', function() return {double = 1.5} end)",
    b"redis.register_function('f', function() return redis.error_reply('MY error') end)",
    b"redis.register_function('f', function() return redis.status_reply('fine') end)",
)  # fmt: skip
_FLAGS = (b"'no-writes'", b"'allow-oom'", b"'allow-stale'", b"'no-cluster'", b"'allow-cross-slot-keys'", b"'nope'")
_CALLED = (
    b"return 'hello'",
    b"return {k, a}",
    b"return redis.call('get', 'key')",
    b"return redis.call('set', 'key', a[1] or 'x')",
    b"return redis.call('incr', 'number')",
    b"return redis.pcall('incr', 'key')",
    b"return #k",
    b"return nil",
)


class Requests:
    """An endless stream of them; the same for the same seed."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self.dumps: list[bytes] = []
        """What FUNCTION DUMP has answered, to be restored."""

    def next(self) -> list[bytes]:
        """The next request."""
        chance = self._chance
        words: list[bytes] = getattr(self, f"_{chance.choice(_KINDS)}")()
        if chance.random() < 0.02:
            words = words[: chance.randrange(1, len(words) + 1)]
        if chance.random() < 0.02:
            words.append(chance.choice((b"x", b"REPLACE", b"", b"1")))
        return words

    def _function(self) -> bytes:
        chance = self._chance
        name = chance.choice(_FUNCTIONS) if chance.random() < 0.95 else chance.choice(_ODD_NAMES)
        quoted = b"'" + b"".join(b"\\%d" % byte if byte in b"\0'\\" else bytes((byte,)) for byte in name) + b"'"
        callback = b"function(k, a) " + chance.choice(_CALLED) + b" end"
        if chance.random() < 0.4:
            return b"redis.register_function(%b, %b)" % (quoted, callback)
        fields = [b"function_name=" + quoted, b"callback=" + callback]
        if chance.random() < 0.5:
            flags = chance.sample(_FLAGS[: 5 if chance.random() < 0.9 else 6], chance.randrange(3))
            fields.append(b"flags={" + b", ".join(flags) + b"}")
        if chance.random() < 0.3:
            fields.append(chance.choice((b"description='what it does'", b"description=''", b"description='\\0x'")))
        chance.shuffle(fields)
        return b"redis.register_function{" + b", ".join(fields) + b"}"

    def _code(self) -> bytes:
        chance = self._chance
        name = chance.choice(NAMES) if chance.random() < 0.95 else chance.choice(_ODD_NAMES)
        head = b"#!lua name=" + name + b"\n" if chance.random() < 0.9 else chance.choice(_SHEBANGS)
        if chance.random() < 0.35:
            return head + b"\n" * chance.randrange(3) + chance.choice(_BODIES)
        return head + b"\n".join(self._function() for _ in range(chance.randrange(1, 4)))

    def _load(self) -> list[bytes]:
        options = self._chance.choice(([], [b"REPLACE"], [b"replace"], [b"REPLACE", b"replace"], [b"nope"]))
        return [b"FUNCTION", b"LOAD", *options, self._code()]

    def _drop(self) -> list[bytes]:
        chance = self._chance
        if chance.random() < 0.8:
            return [b"FUNCTION", b"DELETE", chance.choice(NAMES)]
        return [b"FUNCTION", b"FLUSH", *chance.choice(([], [b"ASYNC"], [b"sync"], [b"nope"], [b"sync", b"sync"]))]

    def _list(self) -> list[bytes]:
        words = [b"FUNCTION", b"LIST"]
        for _ in range(self._chance.randrange(3)):
            words += self._chance.choice(
                ([b"WITHCODE"], [b"LIBRARYNAME", b"l*"], [b"libraryname", b"*"], [b"LIBRARYNAME"], [b"nope"])
            )
        return words

    def _stats(self) -> list[bytes]:
        return [b"FUNCTION", self._chance.choice((b"STATS", b"STATS", b"KILL", b"HELP", b"nope"))]

    def _dump(self) -> list[bytes]:
        return [b"FUNCTION", b"DUMP"]

    def _restore(self) -> list[bytes]:
        chance = self._chance
        payload = chance.choice(self.dumps) if self.dumps and chance.random() < 0.9 else b"x" * chance.randrange(20)
        policy = chance.choice(([], [b"APPEND"], [b"REPLACE"], [b"replace"], [b"FLUSH"], [b"nope"]))
        return [b"FUNCTION", b"RESTORE", payload, *policy]

    def _call(self) -> list[bytes]:
        chance = self._chance
        keys = [b"key", b"list", b"k\0"][: chance.randrange(4)]
        arguments = [b"a", b"", b"17"][: chance.randrange(4)]
        count = b"%d" % len(keys) if chance.random() < 0.95 else chance.choice((b"-1", b"x", b"9", b"1.5", b" 1"))
        name = chance.choice(_FUNCTIONS if chance.random() < 0.93 else (b"none", b"", b"F", b"Long_Name_1"))
        return [chance.choice((b"FCALL", b"FCALL", b"fcall_ro")), name, count, *keys, *arguments]

    def _key(self) -> list[bytes]:
        return self._chance.choice(
            ([b"SET", b"key", b"text"], [b"DEL", b"key"], [b"FLUSHALL"], [b"HSET", b"h", b"f", b"v"], [b"GET", b"key"])
        )


_KINDS = ("load",) * 8 + ("call",) * 10 + ("drop", "drop", "list", "list", "stats", "dump", "restore", "restore", "key")
