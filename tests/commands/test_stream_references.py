"""XDELEX, XACKDEL, and KEEPREF, DELREF and ACKED of XADD and XTRIM, as Redis 8.2 has them."""

from __future__ import annotations

import pytest
from recorded_session import RecordedSession

WRONG_COUNT = b"-ERR The `numids` parameter must match the number of arguments\r\n"
BAD_COUNT = b"-ERR Number of IDs must be a positive integer\r\n"
SYNTAX = b"-ERR syntax error\r\n"


def add(session: RecordedSession, count: int, key: str = "s") -> None:
    for number in range(1, count + 1):
        session.do("XADD", key, f"{number}-0", "f", "v")


def read(session: RecordedSession, *groups: str, count: int = 100) -> None:
    for group in groups:
        session.do("XREADGROUP", "GROUP", group, "consumer", "COUNT", str(count), "STREAMS", "s", ">")


def ids(session: RecordedSession) -> list[int]:
    words = session.do("XRANGE", "s", "-", "+").split(b"\r\n")
    return [int(word[:-2]) for word in words if word.endswith(b"-0")]


def answers(*numbers: int) -> bytes:
    return b"*%d\r\n" % len(numbers) + b"".join([b":%d\r\n" % number for number in numbers])


def pending(session: RecordedSession, group: str) -> int:
    return int(session.do("XPENDING", "s", group).split(b"\r\n")[1][1:])


@pytest.fixture
def groups(session: RecordedSession) -> RecordedSession:
    """Two entries, which two groups have read, and a third has not."""
    add(session, 2)
    for group in ("one", "two", "three"):
        session.do("XGROUP", "CREATE", "s", group, "0")
    read(session, "one", "two")
    return session


@pytest.mark.parametrize("command", ["XDELEX s", "XACKDEL s g"])
def test_what_is_wrong_is_refused(session: RecordedSession, command: str) -> None:
    add(session, 1)
    session.do("XGROUP", "CREATE", "s", "g", "0")
    refused = {
        "IDS abc 1-1": BAD_COUNT,
        "IDS 0 1-1": BAD_COUNT,
        "IDS -5 1-1": BAD_COUNT,
        "IDS 3 1-1 2-2": WRONG_COUNT,
        "IDS 1 1-1 2-2": SYNTAX,
        "KEEPREF DELREF IDS 1 1-1": SYNTAX,
        "ACKED ACKED IDS 1 1-1": SYNTAX,
        "DELREF KEEPREF x": SYNTAX,
        "IDS 1 1-1 IDS 1 1-1": SYNTAX,
    }
    for rest, refusal in refused.items():
        assert session.do(*command.split(), *rest.split()) == refusal, rest
    assert session.do(*command.split(), "IDS", "1", "nonsense").startswith(b"-ERR Invalid stream ID")
    assert session.do(*command.split()[:2], "DELREF").startswith(b"-ERR wrong number of arguments")
    assert ids(session) == [1]
    session.do("SET", "t", "v")
    assert session.do("XDELEX", "t", "IDS", "1", "1-1").startswith(b"-WRONGTYPE")


def test_what_is_not_there_is_told(session: RecordedSession) -> None:
    assert session.do("XDELEX", "s", "IDS", "2", "1-1", "2-2") == answers(-1, -1)
    assert session.do("XACKDEL", "s", "g", "IDS", "2", "1-1", "2-2") == answers(-1, -1)
    add(session, 1)
    assert session.do("XACKDEL", "s", "g", "IDS", "2", "1-1", "2-2") == answers(-1, -1)
    assert session.do("XDELEX", "s", "ACKED", "IDS", "2", "1-1", "1-0") == answers(-1, 1)
    assert session.do("XDELEX", "s", "IDS", "1", "1-0") == answers(-1)


def test_references_stay(groups: RecordedSession) -> None:
    assert groups.do("XDELEX", "s", "IDS", "3", "1-0", "2-0", "1-0") == answers(1, 1, -1)
    assert (ids(groups), pending(groups, "one"), pending(groups, "two")) == ([], 2, 2)


def test_references_go_too(groups: RecordedSession) -> None:
    assert groups.do("XDELEX", "s", "DELREF", "IDS", "2", "2-0", "1-0") == answers(1, 1)
    assert (ids(groups), pending(groups, "one"), pending(groups, "two")) == ([], 0, 0)


def test_only_what_every_group_has_read_and_acknowledged_goes(groups: RecordedSession) -> None:
    delete = "XDELEX", "s", "ACKED", "IDS", "2", "1-0", "2-0"
    groups.do("XACK", "s", "one", "1-0", "2-0")
    assert groups.do(*delete) == answers(2, 2)
    groups.do("XACK", "s", "two", "1-0", "2-0")
    assert groups.do(*delete) == answers(2, 2)
    read(groups, "three", count=1)
    groups.do("XACK", "s", "three", "1-0")
    assert groups.do(*delete) == answers(1, 2)
    assert ids(groups) == [2]
    groups.do("XGROUP", "DESTROY", "s", "three")
    assert groups.do(*delete) == answers(-1, 1)


