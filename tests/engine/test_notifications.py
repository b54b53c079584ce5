"""Keyspace notifications: which events, in which order, and where in front of or behind a reply."""

from __future__ import annotations

import re

import pytest
from recorded_session import House, RecordedSession

pytestmark = pytest.mark.settings(notify_keyspace_events="AEn")


def events(heard: bytes) -> list[tuple[bytes, bytes]]:
    """(event, key) of every message of a keyevent channel."""
    return re.findall(rb"__keyevent@0__:(.*?)\r\n\$\d+\r\n(.*?)\r\n", heard)


@pytest.fixture
def listener(house: House) -> RecordedSession:
    session = house.session()
    session.do("PSUBSCRIBE", "__key*")
    return session


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["SET", "new", "v", "EX", "10"], [(b"new", b"new"), (b"set", b"new"), (b"expire", b"new")]),
        (["SET", "k", "v"], [(b"set", b"k")]),
        (["SET", "k", "v", "NX"], []),
        (["MSET", "a", "1", "a", "2"], [(b"new", b"a"), (b"set", b"a"), (b"set", b"a")]),
        (["INCR", "k"], [(b"incrby", b"k")]),
        (["DECRBY", "k", "2"], [(b"incrby", b"k")]),
        (["INCRBYFLOAT", "k", "2"], [(b"incrbyfloat", b"k")]),
        (["APPEND", "k", "2"], [(b"append", b"k")]),
        (["SETRANGE", "k", "0", "2"], [(b"setrange", b"k")]),
        (["SETRANGE", "k", "0", ""], []),
        (["GETDEL", "k"], [(b"del", b"k")]),
        (["DEL", "k", "none"], [(b"del", b"k")]),
        (["EXPIRE", "k", "10"], [(b"expire", b"k")]),
        (["EXPIRE", "k", "-1"], [(b"del", b"k")]),
        (["PERSIST", "volatile"], [(b"persist", b"volatile")]),
        (["GETEX", "volatile", "PERSIST"], [(b"persist", b"volatile")]),
        (["GETEX", "k", "EXAT", "1"], [(b"del", b"k")]),
        (["RENAME", "k", "x"], [(b"new", b"x"), (b"rename_from", b"k"), (b"rename_to", b"x")]),
        (["RENAME", "k", "k"], []),
        (["COPY", "k", "x"], [(b"new", b"x"), (b"copy_to", b"x")]),
        (["MOVE", "k", "1"], [(b"move_from", b"k")]),
        (["FLUSHALL"], []),
    ],
)
def test_events_are_those_of_redis(
    house: House,
    listener: RecordedSession,
    session: RecordedSession,
    words: list[str],
    expected: list[tuple[bytes, bytes]],
) -> None:
    session.do("SET", "k", "1")
    session.do("SET", "volatile", "1", "EX", "100")
    listener.heard()
    session.do(*words)
    assert events(listener.heard()) == expected


@pytest.mark.parametrize(
    "words",
    [
        ["SET", "k", "v"],
        ["SUNIONSTORE", "k", "set"],
        ["ZUNIONSTORE", "k", "1", "set"],
        ["ZRANGESTORE", "k", "sorted", "0", "-1"],
        ["GEOSEARCHSTORE", "k", "sorted", "FROMLONLAT", "0", "0", "BYRADIUS", "99999", "km"],
        ["SORT", "set", "ALPHA", "STORE", "k"],
        ["BITOP", "NOT", "k", "text"],
    ],
)
def test_a_key_that_is_replaced_is_not_new(
    house: House, listener: RecordedSession, session: RecordedSession, words: list[str]
) -> None:
    session.do("SADD", "set", "a", "b")
    session.do("ZADD", "sorted", "1", "a")
    session.do("SET", "text", "v")
    listener.heard()
    session.do(*words)
    assert b"new" in dict(events(listener.heard()))
    session.do("DEL", "k")
    session.do("RPUSH", "k", "a")
    listener.heard()
    session.do(*words)
    told = events(listener.heard())
    assert told and b"new" not in dict(told)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["BLPOP", "k", "0"], [b"new", b"rpush", b"lpop", b"del"]),
        (["BLMOVE", "k", "k", "LEFT", "RIGHT", "0"], [b"new", b"rpush", b"rpush", b"lpop"]),
        (["BLMPOP", "0", "1", "k", "RIGHT"], [b"new", b"rpush", b"rpop", b"del"]),
    ],
)
def test_what_a_waiting_session_takes_is_told_in_the_turn_that_serves_it(
    house: House, listener: RecordedSession, session: RecordedSession, words: list[str], expected: list[bytes]
) -> None:
    house.session().do(*words)
    session.do("RPUSH", "k", "v")
    assert [event for event, _ in events(listener.heard())] == expected


def test_both_forms_are_published_if_both_are_asked_for(house: House, listener: RecordedSession) -> None:
    session = house.session()
    session.do("CONFIG", "SET", "notify-keyspace-events", "KE$")
    session.do("SELECT", "3")
    session.do("SET", "k", "v", "EX", "10")
    assert re.findall(rb"\$\d+\r\n(__key.*?|set|k)\r\n", listener.heard()) == [
        b"__key*", b"__keyspace@3__:k", b"set", b"__key*", b"__keyevent@3__:set", b"k",
    ]  # fmt: skip


@pytest.mark.parametrize("classes", ["", "g", "$", "K", "Kg", "El"])
def test_classes_that_are_not_asked_for_are_not_published(
    house: House, listener: RecordedSession, session: RecordedSession, classes: str
) -> None:
    session.do("CONFIG", "SET", "notify-keyspace-events", classes)
    session.do("SET", "k", "v")
    assert listener.heard() == b""


def test_a_miss_is_told_of_reads_only_and_only_if_asked_for(
    house: House, listener: RecordedSession, session: RecordedSession
) -> None:
    session.do("GET", "none")
    assert listener.heard() == b""
    session.do("CONFIG", "SET", "notify-keyspace-events", "Em")
    session.do("GET", "none")
    session.do("EXPIRE", "none", "1")
    assert events(listener.heard()) == [(b"keymiss", b"none")]


def test_what_expires_is_told_when_it_is_noticed(
    house: House, listener: RecordedSession, session: RecordedSession
) -> None:
    session.do("MSET", "a", "1", "b", "1")
    session.do("PEXPIRE", "a", "100")
    session.do("PEXPIRE", "b", "100")
    listener.heard()
    house.clock.now += 1
    session.do("GET", "a")
    assert events(listener.heard()) == [(b"expired", b"a")]
    house.engine.cron(house.clock.now)
    assert events(listener.heard()) == [(b"expired", b"b")]


@pytest.mark.parametrize(
    ("words", "reply_first"),
    [
        (["SET", "k", "v"], False),
        (["SET", "k", "v", "GET"], True),
        (["GETSET", "k", "v"], True),
        (["GETDEL", "k"], True),
        (["GETEX", "k", "EX", "10"], True),
        (["EXPIRE", "k", "10"], True),
        (["EXPIRE", "k", "-1"], False),
        (["DEL", "k"], False),
        (["INCR", "k"], False),
    ],
)
def test_one_s_own_event_stands_on_that_side_of_the_reply_where_redis_puts_it(
    session: RecordedSession, words: list[str], reply_first: bool
) -> None:
    session.do("HELLO", "3")
    session.do("SET", "k", "1")
    session.do("PSUBSCRIBE", "__key*")
    heard = session.do(*words)
    assert heard.count(b">4\r\n") == 1
    assert heard.startswith(b">4\r\n") != reply_first
