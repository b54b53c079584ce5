"""Keys of any type, in all databases: their names, their expiry, and their ends."""

from __future__ import annotations

import re

import pytest
from recorded_session import House, RecordedSession

OK = b"+OK\r\n"
NIL = b"$-1\r\n"
ONE, ZERO = b":1\r\n", b":0\r\n"


def bulk(text: bytes) -> bytes:
    return b"$%d\r\n%b\r\n" % (len(text), text)


def names(reply: bytes) -> set[bytes]:
    return set(re.findall(rb"\$\d+\r\n(.*?)\r\n", reply))


def test_del_counts_what_was_there(session: RecordedSession) -> None:
    session.do("MSET", "a", "1", "b", "2")
    assert session.do("EXISTS", "a", "a", "none") == b":2\r\n"
    assert session.do("TOUCH", "a", "b", "none") == b":2\r\n"
    assert session.do("DEL", "a", "a", "none") == ONE
    assert session.do("UNLINK", "b") == ONE
    assert session.do("DBSIZE") == ZERO


def test_rename_takes_the_expiry_along_and_replaces(session: RecordedSession) -> None:
    session.do("SET", "a", "1", "EX", "100")
    session.do("SET", "b", "2")
    assert session.do("RENAMENX", "a", "b") == ZERO
    assert session.do("RENAME", "a", "b") == OK
    assert (session.do("GET", "b"), session.do("TTL", "b"), session.do("DBSIZE")) == (bulk(b"1"), b":100\r\n", ONE)
    assert session.do("RENAME", "a", "b") == b"-ERR no such key\r\n"
    assert session.do("RENAME", "b", "b") == OK
    assert session.do("RENAMENX", "b", "b") == ZERO
    assert (session.do("GET", "b"), session.do("TTL", "b")) == (bulk(b"1"), b":100\r\n")


def test_copy_leaves_what_is_there_unless_told_to_replace(session: RecordedSession) -> None:
    session.do("SET", "a", "1", "EX", "100")
    session.do("SET", "b", "2")
    assert session.do("COPY", "a", "b") == ZERO
    assert session.do("COPY", "a", "b", "REPLACE") == ONE
    assert session.do("TTL", "b") == b":100\r\n"
    assert session.do("COPY", "a", "a") == b"-ERR source and destination objects are the same\r\n"
    assert session.do("COPY", "a", "a", "DB", "3") == ONE
    assert session.do("COPY", "a", "a", "DB", "16") == b"-ERR DB index is out of range\r\n"
    assert session.do("COPY", "none", "c") == ZERO


def test_move_needs_a_free_name_in_the_other_database(session: RecordedSession) -> None:
    session.do("SET", "a", "1")
    assert session.do("MOVE", "a", "1") == ONE
    session.do("SET", "a", "2")
    assert session.do("MOVE", "a", "1") == ZERO
    assert session.do("MOVE", "a", "0") == b"-ERR source and destination objects are the same\r\n"
    session.do("SELECT", "1")
    assert session.do("GET", "a") == bulk(b"1")


def test_swapped_databases_hold_each_others_keys(session: RecordedSession) -> None:
    session.do("SET", "a", "zero")
    assert session.do("SWAPDB", "0", "5") == OK
    assert session.do("DBSIZE") == ZERO
    session.do("SELECT", "5")
    assert session.do("GET", "a") == bulk(b"zero")
    assert session.do("SWAPDB", "0", "16") == b"-ERR DB index is out of range\r\n"
    assert session.do("SWAPDB", "x", "0") == b"-ERR invalid first DB index\r\n"


def test_flushdb_empties_one_database_and_flushall_every_one(session: RecordedSession) -> None:
    for database in "012":
        session.do("SELECT", database)
        session.do("SET", "a", database)
    assert session.do("FLUSHDB", "ASYNC") == OK
    assert session.do("GET", "a") == NIL
    session.do("SELECT", "1")
    assert session.do("GET", "a") == bulk(b"1")
    assert session.do("FLUSHALL", "SYNC") == OK
    assert session.do("INFO", "keyspace") == b"$12\r\n# Keyspace\r\n\r\n"
    assert session.do("FLUSHALL", "NOW") == b"-ERR syntax error\r\n"


