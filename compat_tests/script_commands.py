"""Random scripts: commands called and caught, and what they answer put together to a reply."""

from __future__ import annotations

from random import Random

KEYS = (b"t1", b"t2", b"l1", b"h1", b"s1", b"z1")
_WORDS = ("a", "b", "1", "2", "-1", "3.5", "", "x y")
_CALLS = (
    "'set', {key}, {word}", "'get', {key}", "'incr', {key}", "'append', {key}, {word}", "'del', {key}",
    "'rpush', {key}, {word}, {word}", "'lpop', {key}", "'lrange', {key}, 0, -1", "'llen', {key}",
    "'hset', {key}, {word}, {word}", "'hgetall', {key}", "'hget', {key}, {word}", "'hincrby', {key}, {word}, {number}",
    "'sadd', {key}, {word}", "'sort', {key}, 'by', 'nosort'", "'sismember', {key}, {word}", "'scard', {key}",
    "'zadd', {key}, {number}, {word}", "'zrange', {key}, 0, -1, 'withscores'", "'zscore', {key}, {word}",
    "'zincrby', {key}, {number}, {word}", "'type', {key}", "'exists', {key}, {key}", "'mget', {key}, {key}",
    "'expire', {key}, {number}00", "'ttl', {key}", "'object', 'encoding', {key}", "'ping'", "'echo', {number}",
    "'select', {number}", "'nope', {word}", "'get'", "'multi'", "'config', 'nope'", "'publish', {word}, {word}",
    "'zpopmin', {key}", "'spop', 'nokey'", "'setrange', {key}, 2, {word}", "'getdel', {key}", "'rename', {key}, {key}",
)  # fmt: skip
_SHAPES = (
    "return r[{place}]", "return r", "return {{r[{place}], {{r[{other}]}}}}",
    "return {{map={{a=r[{place}], b={number}}}}}",
    "return {{set={{a=true}}}}", "return {{double={number}}}", "return {{r[{place}], nil, r[{other}]}}",
    "return {{ok={text}}}", "return {{err={text}}}", "return type(r[{place}])", "error({text})",
    "error({{err={text}}})",
    "return redis.error_reply({text})", "return cjson.encode({{#r}})", "return true", "return false", "return {number}",
    "return tostring({number})", "return r[{place}] == r[{other}]", "return {{big_number='123'}}", "",
    "return {{verbatim_string={{format='txt', string={text}}}}}", "return #KEYS + #ARGV", "return {{KEYS, ARGV}}",
    "return {{true, false, {number}, {text}}}",
)  # fmt: skip


class Requests:
    """The same ones for the same seed."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)

    def next(self) -> list[bytes]:
        random = self._random
        if random.random() < 0.1:
            return random.choice(([b"MULTI"], [b"EXEC"], [b"DISCARD"], [b"SCRIPT", b"FLUSH"], [b"PING"]))
        keys = [random.choice(KEYS) for _ in range(random.randrange(1, 4))]
        arguments = [random.choice(_WORDS).encode() for _ in range(random.randrange(4))]
        name = random.choice((b"EVAL", b"EVAL", b"EVAL", b"EVAL_RO"))
        source = self._source(len(keys), len(arguments)).encode()
        return [name, source, b"%d" % len(keys), *keys, *arguments]

    def _source(self, keys: int, arguments: int) -> str:
        random = self._random
        lines = []
        if random.random() < 0.1:
            flags = random.sample(("no-writes", "allow-oom", "no-cluster", "nope"), random.randrange(3))
            lines.append(f"#!lua flags={','.join(flags)}")
        lines.append("local r = {}")
        for _ in range(random.randrange(6)):
            if random.random() < 0.2:
                lines.append(f"redis.setresp({random.choice((2, 3))})")
            called = random.choice(_CALLS)
            while "{" in called:
                called = called.replace("{key}", f"KEYS[{random.randint(1, keys)}]", 1)
                word = repr(random.choice(_WORDS))
                if arguments and random.random() < 0.3:
                    word = f"ARGV[{random.randint(1, arguments)}]"
                called = called.replace("{word}", word, 1).replace("{number}", random.choice(_NUMBERS), 1)
            how = random.choice(
                ("redis.call({})", "redis.pcall({})", "redis.pcall({})", "select(2, pcall(redis.call, {}))")
            )
            lines.append(f"r[#r + 1] = {how.format(called)}")
        shape = random.choice(_SHAPES).format(
            place=random.randint(1, 3), other=random.randint(1, 3), number=random.choice(_NUMBERS),
            text=repr(random.choice(_WORDS)),
        )  # fmt: skip
        return "\n".join([*lines, shape])


_NUMBERS = ("0", "1", "2", "-3", "1.5", "1e20", "0.1", "3.999", "10")
