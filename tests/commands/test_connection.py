"""PING, ECHO, SELECT, RESET, QUIT."""

from __future__ import annotations

import pytest
from recorded_session import House, RecordedSession


def test_ping_answers_in_the_form_that_the_peer_can_tell_from_a_message(session: RecordedSession) -> None:
    assert session.do("PING") == b"+PONG\r\n"
    assert session.do("PING", b"a\0") == b"$2\r\na\0\r\n"
    session.do("SUBSCRIBE", "c")
    assert session.do("PING") == b"*2\r\n$4\r\npong\r\n$0\r\n\r\n"
    assert session.do("PING", "x") == b"*2\r\n$4\r\npong\r\n$1\r\nx\r\n"
    assert session.do("PING", "x", "y") == b"-ERR wrong number of arguments for 'ping' command\r\n"


def test_ping_of_a_subscribed_resp3_session_answers_plainly(session: RecordedSession) -> None:
    session.do("HELLO", "3")
    session.do("SUBSCRIBE", "c")
    assert session.do("PING") == b"+PONG\r\n"


@pytest.mark.parametrize(
    ("index", "reply"),
    [
        ("15", b"+OK\r\n"),
        ("16", b"-ERR DB index is out of range\r\n"),
        ("-1", b"-ERR DB index is out of range\r\n"),
        ("x", b"-ERR value is not an integer or out of range\r\n"),
        ("01", b"-ERR value is not an integer or out of range\r\n"),
        ("2147483648", b"-ERR value is out of range, value must between -2147483648 and 2147483647\r\n"),
    ],
)
def test_select_takes_what_there_is_and_says_what_is_wrong(session: RecordedSession, index: str, reply: bytes) -> None:
    assert session.do("SELECT", index) == reply
    assert session.db == (15 if index == "15" else 0)


def test_reset_leaves_a_session_as_new(session: RecordedSession) -> None:
    session.do("HELLO", "3", "SETNAME", "me")
    session.do("SELECT", "3")
    session.do("SUBSCRIBE", "c")
    session.do("CLIENT", "TRACKING", "ON")
    session.do("WATCH", "k")
    session.do("CLIENT", "REPLY", "OFF")
    session.do("MULTI")
    assert session.do("RESET") == b"+RESET\r\n"
    assert (session.protocol, session.db, session.name, session.transaction) == (2, 0, b"", None)
    assert (session.watched, session.tracking, session.holds_names) == (None, None, False)
    assert session.do("PUBLISH", "c", "m") == b":0\r\n"


def test_what_was_published_before_a_reset_goes_out_in_the_old_version(session: RecordedSession) -> None:
    publisher = RecordedSession(session.engine)
    session.do("HELLO", "3")
    session.do("SUBSCRIBE", "c")
    publisher.waiting.append([b"PUBLISH", b"c", b"m"])
    publisher.resume()
    assert session.do("RESET") == b">3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nm\r\n+RESET\r\n"


def test_reset_does_not_break_the_silence_of_skip(session: RecordedSession) -> None:
    session.do("CLIENT", "REPLY", "SKIP")
    assert session.do("RESET") == b""
    assert session.do("PING") == b"+PONG\r\n"


def test_reset_of_an_authenticated_session_asks_for_the_password_again() -> None:
    session = House(requirepass="secret").session()
    session.do("AUTH", "secret")
    session.do("RESET")
    assert session.do("PING") == b"-NOAUTH Authentication required.\r\n"


def test_quit_answers_and_closes(session: RecordedSession) -> None:
    assert session.do("QUIT", "whatever") == b"+OK\r\n"
    assert session.closing
