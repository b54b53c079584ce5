"""Strings: what is set, what is read, and what is refused."""

from __future__ import annotations

from decimal import Decimal

import pytest
from recorded_session import House, RecordedSession

OK = b"+OK\r\n"
NIL = b"$-1\r\n"
SYNTAX = b"-ERR syntax error\r\n"
NOT_AN_INTEGER = b"-ERR value is not an integer or out of range\r\n"
WRONG_TYPE = b"-WRONGTYPE Operation against a key holding the wrong kind of value\r\n"


def bulk(text: bytes) -> bytes:
    return b"$%d\r\n%b\r\n" % (len(text), text)


def topic(house: House, name: bytes) -> None:
    keyspace = house.engine.keyspace
    assert keyspace is not None
    keyspace.create_topic(0, name)
    house.engine.commit()


def test_any_bytes_come_back_as_they_were_set(session: RecordedSession) -> None:
    name, value = bytes(range(256)) * 5, b"\0\r\n" * 100_000
    assert session.do("SET", name, value) == OK
    assert session.do("GET", name) == bulk(value)
    assert session.do("GET", "other") == NIL


def test_nx_and_xx_set_only_what_is_missing_or_there(session: RecordedSession) -> None:
    assert session.do("SET", "k", "1", "XX") == NIL
    assert session.do("SET", "k", "1", "NX") == OK
    assert session.do("SET", "k", "2", "NX") == NIL
    assert session.do("SET", "k", "3", "XX") == OK
    assert session.do("SET", "k", "4", "NX", "XX") == SYNTAX
    assert session.do("GET", "k") == bulk(b"3")


def test_nx_with_get_answers_what_was_there_and_sets_nothing(session: RecordedSession) -> None:
    session.do("SET", "k", "old")
    assert session.do("SET", "k", "new", "NX", "GET") == bulk(b"old")
    assert session.do("SET", "free", "new", "NX", "GET") == NIL
    assert session.do("MGET", "k", "free") == b"*2\r\n$3\r\nold\r\n$3\r\nnew\r\n"


def test_set_forgets_the_expiry_unless_it_is_to_be_kept(house: House, session: RecordedSession) -> None:
    session.do("SET", "k", "1", "EX", "100")
    assert session.do("SET", "k", "2", "KEEPTTL") == OK
    assert session.do("TTL", "k") == b":100\r\n"
    assert session.do("SET", "k", "3") == OK
    assert session.do("TTL", "k") == b":-1\r\n"


@pytest.mark.parametrize("option", ["EX", "PX", "EXAT", "PXAT"])
@pytest.mark.parametrize("time", ["0", "-1", "9223372036854775807"])
def test_a_time_that_is_none_is_refused_before_anything_is_set(
    session: RecordedSession, option: str, time: str
) -> None:
    reply = session.do("SET", "k", "v", option, time)
    if option == "PXAT" and time[0] == "9":
        assert reply == OK
    else:
        assert reply == b"-ERR invalid expire time in 'set' command\r\n"
        assert session.do("EXISTS", "k") == b":0\r\n"


@pytest.mark.parametrize(
    "words",
    [
        ["EX"], ["EX", "1", "PX", "1"], ["KEEPTTL", "EX", "1"], ["EX", "1", "KEEPTTL"], ["PERSIST"], [""], ["NX", "EX"],
    ],
)  # fmt: skip
def test_options_that_do_not_go_together_are_a_syntax_error(session: RecordedSession, words: list[str]) -> None:
    assert session.do("SET", "k", "v", *words) == SYNTAX


def test_setex_and_psetex_set_for_a_time(house: House, session: RecordedSession) -> None:
    assert session.do("SETEX", "k", "10", "v") == OK
    assert session.do("PSETEX", "p", "1500", "v") == OK
    assert session.do("PTTL", "p") == b":1500\r\n"
    assert session.do("SETEX", "k", "0", "v") == b"-ERR invalid expire time in 'setex' command\r\n"
    house.clock.now += 10
    assert session.do("MGET", "k", "p") == b"*2\r\n$-1\r\n$-1\r\n"


def test_getex_changes_when_the_key_expires(house: House, session: RecordedSession) -> None:
    session.do("SET", "k", "v")
    assert session.do("GETEX", "k", "EX", "10") == bulk(b"v")
    assert session.do("TTL", "k") == b":10\r\n"
    assert session.do("GETEX", "k") == bulk(b"v")
    assert session.do("TTL", "k") == b":10\r\n"
    assert session.do("GETEX", "k", "PERSIST") == bulk(b"v")
    assert session.do("TTL", "k") == b":-1\r\n"
    assert session.do("GETEX", "k", "PXAT", "1") == bulk(b"v")
    assert session.do("EXISTS", "k") == b":0\r\n"