def test_info_counts_keys_by_database(session: RecordedSession) -> None:
    session.do("SET", "a", "1", "EX", "10")
    session.do("SET", "b", "1")
    assert b"db0:keys=2,expires=1,avg_ttl=0\r\n" in session.do("INFO", "keyspace")


def test_keys_are_found_by_pattern(session: RecordedSession) -> None:
    for name in ("one", "two", "three", "o*e"):
        session.do("SET", name, "1")
    assert names(session.do("KEYS", "*")) == {b"one", b"two", b"three", b"o*e"}
    assert names(session.do("KEYS", "t[hw]*")) == {b"two", b"three"}
    assert names(session.do("KEYS", "o\\*e")) == {b"o*e"}


def test_scan_sees_every_key_that_is_there_all_the_time(session: RecordedSession) -> None:
    staying = {b"key%d" % number for number in range(500)}
    for name in staying:
        session.do("SET", name, "1")
    cursor, seen, step = b"0", set(), 0
    while True:
        reply = session.do("SCAN", cursor, "COUNT", "20")
        cursor, *found = re.findall(rb"\$\d+\r\n(.*?)\r\n", reply)
        seen.update(found)
        step += 1
        session.do("SET", b"new%d" % step, "1")
        session.do("DEL", b"new%d" % (step - 3))
        if cursor == b"0":
            break
    assert staying <= seen
    assert step >= 20


LOOPS_OVER_NUMBERS = """
local cursor, seen, steps = 0, 0, 0
repeat
  local reply = redis.call(ARGV[1], unpack(ARGV[2] == '' and {cursor} or {ARGV[2], cursor}))
  cursor, seen, steps = tonumber(reply[1]), seen + #reply[2], steps + 1
until cursor == 0 or steps > 1000
return {seen, steps > 50 and 1 or 0}
"""


@pytest.mark.parametrize(
    ("command", "key", "words_each"), [("SCAN", "", 1), ("HSCAN", "hash", 2), ("SSCAN", "set", 1), ("ZSCAN", "zset", 2)]
)
def test_who_holds_a_cursor_as_a_double_sees_everything(
    session: RecordedSession, command: str, key: str, words_each: int
) -> None:
    """So do Lua, JavaScript and PHP."""
    for number in range(1000):
        if not key:
            session.do("SET", f"key{number}", "v")
        else:
            name = f"member{number}"
            words = {"hash": ("HSET", name, "v"), "set": ("SADD", name), "zset": ("ZADD", "1", name)}[key]
            session.do(words[0], key, *words[1:])
    assert session.do("EVAL", LOOPS_OVER_NUMBERS, "0", command, key) == b"*2\r\n:%d\r\n:1\r\n" % (1000 * words_each)


@pytest.mark.parametrize("cursor", ["1", "7", "-1", "9007199254740993", "9223372036854775808", "18446744073709551615"])
def test_scan_takes_any_integer_for_a_cursor(session: RecordedSession, cursor: str) -> None:
    session.do("SET", "k", "v")
    session.do("SADD", "s", *[str(number) + "x" for number in range(1000)])
    assert session.do("SCAN", cursor).startswith(b"*2\r\n$1\r\n0\r\n")
    assert session.do("SSCAN", "s", cursor).startswith(b"*2\r\n$")


def test_scan_filters_by_pattern_and_type(house: House, session: RecordedSession) -> None:
    session.do("MSET", "a1", "x", "a2", "x", "b", "x")
    assert house.engine.keyspace is not None
    house.engine.keyspace.create_topic(0, b"a3")
    house.engine.commit()
    assert names(session.do("SCAN", "0", "MATCH", "a*", "COUNT", "100")) == {b"0", b"a1", b"a2", b"a3"}
    assert names(session.do("SCAN", "0", "TYPE", "STREAM", "COUNT", "100")) == {b"0", b"a3"}
    assert names(session.do("SCAN", "0", "TYPE", "nosuch", "COUNT", "100")) == {b"0"}


