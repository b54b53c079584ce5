"""CLIENT, but for PAUSE and TRACKING."""

from __future__ import annotations

import re

import pytest
from recorded_session import House, RecordedSession

OK = b"+OK\r\n"
SYNTAX = b"-ERR syntax error\r\n"
FIELDS = (
    b"id addr laddr fd name age idle flags db sub psub ssub multi qbuf qbuf-free argv-mem multi-mem rbs rbp obl oll "
    b"omem tot-mem events cmd user redir resp"
).split()


def described(session: RecordedSession) -> dict[bytes, bytes]:
    line = session.do("CLIENT", "INFO").split(b"\r\n", 1)[1]
    return dict(field.split(b"=", 1) for field in line.split())


def test_info_has_the_fields_of_the_reference_in_their_order(house: House, session: RecordedSession) -> None:
    house.clock.now += 7
    fields = described(session)
    assert list(fields) == FIELDS
    assert (fields[b"age"], fields[b"cmd"], fields[b"user"]) == (b"7", b"client|info", b"default")
    assert (fields[b"flags"], fields[b"multi"], fields[b"redir"], fields[b"resp"]) == (b"N", b"-1", b"-1", b"2")
    assert fields[b"argv-mem"] == b"10"


def test_info_follows_the_state(session: RecordedSession) -> None:
    session.do("HELLO", "3", "SETNAME", "me")
    session.do("SUBSCRIBE", "a", "b")
    session.do("PSUBSCRIBE", "p*")
    session.do("SSUBSCRIBE", "s")
    session.do("SELECT", "4")
    session.do("CLIENT", "NO-EVICT", "on")
    session.do("CLIENT", "TRACKING", "on", "BCAST")
    session.do("CLIENT", "SETINFO", "lib-name", "redis-py")
    fields = described(session)
    assert (fields[b"name"], fields[b"flags"], fields[b"db"], fields[b"resp"]) == (b"me", b"PtBe", b"4", b"3")
    assert (fields[b"sub"], fields[b"psub"], fields[b"ssub"], fields[b"redir"]) == (b"2", b"1", b"1", b"0")
    assert list(fields)[-2:] == [b"lib-name", b"lib-ver"]
    session.do("MULTI")
    session.do("PUBLISH", "abc", "de")
    other = RecordedSession(session.engine)
    line = other.do("CLIENT", "LIST", "ID", str(session.id))
    assert b" flags=PxtBe " in line and b" multi=1 " in line and b" multi-mem=36 " in line


def test_resp3_gets_verbatim_text(session: RecordedSession) -> None:
    session.do("HELLO", "3")
    assert re.match(rb"=\d+\r\ntxt:id=", session.do("CLIENT", "LIST"))


def test_list_shows_those_who_were_asked_for(house: House, session: RecordedSession) -> None:
    subscriber = house.session()
    subscriber.do("SUBSCRIBE", "c")
    ids = re.compile(rb"\bid=(\d+)")
    mine, theirs = b"%d" % session.id, b"%d" % subscriber.id
    assert ids.findall(session.do("CLIENT", "LIST")) == [mine, theirs]
    assert ids.findall(session.do("CLIENT", "LIST", "TYPE", "pubsub")) == [theirs]
    assert ids.findall(session.do("CLIENT", "LIST", "TYPE", "NORMAL")) == [mine]
    assert ids.findall(session.do("CLIENT", "LIST", "TYPE", "replica")) == []
    assert ids.findall(session.do("CLIENT", "LIST", "ID", theirs, "99", mine)) == [theirs, mine]


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("TYPE", "bad"), b"-ERR Unknown client type 'bad'\r\n"),
        (("ID", "x"), b"-ERR Invalid client ID\r\n"),
        (("ID",), SYNTAX),
        (("TYPE", "normal", "x"), SYNTAX),
    ],
)
def test_list_refuses(session: RecordedSession, words: tuple[str, ...], error: bytes) -> None:
    assert session.do("CLIENT", "LIST", *words) == error


def test_a_name_is_kept_until_an_empty_one_takes_it_away(session: RecordedSession) -> None:
    assert session.do("CLIENT", "GETNAME") == b"$-1\r\n"
    assert session.do("CLIENT", "SETNAME", "me") == OK
    for bad in ("a b", "a\n", "ä", b"\0"):
        error = b"-ERR Client names cannot contain spaces, newlines or special characters.\r\n"
        assert session.do("CLIENT", "SETNAME", bad) == error
    assert session.do("CLIENT", "GETNAME") == b"$2\r\nme\r\n"
    assert session.do("CLIENT", "SETNAME", "") == OK
    assert session.do("CLIENT", "GETNAME") == b"$-1\r\n"