def test_getdel_and_getset_answer_what_was_there(session: RecordedSession) -> None:
    assert session.do("GETSET", "k", "1") == NIL
    assert session.do("GETSET", "k", "2") == bulk(b"1")
    assert session.do("GETDEL", "k") == bulk(b"2")
    assert session.do("GETDEL", "k") == NIL


def test_msetnx_sets_all_or_none(session: RecordedSession) -> None:
    assert session.do("MSETNX", "a", "1", "b", "2", "a", "3") == b":1\r\n"
    assert session.do("MSETNX", "c", "1", "b", "3") == b":0\r\n"
    assert session.do("MGET", "a", "b", "c") == b"*3\r\n$1\r\n3\r\n$1\r\n2\r\n$-1\r\n"
    assert session.do("MSET", "a", "1", "b") == b"-ERR wrong number of arguments for 'mset' command\r\n"


def test_counting_stays_within_64_bits(session: RecordedSession) -> None:
    assert session.do("INCR", "n") == b":1\r\n"
    assert session.do("DECRBY", "n", "3") == b":-2\r\n"
    session.do("SET", "n", "9223372036854775807")
    assert session.do("INCR", "n") == b"-ERR increment or decrement would overflow\r\n"
    assert session.do("DECRBY", "n", "-9223372036854775808") == b"-ERR decrement would overflow\r\n"
    assert session.do("GET", "n") == bulk(b"9223372036854775807")


@pytest.mark.parametrize("value", ["01", " 1", "1 ", "", "-0", "+1", "1.0", "x", "9223372036854775808"])
def test_what_is_no_integer_is_not_counted(session: RecordedSession, value: str) -> None:
    session.do("SET", "n", value)
    assert session.do("INCR", "n") == NOT_AN_INTEGER
    assert session.do("INCRBY", "m", value) == NOT_AN_INTEGER
    assert session.do("GET", "n") == bulk(value.encode())


def test_counting_keeps_the_expiry(session: RecordedSession) -> None:
    session.do("SET", "n", "1", "EX", "100")
    session.do("INCR", "n")
    session.do("INCRBYFLOAT", "n", "1.5")
    session.do("APPEND", "n", "0")
    assert (session.do("GET", "n"), session.do("TTL", "n")) == (bulk(b"3.50"), b":100\r\n")


@pytest.mark.parametrize(
    ("before", "increment", "after"),
    [
        ("10.50", "0.1", "10.6"),
        ("5.0e3", "2.0e2", "5200"),
        ("3", "-3", "0"),
        ("-0.00000000000000000001", "0", "0"),
        ("0.1", "0.2", "0.3"),
        ("17179869184", "0.5", "17179869184.5"),
        ("1", "0.000000000000000001", "1"),
        ("0x10", "1", "17"),
        ("9007199254740993", "0.25", "9007199254740993.25"),
    ],
)
def test_incrbyfloat_counts_with_64_bits_of_mantissa(
    session: RecordedSession, before: str, increment: str, after: str
) -> None:
    session.do("SET", "n", before)
    assert session.do("INCRBYFLOAT", "n", increment) == bulk(after.encode())


@pytest.mark.parametrize("value", ["", " 1", "1 ", "nan", "x", "1e", "1e5000", "1e-5000", "--1", "1_0", "."])
def test_what_is_no_number_is_no_float(session: RecordedSession, value: str) -> None:
    assert session.do("INCRBYFLOAT", "n", value) == b"-ERR value is not a valid float\r\n"


@pytest.mark.parametrize(
    ("value", "sum"),
    [
        ("0." + "1" * 5000, b"1.11111111111111111"),
        ("0" * 5000 + "1", b"2"),
        ("1e" + "0" * 5000 + "1", b"11"),
        ("0e" + "9" * 5000, b"1"),
        ("0e-" + "9" * 5000, b"1"),
    ],
)
def test_number_of_very_many_digits_is_read_to_its_end(session: RecordedSession, value: str, sum: bytes) -> None:
    session.do("SET", "n", "1")
    assert session.do("INCRBYFLOAT", "n", value) == bulk(sum)