@pytest.mark.parametrize("cursor", ["", "-0", "+0", "0" * 5000])
def test_cursor_is_read_as_c_reads_it(session: RecordedSession, cursor: str) -> None:
    session.do("SET", "k", "v")
    assert session.do("SCAN", cursor) == b"*2\r\n$1\r\n0\r\n*1\r\n$1\r\nk\r\n"


@pytest.mark.parametrize("cursor", ["x", "1x", " 1", "18446744073709551616", "-", "9" * 5000])
def test_what_is_no_cursor_is_refused(session: RecordedSession, cursor: str) -> None:
    assert session.do("SCAN", cursor) == b"-ERR invalid cursor\r\n"


@pytest.mark.parametrize("words", [["COUNT", "0"], ["COUNT"], ["MATCH"], ["WHAT", "x"]])
def test_scan_options_that_are_none_are_a_syntax_error(session: RecordedSession, words: list[str]) -> None:
    assert session.do("SCAN", "0", *words) == b"-ERR syntax error\r\n"


def test_randomkey_is_one_of_them(session: RecordedSession) -> None:
    assert session.do("RANDOMKEY") == NIL
    session.do("MSET", "a", "1", "b", "1")
    assert {session.do("RANDOMKEY") for _ in range(100)} == {bulk(b"a"), bulk(b"b")}


def test_randomkey_removes_the_expired_keys_that_it_meets(house: House, session: RecordedSession) -> None:
    session.do("SET", "a", "1", "PX", "1")
    session.do("SET", "b", "1", "PX", "1")
    house.clock.now += 1
    assert session.do("DBSIZE") == b":2\r\n"
    assert session.do("RANDOMKEY") == NIL
    assert session.do("DBSIZE") == ZERO


def test_a_key_is_gone_at_its_time_for_every_command(house: House, session: RecordedSession) -> None:
    session.do("SET", "k", "v", "PX", "1500")
    house.clock.now += 1.499
    assert session.do("GET", "k") == bulk(b"v")
    house.clock.now += 0.001
    assert session.do("KEYS", "*") == b"*0\r\n"
    assert session.do("RANDOMKEY") == NIL
    assert session.do("EXISTS", "k") == ZERO
    assert (session.do("TTL", "k"), session.do("TYPE", "k")) == (b":-2\r\n", b"+none\r\n")
    assert session.do("DBSIZE") == ZERO


def test_an_expired_key_is_no_obstacle_to_its_name(house: House, session: RecordedSession) -> None:
    session.do("SET", "k", "v", "PX", "1")
    session.do("SET", "other", "v")
    house.clock.now += 1
    assert session.do("SET", "k", "new", "NX") == OK
    session.do("PEXPIRE", "k", "1")
    house.clock.now += 1
    assert session.do("RENAMENX", "other", "k") == ONE


def test_expire_obeys_its_conditions(session: RecordedSession) -> None:
    session.do("SET", "k", "v")
    assert session.do("EXPIRE", "k", "100", "XX") == ZERO
    assert session.do("EXPIRE", "k", "100", "GT") == ZERO
    assert session.do("EXPIRE", "k", "100", "LT") == ONE
    assert session.do("EXPIRE", "k", "200", "NX") == ZERO
    assert session.do("EXPIRE", "k", "50", "GT") == ZERO
    assert session.do("EXPIRE", "k", "200", "XX", "GT") == ONE
    assert session.do("EXPIRE", "k", "300", "LT") == ZERO
    assert session.do("TTL", "k") == b":200\r\n"
    assert session.do("PERSIST", "k") == ONE
    assert session.do("PERSIST", "k") == ZERO
    assert session.do("EXPIRE", "none", "100") == ZERO


@pytest.mark.parametrize(
    ("words", "refusal"),
    [
        (["NX", "XX"], b"NX and XX, GT or LT options at the same time are not compatible"),
        (["GT", "LT"], b"GT and LT options at the same time are not compatible"),
        (["what"], b"Unsupported option what"),
    ],
)
def test_conditions_that_exclude_each_other_are_refused(
    session: RecordedSession, words: list[str], refusal: bytes
) -> None:
    assert session.do("EXPIRE", "none", "1", *words) == b"-ERR %b\r\n" % refusal


