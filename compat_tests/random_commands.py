"""Random requests: mostly well-formed, of small alphabets so that they meet each other, sometimes maimed.

Left out is what tells the time, the machine or the memory, what holds everybody up (CLIENT PAUSE, DEBUG SLEEP), what
kills the control connection, and what changes settings.
"""

from __future__ import annotations

from hypothesis import strategies as st

from compat_tests.wire import request

Words = list[bytes]

CHANNELS = [b"a", b"b", b"ab", b"a.b", b"", b"\xff\r\n\0", b"x" * 600, b"A"]
PATTERNS = [b"*", b"a*", b"?", b"[ab]", b"[^a]*", b"\\a", b"a.b", b"", b"[a-", b"[b-a]", b"*\xff*", b"x*x", b"\\"]
NAMES = [b"name", b"", b"two words", b"durable", b"\xff", b"n\n"]
PAYLOADS = [b"", b"hello", b"\r\n", b"\0\xff", b"y" * 2000]
KEYS = [b"k1", b"k2"]
NUMBERS = [b"0", b"1", b"15", b"16", b"-1", b"x", b"", b"9223372036854775808", b" 1", b"3"]

channel = st.sampled_from(CHANNELS)
pattern = st.sampled_from(PATTERNS)
name = st.sampled_from(NAMES)
payload = st.sampled_from(PAYLOADS)
number = st.sampled_from(NUMBERS)
key = st.sampled_from(KEYS)
anything = st.one_of(channel, pattern, name, payload, number)


def some(element: st.SearchStrategy[bytes], least: int = 1, most: int = 3) -> st.SearchStrategy[Words]:
    return st.lists(element, min_size=least, max_size=most)


def command(words: bytes, *arguments: st.SearchStrategy[Words] | st.SearchStrategy[bytes]) -> st.SearchStrategy[Words]:
    """A command of fixed words and drawn arguments."""
    start = words.split()

    def build(drawn: tuple[Words | bytes, ...]) -> Words:
        return start + [word for one in drawn for word in ([one] if isinstance(one, bytes) else one)]

    return st.tuples(*arguments).map(build)