def test_setinfo_takes_name_and_version_of_the_library(session: RecordedSession) -> None:
    assert session.do("CLIENT", "SETINFO", "LIB-NAME", "x") == OK
    assert session.do("CLIENT", "SETINFO", "lib-ver", "1.2") == OK
    assert (session.lib_name, session.lib_version) == (b"x", b"1.2")
    assert session.do("CLIENT", "SETINFO", "other", "x") == b"-ERR Unrecognized option 'other'\r\n"
    assert session.do("CLIENT", "SETINFO", "lib-ver", "1 2") == (
        b"-ERR lib-ver cannot contain spaces, newlines or special characters.\r\n"
    )


def test_maint_notifications_are_unknown(session: RecordedSession) -> None:
    assert session.do("CLIENT", "MAINT_NOTIFICATIONS", "ON") == (
        b"-ERR unknown subcommand 'MAINT_NOTIFICATIONS'. Try CLIENT HELP.\r\n"
    )


# -- replies


def test_reply_off_silences_all_but_messages_until_on(house: House, session: RecordedSession) -> None:
    assert session.do("CLIENT", "REPLY", "OFF") == b""
    assert session.do("PING") == b""
    assert session.do("NOTHING") == b""
    assert session.do("SUBSCRIBE", "c") != b""
    house.session().do("PUBLISH", "c", "m")
    assert session.heard() != b""
    session.do("UNSUBSCRIBE")
    assert session.do("CLIENT", "REPLY", "ON") == OK
    assert session.do("PING") == b"+PONG\r\n"


def test_reply_skip_within_a_transaction_silences_the_command_after_exec(session: RecordedSession) -> None:
    session.do("MULTI")
    session.do("CLIENT", "REPLY", "SKIP")
    session.do("PING")
    assert session.do("EXEC") == b"*2\r\n+PONG\r\n"
    assert session.do("PING") == b""
    assert session.do("PING") == b"+PONG\r\n"


def test_reply_skip_silences_one_command(session: RecordedSession) -> None:
    assert session.do("CLIENT", "REPLY", "SKIP") == b""
    assert session.do("PING") == b""
    assert session.do("PING") == b"+PONG\r\n"
    assert session.do("CLIENT", "REPLY", "maybe") == SYNTAX


# -- KILL


def test_kill_by_address_answers_ok_and_may_hit_oneself(house: House, session: RecordedSession) -> None:
    other = house.session()
    assert session.do("CLIENT", "KILL", other.address) == OK
    assert other.gone
    assert session.do("CLIENT", "KILL", other.address) == b"-ERR No such client\r\n"
    assert session.do("CLIENT", "KILL", session.address) == OK
    assert session.closing


def test_kill_counts_those_who_pass_every_filter(house: House, session: RecordedSession) -> None:
    first, second, subscriber = house.session(), house.session(), house.session()
    subscriber.do("SUBSCRIBE", "c")
    assert session.do("CLIENT", "KILL", "ID", str(first.id), "TYPE", "pubsub") == b":0\r\n"
    assert session.do("CLIENT", "KILL", "ID", str(first.id)) == b":1\r\n"
    assert session.do("CLIENT", "KILL", "TYPE", "pubsub", "LADDR", "127.0.0.1:6379") == b":1\r\n"
    assert (first.gone, second.gone, subscriber.gone) == (True, False, True)
    assert session.do("CLIENT", "KILL", "USER", "default") == b":1\r\n"
    assert second.gone and not session.closing
    assert session.do("CLIENT", "KILL", "SKIPME", "no", "ADDR", session.address) == b":1\r\n"
    assert session.closing


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("ID", "0"), b"-ERR client-id should be greater than 0\r\n"),
        (("ID", "x"), b"-ERR client-id should be greater than 0\r\n"),
        (("TYPE", "x"), b"-ERR Unknown client type 'x'\r\n"),
        (("USER", "x"), b"-ERR No such user 'x'\r\n"),
        (("SKIPME", "x"), SYNTAX),
        (("ID", "1", "TYPE"), SYNTAX),
        (("OTHER", "1"), SYNTAX),
    ],
)
def test_kill_refuses(session: RecordedSession, words: tuple[str, ...], error: bytes) -> None:
    assert session.do("CLIENT", "KILL", *words) == error


# -- UNBLOCK


def test_unblock_of_who_is_not_blocked_does_nothing(house: House, session: RecordedSession) -> None:
    assert session.do("CLIENT", "UNBLOCK", str(house.session().id)) == b":0\r\n"
    assert session.do("CLIENT", "UNBLOCK", "999") == b":0\r\n"
    assert session.do("CLIENT", "UNBLOCK", "x") == b"-ERR value is not an integer or out of range\r\n"
    assert session.do("CLIENT", "UNBLOCK", "1", "x") == b"-ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR\r\n"
