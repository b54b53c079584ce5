"""Random requests about topics: few keys, groups and ids, so that they meet each other; now and then a word is wrong.

Ids are explicit, or `ms-*`: what two servers' clocks say they cannot have in common. Left out is what ends by time, and
what answers in the order of a hash table: SWAPDB is that, to who waits for several keys.
"""

from __future__ import annotations

from hypothesis import strategies as st

from compat_tests.random_commands import Words, command, some

KEYS = [b"a", b"a", b"b", b"b", b"c", b"text"]
GROUPS = [b"g", b"g", b"g", b"h", b"no such group"]
CONSUMERS = [b"c1", b"c2", b"c\0\xff"]
NEXT_IDS = [b"1-*", b"1-*", b"1-*", b"1-*", b"2-*", b"2-*", b"4-*", b"1-1", b"2-7", b"3", b"0-*", b"0-1", b"0-0"]
IDS = [b"1-0", b"1-1", b"1-2", b"1-3", b"1-4", b"1-5", b"2-0", b"2-1", b"2", b"1", b"0", b"3-0", b"4-0", b"4-1"]
WRONG_IDS = [b"x", b"1-", b"-1", b"", b"1-1-1", b"18446744073709551615-18446744073709551615", b"+", b"-", b"$", b">",
             b"*", b"18446744073709551616", b"1-18446744073709551616", b"(1-1", b" 1", b"1-\0"]  # fmt: skip
COUNTS = [b"1", b"2", b"3", b"5", b"100"]
WRONG_COUNTS = [b"0", b"-1", b"x", b"", b"1.5", b"9223372036854775808"]
FIELDS = [[b"f", b"v"], [b"f", b"w", b"g", b"v"], [b"", b""], [b"f", b"v", b"f", b"w"], [b"\r\n\0\xff", b"y" * 300]]


def seldom(usual: list[bytes], wrong: list[bytes]) -> st.SearchStrategy[bytes]:
    """Mostly one of the usual ones."""
    return st.one_of(*[st.sampled_from(usual)] * 15, st.sampled_from(wrong))


def perhaps(*options: st.SearchStrategy[Words]) -> st.SearchStrategy[Words]:
    """Any of them, in any order."""

    @st.composite
    def chosen(draw: st.DrawFn) -> Words:
        taken = [draw(option) for option in options if draw(st.integers(0, 2)) == 0]
        return [word for option in draw(st.permutations(taken)) for word in option]

    return chosen()


def several(*shapes: st.SearchStrategy[bytes], most: int = 2) -> st.SearchStrategy[Words]:
    """As many of the one as of the other, one kind behind the other: keys, and their ids."""
    rows = st.lists(st.tuples(*shapes), min_size=1, max_size=most)
    return rows.map(lambda drawn: [word for column in zip(*drawn, strict=True) for word in column])


key = st.sampled_from(KEYS)
group = st.sampled_from(GROUPS)
consumer = st.sampled_from(CONSUMERS)
entry_id = seldom(IDS, WRONG_IDS)
count = seldom(COUNTS, WRONG_COUNTS)
bound = st.one_of(st.sampled_from([b"-", b"+"]), entry_id, st.sampled_from([b"(1-1", b"(1-3", b"(2", b"(0", b"(-"]))
approximately = st.sampled_from([[], [], [b"="], [b"~"], [b"~"]])
limit: st.SearchStrategy[Words] = st.one_of(st.just([]), st.just([]), count.map(lambda word: [b"LIMIT", word]))
to_length = command(b"MAXLEN", approximately, seldom([b"0", b"1", b"2", b"4", b"6"], WRONG_COUNTS), limit)
to_id = command(b"MINID", approximately, entry_id, limit)
trimming = st.one_of(to_length, to_length, to_id)
_LATER = b"+"
"""As a start of XREAD it is of a later version of Redis."""
start = st.one_of(st.sampled_from([b"0", b"$", b"1-1"]), entry_id)
read_start = start.filter(lambda word: word != _LATER)
idle = seldom([b"0", b"0", b"0", b"100000"], WRONG_COUNTS)
counted = command(b"COUNT", count)
forever = st.just([b"BLOCK", b"0"])
entries_read = command(b"ENTRIESREAD", seldom([b"0", b"1", b"3", b"-1", b"7"], [b"-2", b"x"]))