PUBSUB = [
    command(b"SUBSCRIBE", some(channel)),
    command(b"PSUBSCRIBE", some(pattern)),
    command(b"SSUBSCRIBE", some(channel)),
    command(b"UNSUBSCRIBE", some(channel, 0)),
    command(b"PUNSUBSCRIBE", some(pattern, 0)),
    command(b"SUNSUBSCRIBE", some(channel, 0)),
    command(b"PUBLISH", channel, payload),
    command(b"PUBLISH", channel, payload),
    command(b"SPUBLISH", channel, payload),
    command(b"PUBSUB CHANNELS", some(pattern, 0, 1)),
    command(b"PUBSUB SHARDCHANNELS", some(pattern, 0, 1)),
    command(b"PUBSUB NUMSUB", some(channel, 0)),
    command(b"PUBSUB SHARDNUMSUB", some(channel, 0)),
    command(b"PUBSUB NUMPAT"),
    command(b"PING", some(payload, 0, 1)),
]
TRANSACTIONS = [
    command(b"MULTI"),
    command(b"MULTI"),
    command(b"EXEC"),
    command(b"EXEC"),
    command(b"DISCARD"),
    command(b"WATCH", some(key)),
    command(b"UNWATCH"),
]
HANDSHAKE = [
    command(b"HELLO", some(st.sampled_from([b"2", b"3", b"4", b"x", b"1"]), 0, 1)),
    command(b"HELLO 3"),
    command(b"HELLO 2"),
    command(b"HELLO 3 SETNAME", name),
    command(b"HELLO 3 AUTH", name, name),
    command(b"HELLO 2 AUTH default", name, st.sampled_from([[], [b"SETNAME"], [b"SETNAME", b"q"], [b"AUTH"]])),
    command(b"AUTH", some(name, 1, 3)),
    command(b"AUTH default", name),
    command(b"RESET"),
    command(b"SELECT", number),
    command(b"CLIENT SETNAME", name),
    command(b"CLIENT GETNAME"),
]
CLIENTS = [
    command(b"CLIENT REPLY", st.sampled_from([b"on", b"OFF", b"skip", b"no"])),
    command(b"CLIENT REPLY ON"),
    command(b"CLIENT REPLY SKIP"),
    command(b"CLIENT INFO"),
    command(b"CLIENT KILL TYPE", st.sampled_from([b"pubsub", b"replica", b"master", b"x"])),
    command(b"CLIENT KILL TYPE pubsub SKIPME", st.sampled_from([b"yes", b"no", b"x"])),
    command(b"CLIENT KILL", name),
    command(b"CLIENT KILL ID", number),
    command(b"CLIENT LIST TYPE", st.sampled_from([b"replica", b"master", b"x"])),
    command(b"CLIENT LIST ID", st.sampled_from([b"0", b"x", b"-1"])),
    command(b"CLIENT UNBLOCK", number, some(st.sampled_from([b"ERROR", b"TIMEOUT", b"x"]), 0, 1)),
    command(b"CLIENT NO-EVICT", st.sampled_from([b"on", b"off", b"x"])),
    command(b"CLIENT TRACKING", st.sampled_from([b"on", b"off", b"x"])),
    command(b"CLIENT TRACKING ON", some(st.sampled_from([b"BCAST", b"OPTIN", b"OPTOUT", b"NOLOOP", b"PREFIX", b"p"]))),
    command(b"CLIENT CACHING", st.sampled_from([b"yes", b"no", b"x"])),
    command(b"CLIENT TRACKINGINFO"),
    command(b"CLIENT GETREDIR"),
    command(b"MONITOR"),
    command(b"QUIT"),
]
OTHERS = [
    command(b"ECHO", payload),
    command(b"DBSIZE"),
    command(b"FLUSHALL", some(st.sampled_from([b"ASYNC", b"sync", b"x"]), 0, 1)),
    command(b"SWAPDB", number, number),
    command(b"MEMORY USAGE", key),
    command(b"CONFIG GET databases"),
    command(b"CONFIG GET", name),
    command(b"COMMAND GETKEYS", st.sampled_from([[b"WATCH", b"k"], [b"PING"], [b"nope"], [b"SSUBSCRIBE", b"a"]])),
    command(b"ACL WHOAMI"),
    command(b"ACL DRYRUN default", some(st.sampled_from([b"ping", b"subscribe", b"nope", b"a"]))),
    command(b"ACL GETUSER", name),
    command(b"ROLE"),
    command(b"READONLY"),
    command(b"ASKING"),
    command(b"CLUSTER", st.sampled_from([b"INFO", b"MYID", b"KEYSLOT", b"x"]), some(key, 0, 1)),
    command(b"SCRIPT EXISTS", some(key)),
    command(b"SCRIPT FLUSH"),
    command(b"FUNCTION FLUSH"),
    command(b"LATENCY HISTORY", key),
    command(b"MODULE LIST"),
    command(b"REPLCONF", some(key)),
    command(b"nope", some(anything, 0)),
    some(anything, 0).map(lambda arguments: [b"", *arguments]),
    command(b"CLIENT nope"),
    command(b"PUBSUB", some(name, 0, 2)),
    command(b"CLIENT", some(name, 0, 2)),
    command(b"CONFIG", some(name, 0, 2)),
]


@st.composite
def maimed(draw: st.DrawFn, commands: st.SearchStrategy[Words]) -> Words:
    """A command with a word too few, a word too many, or in other letters."""
    words = list(draw(commands))
    match draw(st.integers(0, 3)):
        case 0 if len(words) > 1:
            del words[draw(st.integers(1, len(words) - 1))]
        case 1:
            words.insert(draw(st.integers(1, len(words))), draw(anything))
        case 2:
            words[0] = words[0].swapcase()
        case _:
            words = [word.capitalize() for word in words[:2]] + words[2:]
    return words


_well_formed = st.one_of(
    st.one_of(*PUBSUB), st.one_of(*PUBSUB), st.one_of(*TRANSACTIONS), st.one_of(*HANDSHAKE), st.one_of(*CLIENTS),
    st.one_of(*OTHERS),
)  # fmt: skip
commands = st.one_of(_well_formed, _well_formed, _well_formed, _well_formed, maimed(_well_formed))


def _inline(words: Words) -> bytes:
    return b" ".join([b'"' + b"".join([b"\\x%02x" % byte for byte in word]) + b'"' for word in words]) + b"\r\n"


@st.composite
def pipelines(draw: st.DrawFn) -> tuple[list[Words], list[bytes]]:
    """Some requests, and their bytes cut at random places."""
    requests = draw(st.lists(commands, min_size=1, max_size=6))
    data = b"".join([_inline(words) if draw(st.integers(0, 15)) == 0 else request(*words) for words in requests])
    cuts = sorted(draw(st.lists(st.integers(0, len(data)), max_size=3)))
    return requests, [data[start:end] for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True) if start < end]
