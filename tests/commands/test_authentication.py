"""AUTH, HELLO's AUTH, and what changes the default user's password."""

from __future__ import annotations

import pytest
from recorded_session import House, RecordedSession

pytestmark = pytest.mark.settings(requirepass="secret")

OK = b"+OK\r\n"
WRONG = b"-WRONGPASS invalid username-password pair or user is disabled.\r\n"
NO_AUTH = b"-NOAUTH Authentication required.\r\n"


def test_without_a_password_auth_with_one_is_an_error_and_with_a_user_is_not() -> None:
    session = House().session()
    assert session.do("AUTH", "x") == (
        b"-ERR AUTH <password> called without any password configured for the default user. "
        b"Are you sure your configuration is correct?\r\n"
    )
    assert session.do("AUTH", "default", "x") == OK
    assert session.do("AUTH", "somebody", "x") == WRONG


def test_only_the_password_opens(session: RecordedSession) -> None:
    assert session.do("PING") == NO_AUTH
    assert session.do("AUTH", "wrong") == WRONG
    assert session.do("AUTH", "other", "secret") == WRONG
    assert session.do("AUTH", "default", "secret", "x") == b"-ERR syntax error\r\n"
    assert session.do("PING") == NO_AUTH
    assert session.do("AUTH", "secret") == OK
    assert session.do("PING") == b"+PONG\r\n"


def test_a_binary_password_is_compared_to_its_end(house: House, session: RecordedSession) -> None:
    house.engine.settings.set("requirepass", [b"abc\0def"])
    assert session.do("AUTH", "abc") == WRONG
    assert session.do("AUTH", b"abc\0def") == OK


def test_a_new_password_leaves_those_in_who_are_in(house: House, session: RecordedSession) -> None:
    session.do("AUTH", "secret")
    house.engine.settings.set("requirepass", [b"other"])
    assert session.do("PING") == b"+PONG\r\n"
    assert house.session().do("AUTH", "secret") == WRONG


def test_without_the_password_nobody_needs_it_any_more(house: House, session: RecordedSession) -> None:
    house.engine.settings.set("requirepass", [b""])
    assert session.do("PING") == b"+PONG\r\n"


def test_a_refused_login_is_in_the_acl_log_and_equal_ones_are_counted(house: House, session: RecordedSession) -> None:
    admin = house.session()
    admin.do("AUTH", "secret")
    session.do("AUTH", "bob", "wrong")
    session.do("auth", "bob", "wrong")
    session.do("AUTH", "bob", "wrong")
    house.clock.now += 61
    session.do("auth", "bob", "wrong")
    entries = house.engine.acl_log.entries
    assert [(entry.object, entry.count) for entry in entries] == [(b"auth", 1), (b"AUTH", 2), (b"auth", 1)]
    assert (entries[0].reason, entries[0].context, entries[0].username) == (b"auth", b"toplevel", b"bob")
    assert b"id=%d addr=" % session.id in entries[0].client_info
    assert admin.do("ACL", "LOG", "1").startswith(b"*1\r\n*14\r\n$5\r\ncount\r\n:1\r\n$6\r\nreason\r\n$4\r\nauth\r\n")
    assert admin.do("ACL", "LOG", "RESET") == OK
    assert admin.do("ACL", "LOG") == b"*0\r\n"


def test_the_acl_log_keeps_no_more_than_its_setting_says(house: House, session: RecordedSession) -> None:
    house.engine.settings.set("acllog-max-len", [b"2"])
    for user in ("a", "b", "c"):
        session.do("AUTH", user, "wrong")
    assert [entry.username for entry in house.engine.acl_log.entries] == [b"c", b"b"]


def test_monitors_and_the_slow_log_see_no_password(house: House, session: RecordedSession) -> None:
    house.engine.settings.set("slowlog-log-slower-than", [b"0"])
    monitor = house.session()
    monitor.do("AUTH", "secret")
    monitor.do("MONITOR")
    session.do("AUTH", "secret")
    session.do("AUTH", "default", "secret")
    session.do("HELLO", "3", "AUTH", "default", "secret")
    session.do("ACL", "SETUSER", "default", ">secret")
    assert b'"AUTH" "(redacted)"' in monitor.heard()
    assert all(b"secret" not in arg for entry in house.engine.slowlog.entries for arg in entry.args)
    assert [b"HELLO", b"3", b"AUTH", b"(redacted)", b"(redacted)"] in [e.args for e in house.engine.slowlog.entries]