def test_what_a_group_has_back_to_deliver_again_is_referred_to(session: RecordedSession) -> None:
    add(session, 1)
    session.do("XGROUP", "CREATE", "s", "g", "0")
    read(session, "g")
    assert session.do("TOPIC.REQUEUE", "s", "g", "1-0") == b":1\r\n"
    assert session.do("XDELEX", "s", "ACKED", "IDS", "1", "1-0") == answers(2)
    assert session.do("XDELEX", "s", "DELREF", "IDS", "1", "1-0") == answers(1)
    assert session.do("XREADGROUP", "GROUP", "g", "c", "STREAMS", "s", ">") == b"*-1\r\n"


def test_acknowledged_and_deleted_at_once(groups: RecordedSession) -> None:
    assert groups.do("XACKDEL", "s", "one", "ACKED", "IDS", "3", "1-0", "2-0", "3-0") == answers(2, 2, -1)
    assert (ids(groups), pending(groups, "one"), pending(groups, "two")) == ([1, 2], 0, 2)
    assert groups.do("XACKDEL", "s", "one", "IDS", "1", "1-0") == answers(-1)
    assert groups.do("XACKDEL", "s", "two", "IDS", "1", "1-0") == answers(1)
    assert (ids(groups), pending(groups, "two")) == ([2], 1)
    read(groups, "three")
    assert groups.do("XACKDEL", "s", "two", "DELREF", "IDS", "1", "2-0") == answers(1)
    assert (ids(groups), pending(groups, "three")) == ([], 0)


def test_deletions_are_events(session: RecordedSession) -> None:
    session.do("CONFIG", "SET", "notify-keyspace-events", "Et")
    add(session, 2)
    listener = RecordedSession(session.engine)
    listener.do("SUBSCRIBE", "__keyevent@0__:xdel")
    session.do("XDELEX", "s", "IDS", "2", "1-0", "9-0")
    assert listener.heard().count(b"message") == 1
    session.do("XDELEX", "s", "IDS", "1", "9-0")
    assert listener.heard() == b""


def test_trimming_keeps_what_is_not_acknowledged(session: RecordedSession) -> None:
    add(session, 5)
    session.do("XGROUP", "CREATE", "s", "g", "0")
    session.do("XADD", "s", "MAXLEN", "=", "1", "ACKED", "6-0", "f", "v")
    assert ids(session) == [1, 2, 3, 4, 5, 6]
    read(session, "g", count=1)
    session.do("XACK", "s", "g", "1-0")
    session.do("XADD", "s", "MAXLEN", "=", "1", "ACKED", "7-0", "f", "v")
    assert ids(session) == [2, 3, 4, 5, 6, 7]
    read(session, "g")
    session.do("XACK", "s", "g", "3-0", "5-0")
    assert session.do("XTRIM", "s", "MAXLEN", "5", "ACKED") == b":1\r\n"
    assert ids(session) == [2, 4, 5, 6, 7]
    session.do("XACK", "s", "g", "2-0", "4-0", "6-0", "7-0")
    session.do("XADD", "s", "MAXLEN", "1", "ACKED", "8-0", "f", "v")
    assert ids(session) == [8]


def test_trimming_about_an_id_passes_by_what_is_not_acknowledged(session: RecordedSession) -> None:
    session.do("CONFIG", "SET", "stream-node-max-entries", "2")
    add(session, 5)
    session.do("XGROUP", "CREATE", "s", "g", "0")
    read(session, "g")
    session.do("XACK", "s", "g", "1-0", "2-0", "4-0")
    assert session.do("XTRIM", "s", "MINID", "~", "6-0", "ACKED") == b":3\r\n"
    assert ids(session) == [3, 5]


@pytest.mark.parametrize("trim", ["MINID ~ 5-0", "MINID 5-0", "MAXLEN ~ 0", "MAXLEN 0"])
def test_trimming_takes_references_along(session: RecordedSession, trim: str) -> None:
    session.do("CONFIG", "SET", "stream-node-max-entries", "2")
    add(session, 4)
    session.do("XGROUP", "CREATE", "s", "g", "0")
    read(session, "g")
    assert session.do("XTRIM", "s", *trim.split(), "DELREF") == b":4\r\n"
    assert (ids(session), pending(session, "g")) == ([], 0)


def test_trimming_takes_only_the_references_to_what_goes(session: RecordedSession) -> None:
    add(session, 3000)
    session.do("XGROUP", "CREATE", "s", "g", "0")
    read(session, "g", count=3000)
    session.do("XADD", "s", "DELREF", "MAXLEN", "500", "3001-0", "f", "v")
    assert pending(session, "g") == 499
    assert session.do("XTRIM", "s", "MAXLEN", "=", "400", "KEEPREF") == b":100\r\n"
    assert pending(session, "g") == 499


def test_one_word_says_what_becomes_of_references(session: RecordedSession) -> None:
    add(session, 1)
    assert session.do("XTRIM", "s", "MAXLEN", "0", "ACKED", "DELREF") == SYNTAX
    assert session.do("XADD", "s", "KEEPREF", "DELREF", "*", "f", "v") == SYNTAX
    assert session.do("XADD", "s", "KEEPREF", "2-0", "f", "v") == b"$3\r\n2-0\r\n"
    assert session.do("XTRIM", "s", "ACKED").startswith(b"-ERR wrong number of arguments")
    assert session.do("XTRIM", "s", "ACKED", "MAXLEN", "0") == b":2\r\n"