def test_a_time_in_the_past_deletes_and_one_beyond_64_bits_is_refused(session: RecordedSession) -> None:
    for words in (["EXPIRE", "k", "0"], ["PEXPIRE", "k", "-1"], ["EXPIREAT", "k", "1"], ["PEXPIREAT", "k", "-5"]):
        session.do("SET", "k", "v")
        assert session.do(*words) == ONE
        assert session.do("EXISTS", "k") == ZERO
    session.do("SET", "k", "v")
    assert session.do("EXPIRE", "k", "9223372036854775") == b"-ERR invalid expire time in 'expire' command\r\n"
    assert session.do("PEXPIRE", "k", "9223372036854775807") == b"-ERR invalid expire time in 'pexpire' command\r\n"
    assert session.do("TTL", "k") == b":-1\r\n"


def test_times_are_told_to_the_nearest_second(session: RecordedSession) -> None:
    session.do("SET", "k", "v", "PXAT", "1700000001499")
    assert session.do("TTL", "k") == ONE
    assert session.do("EXPIRETIME", "k") == b":1700000001\r\n"
    assert session.do("PEXPIRETIME", "k") == b":1700000001499\r\n"
    session.do("PEXPIREAT", "k", "1700000001500")
    assert session.do("TTL", "k") == b":2\r\n"
    assert session.do("EXPIRETIME", "none") == b":-2\r\n"


def test_keys_of_one_name_live_apart_in_their_databases(session: RecordedSession) -> None:
    session.do("SET", "k", "0")
    session.do("SELECT", "15")
    assert session.do("GET", "k") == NIL
    session.do("SET", "k", "15")
    session.do("DEL", "k")
    session.do("SELECT", "0")
    assert session.do("GET", "k") == bulk(b"0")


@pytest.mark.parametrize(
    ("value", "encoding"),
    [("1", b"int"), ("9223372036854775807", b"int"), ("01", b"embstr"), ("x" * 44, b"embstr"), ("x" * 45, b"raw")],
)
def test_the_encoding_is_what_redis_would_choose(session: RecordedSession, value: str, encoding: bytes) -> None:
    session.do("SET", "k", value)
    assert session.do("OBJECT", "ENCODING", "k") == bulk(encoding)


def test_a_string_that_was_built_is_raw_and_a_float_no_integer(session: RecordedSession) -> None:
    session.do("SET", "k", "1")
    session.do("APPEND", "k", "2")
    assert session.do("OBJECT", "ENCODING", "k") == bulk(b"raw")
    session.do("COPY", "k", "copy")
    assert session.do("OBJECT", "ENCODING", "copy") == bulk(b"raw")
    session.do("INCRBYFLOAT", "f", "2")
    assert session.do("OBJECT", "ENCODING", "f") == bulk(b"embstr")
    session.do("INCR", "k")
    assert session.do("OBJECT", "ENCODING", "k") == bulk(b"int")


def test_idle_time_is_that_since_the_last_use(house: House, session: RecordedSession) -> None:
    session.do("SET", "k", "v")
    house.clock.now += 5
    house.engine.cron(house.clock.now)
    assert session.do("EXISTS", "k") == ONE
    assert session.do("OBJECT", "IDLETIME", "k") == b":5\r\n"
    session.do("GET", "k")
    assert session.do("OBJECT", "IDLETIME", "k") == ZERO
    assert session.do("OBJECT", "FREQ", "k").startswith(b"-ERR An LFU maxmemory policy is not selected")


def test_memory_usage_grows_with_name_and_value(session: RecordedSession) -> None:
    session.do("MSET", "k", "v", "long", "v" * 1000)
    small, large = (int(session.do("MEMORY", "USAGE", name)[1:]) for name in ("k", "long"))
    assert large - small == 999 + 3
    assert session.do("MEMORY", "USAGE", "none") == NIL


def test_hits_and_misses_are_counted_of_reads_only(house: House, session: RecordedSession) -> None:
    session.do("SET", "k", "v")
    session.do("GET", "k")
    session.do("MGET", "k", "none")
    session.do("EXPIRE", "none", "1")
    stats = house.engine.stats
    assert (stats.keyspace_hits, stats.keyspace_misses) == (2, 1)