@pytest.mark.parametrize(
    "words",
    [
        ["AUTH", "SECRET"],
        ["HELLO", "4", "AUTH", "bob", "SECRET"],
        ["HELLO", "x", "AUTH", "bob", "SECRET"],
        ["HELLO", "3", "AUTH", "SECRET"],
        ["HELLO", "3", "AUTH", "a", "SECRET", "AUTH", "b", "SECRET"],
        ["HELLO", "3", "SETNAME", "n", "AUTH", "b", "SECRET"],
        ["CONFIG", "SET", "requirepas", "SECRET"],
        ["CONFIG", "SET", "masterauth", "SECRET", "nosuch"],
        ["CONFIG", "SET", "cold-store", "s3://AK:SECRET@b/x"],
        ["CONFIG", "SET", "register-as", "redis://u:SECRET@h:1"],
        ["CONFIG", "SET", "backup-to", "s3://AK:SECRET@b/x"],
        ["CONFIG", "SET", "tls-key-file-pass", "SECRET"],
    ],
)
@pytest.mark.settings(slowlog_log_slower_than="0")
def test_a_password_is_hidden_though_its_request_is_refused(house: House, words: list[str]) -> None:
    session, other = house.session(), house.session()
    session.do(*words)
    said = other.do("SLOWLOG", "GET", "-1")
    assert words[0].encode() in said and b"SECRET" not in said


def test_hello_logs_in_names_and_switches_in_one(session: RecordedSession) -> None:
    reply = session.do("HELLO", "3", "AUTH", "default", "secret", "SETNAME", "me")
    assert reply.startswith(
        b"%7\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$6\r\n7.0.15\r\n$5\r\nproto\r\n:3\r\n"
    )
    assert session.do("CLIENT", "GETNAME") == b"$2\r\nme\r\n"


def test_hello_without_authentication_switches_nothing_but_keeps_the_name(session: RecordedSession) -> None:
    assert session.do("HELLO", "3", "SETNAME", "me").startswith(
        b"-NOAUTH HELLO must be called with the client already "
    )
    assert (session.protocol, session.name) == (2, b"me")


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("x",), b"-ERR Protocol version is not an integer or out of range\r\n"),
        (("4",), b"-NOPROTO unsupported protocol version\r\n"),
        (("1",), b"-NOPROTO unsupported protocol version\r\n"),
        (("3", "AUTH", "default"), b"-ERR Syntax error in HELLO option 'AUTH'\r\n"),
        (("3", "setname"), b"-ERR Syntax error in HELLO option 'setname'\r\n"),
        (("3", "AUTH", "default", "x"), WRONG),
        (
            ("3", "SETNAME", "a b"),
            b"-ERR Client names cannot contain spaces, newlines or special characters.\r\n",
        ),
    ],
)
def test_hello_refuses(session: RecordedSession, words: tuple[str, ...], error: bytes) -> None:
    assert session.do("HELLO", *words) == error
    assert session.protocol == 2


def test_hello_without_a_version_tells_and_changes_nothing() -> None:
    session = House().session()
    assert session.do("HELLO").startswith(b"*14\r\n")
    session.do("HELLO", "3")
    assert session.do("HELLO").startswith(b"%7\r\n")


def test_messages_from_before_a_switch_are_in_the_old_version_and_those_after_in_the_new() -> None:
    house = House()
    subscriber, publisher = house.session(), house.session()
    subscriber.do("HELLO", "3")
    subscriber.do("SUBSCRIBE", "c")
    publisher.waiting.append([b"PUBLISH", b"c", b"old"])
    publisher.resume()
    said = subscriber.do("HELLO", "2")
    assert said.startswith(b">3\r\n$7\r\nmessage\r\n") and b"\r\n*14\r\n" in said
    publisher.do("PUBLISH", "c", "new")
    assert subscriber.heard() == b"*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$3\r\nnew\r\n"