APPENDING = [
    command(b"XADD", key, st.sampled_from(NEXT_IDS), st.sampled_from(FIELDS)),
    command(b"XADD", key, st.just(b"1-*"), st.sampled_from(FIELDS)),
    command(b"XADD", key, perhaps(trimming, st.just([b"NOMKSTREAM"])), seldom(NEXT_IDS, WRONG_IDS[:-6]),
            st.sampled_from(FIELDS)),
]  # fmt: skip
READING = [
    command(b"XLEN", key),
    command(b"XRANGE", key, bound, bound, st.one_of(st.just([]), counted)),
    command(b"XREVRANGE", key, bound, bound, st.one_of(st.just([]), counted)),
    command(b"XREAD", perhaps(counted), st.just(b"STREAMS"), several(key, read_start)),
    command(b"XREAD", perhaps(counted, forever), st.just(b"STREAMS"), several(key, read_start, most=3)),
    command(b"XREAD BLOCK 0 STREAMS", several(key, st.just(b"$"))),
    command(b"XINFO STREAM", key),
    command(b"XINFO STREAM", key, st.sampled_from([[b"FULL"], [b"full", b"COUNT", b"0"], [b"FULL", b"COUNT", b"2"]])),
]
CHANGING = [
    command(b"XDEL", key, some(entry_id, 1, 4)),
    command(b"XTRIM", key, trimming),
    command(b"XSETID", key, entry_id),
    command(b"XSETID", key, entry_id, st.just(b"ENTRIESADDED"), count, st.just(b"MAXDELETEDID"), entry_id),
]
GROUPING = [
    command(b"XGROUP CREATE", key, group, start, perhaps(st.just([b"MKSTREAM"]), entries_read)),
    command(b"XGROUP CREATE", key, group, st.sampled_from([b"0", b"$"]), st.just(b"MKSTREAM")),
    command(b"XGROUP SETID", key, group, start, perhaps(entries_read)),
    command(b"XGROUP DESTROY", key, group),
    command(b"XGROUP CREATECONSUMER", key, group, consumer),
    command(b"XGROUP DELCONSUMER", key, group, consumer),
    command(b"XINFO GROUPS", key),
    command(b"XINFO CONSUMERS", key, group),
]
_group_start = st.sampled_from([b">", b">", b">", b"0", b"1-2", b"$"])
_group_reading = command(
    b"XREADGROUP GROUP", group, consumer, perhaps(counted, forever, st.just([b"NOACK"])), st.just(b"STREAMS"),
    several(key, _group_start),
)  # fmt: skip
TAKING = [
    _group_reading,
    _group_reading,
    command(b"XREADGROUP GROUP g", consumer, st.just([b"BLOCK", b"0", b"STREAMS"]), key, st.just(b">")),
    command(b"XACK", key, group, some(entry_id, 1, 4)),
    command(b"XPENDING", key, group),
    command(b"XPENDING", key, group, bound, bound, count, some(consumer, 0, 1)),
    command(b"XPENDING", key, group, st.just(b"IDLE"), idle, bound, bound, count, some(consumer, 0, 1)),
    command(b"XCLAIM", key, group, consumer, idle, some(entry_id, 1, 4), perhaps(
        st.just([b"FORCE"]), st.just([b"JUSTID"]), command(b"IDLE", idle), command(b"RETRYCOUNT", count),
        command(b"TIME", st.sampled_from([b"1000", b"x"])), command(b"LASTID", entry_id))),
    command(b"XAUTOCLAIM", key, group, consumer, idle, bound, perhaps(counted, st.just([b"JUSTID"]))),
]  # fmt: skip
KEEPING = [
    command(b"DEL", some(key)),
    command(b"UNLINK", key),
    command(b"EXISTS", some(key)),
    command(b"TYPE", key),
    command(b"RENAME", key, key),
    command(b"RENAMENX", key, key),
    command(b"COPY", key, key, st.sampled_from([[], [b"REPLACE"], [b"DB", b"1"], [b"DB", b"1", b"REPLACE"]])),
    command(b"MOVE", key, st.sampled_from([b"0", b"1"])),
    command(b"FLUSHDB"),
    command(b"FLUSHALL"),
    command(b"DBSIZE"),
    command(b"PEXPIRE", key, st.sampled_from([b"100000000", b"0", b"-1"])),
    command(b"PERSIST", key),
    command(b"EXPIRETIME", st.just(b"text")),
    command(b"OBJECT ENCODING", key),
    command(b"SELECT", st.sampled_from([b"0", b"0", b"1"])),
    command(b"SET", key, st.sampled_from([b"1", b"x", b"2.5"])),
    command(b"SET text", st.sampled_from([b"1", b"x"]), st.sampled_from([b"NX", b"XX", b"GET"])),
    command(b"GET", key),
    command(b"INCR", key),
    command(b"APPEND", key, st.just(b"0")),
    command(b"GETDEL", key),
    command(b"MGET", some(key)),
    command(b"MSETNX", several(key, st.just(b"1"))),
    command(b"STRLEN", key),
]
TRANSACTIONS = [
    command(b"MULTI"),
    command(b"EXEC"),
    command(b"EXEC"),
    command(b"DISCARD"),
    command(b"WATCH", some(key)),
    command(b"UNWATCH"),
    command(b"HELLO 2"),
    command(b"HELLO 3"),
    command(b"RESET"),
]
FAMILIES = [APPENDING, APPENDING, APPENDING, READING, READING, CHANGING, GROUPING, GROUPING, TAKING, TAKING, TAKING,
            KEEPING, TRANSACTIONS]  # fmt: skip
requests = st.one_of(*[st.one_of(*family) for family in FAMILIES])