@pytest.mark.parametrize("value", ["1e" + "9" * 5000, "1e-" + "9" * 5000])
def test_exponent_of_very_many_digits_is_none(session: RecordedSession, value: str) -> None:
    assert session.do("INCRBYFLOAT", "n", value) == b"-ERR value is not a valid float\r\n"


def test_sum_of_very_many_digits_is_printed_whole(session: RecordedSession) -> None:
    session.do("INCRBYFLOAT", "n", "0x1p15000")
    assert session.do("GET", "n") == bulk(Decimal(2**15000).to_eng_string().encode())


def test_no_number_becomes_infinite(session: RecordedSession) -> None:
    assert session.do("INCRBYFLOAT", "n", "inf") == b"-ERR increment would produce NaN or Infinity\r\n"
    session.do("SET", "n", "1e4932")
    assert session.do("INCRBYFLOAT", "n", "1e4932") == b"-ERR increment would produce NaN or Infinity\r\n"


def test_append_and_setrange_build_strings(session: RecordedSession) -> None:
    assert session.do("APPEND", "k", "ab") == b":2\r\n"
    assert session.do("APPEND", "k", "cd") == b":4\r\n"
    assert session.do("SETRANGE", "k", "6", "x") == b":7\r\n"
    assert session.do("SETRANGE", "k", "1", "BC") == b":7\r\n"
    assert session.do("GET", "k") == bulk(b"aBCd\0\0x")
    assert session.do("STRLEN", "k") == b":7\r\n"
    assert session.do("SETRANGE", "none", "5", "") == b":0\r\n"
    assert session.do("EXISTS", "none") == b":0\r\n"
    assert session.do("SETRANGE", "k", "-1", "x") == b"-ERR offset is out of range\r\n"


def test_a_string_that_would_be_too_long_is_refused(session: RecordedSession) -> None:
    too_long = b"-ERR string exceeds maximum allowed size (proto-max-bulk-len)\r\n"
    assert session.do("SETRANGE", "k", "536870912", "x") == too_long
    session.do("CONFIG", "SET", "proto-max-bulk-len", "1048576")
    session.do("SET", "k", b"x" * 1048576)
    assert session.do("APPEND", "k", "x") == too_long


@pytest.mark.parametrize(
    ("start", "end", "part"),
    [(0, 3, b"This"), (0, -1, b"This is a string"), (-3, -1, b"ing"), (-1, -3, b""), (10, 100, b"string"), (5, 3, b""),
     (-100, 3, b"This"), (0, -100, b"T"), (-100, -200, b""), (99, 100, b"")],
)  # fmt: skip
def test_getrange_is_that_of_redis(session: RecordedSession, start: int, end: int, part: bytes) -> None:
    session.do("SET", "k", "This is a string")
    assert session.do("GETRANGE", "k", str(start), str(end)) == bulk(part)
    assert session.do("SUBSTR", "k", str(start), str(end)) == bulk(part)


@pytest.mark.parametrize(
    "words",
    [["GET", "t"], ["SET", "t", "v", "GET"], ["GETSET", "t", "v"], ["GETDEL", "t"], ["GETEX", "t", "EX", "1"],
     ["INCR", "t"], ["INCRBYFLOAT", "t", "1"], ["APPEND", "t", "v"], ["STRLEN", "t"], ["GETRANGE", "t", "0", "1"],
     ["SETRANGE", "t", "0", "v"]],
)  # fmt: skip
def test_a_topic_is_the_wrong_type_and_stays_what_it_is(
    house: House, session: RecordedSession, words: list[str]
) -> None:
    topic(house, b"t")
    assert session.do(*words) == WRONG_TYPE
    assert session.do("TYPE", "t") == b"+stream\r\n"


def test_set_replaces_a_topic_and_mget_passes_over_one(house: House, session: RecordedSession) -> None:
    topic(house, b"t")
    assert session.do("MGET", "t") == b"*1\r\n$-1\r\n"
    assert session.do("SET", "t", "v") == OK
    assert session.do("TYPE", "t") == b"+string\r\n"
    assert session.do("DBSIZE") == b":1\r\n"


def test_what_was_set_is_there_for_whoever_opens_the_store_next(house: House, session: RecordedSession) -> None:
    session.do("SET", "k", "v", "EX", "100")
    session.do("APPEND", "k", "w")
    keyspace = house.engine.keyspace
    assert keyspace is not None
    keyspace.stored.forget()
    assert session.do("GET", "k") == bulk(b"vw")
    assert session.do("TTL", "k") == b":100\r\n"
    assert session.do("OBJECT", "ENCODING", "k") == bulk(b"raw")
