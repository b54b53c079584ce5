"""ACL."""

from __future__ import annotations

import hashlib

import pytest
from recorded_session import House, RecordedSession

OK = b"+OK\r\n"


@pytest.fixture
def session() -> RecordedSession:
    return House().session()


def test_there_is_one_user_who_may_do_everything(session: RecordedSession) -> None:
    assert session.do("ACL", "WHOAMI") == b"$7\r\ndefault\r\n"
    assert session.do("ACL", "USERS") == b"*1\r\n$7\r\ndefault\r\n"
    assert session.do("ACL", "LIST") == b"*1\r\n$34\r\nuser default on nopass ~* &* +@all\r\n"
    assert session.do("ACL", "GETUSER", "nobody") == b"$-1\r\n"
    assert session.do("ACL", "DELUSER", "nobody") == b":0\r\n"
    assert session.do("ACL", "DELUSER", "a", "default") == b"-ERR The 'default' user cannot be removed\r\n"
    assert session.do("ACL", "DRYRUN", "default", "ping") == OK
    session.do("HELLO", "3")
    assert session.do("ACL", "GETUSER", "default") == (
        b"%6\r\n$5\r\nflags\r\n~2\r\n$2\r\non\r\n$6\r\nnopass\r\n$9\r\npasswords\r\n*0\r\n$8\r\ncommands\r\n$5\r\n+@all\r\n"
        b"$4\r\nkeys\r\n$2\r\n~*\r\n$8\r\nchannels\r\n$2\r\n&*\r\n$9\r\nselectors\r\n*0\r\n"
    )


def test_passwords_come_and_go(session: RecordedSession) -> None:
    known = hashlib.sha256(b"one").hexdigest()
    assert session.do("ACL", "SETUSER", "default", ">one", ">two", "<two", "~*", "+@all", "") == OK
    assert b"user default on #%b ~* &* +@all" % known.encode() in session.do("ACL", "LIST")
    other = RecordedSession(session.instance)
    assert other.do("PING").startswith(b"-NOAUTH")
    assert other.do("AUTH", "two").startswith(b"-WRONGPASS")
    assert other.do("AUTH", "one") == OK
    assert session.do("ACL", "SETUSER", "default", "!" + known, "nopass") == OK
    assert RecordedSession(session.instance).do("PING") == b"+PONG\r\n"


def test_a_user_switched_off_lets_nobody_in(session: RecordedSession) -> None:
    session.do("ACL", "SETUSER", "default", "off")
    other = RecordedSession(session.instance)
    assert other.do("PING").startswith(b"-NOAUTH")
    assert other.do("AUTH", "default", "x").startswith(b"-WRONGPASS")
    session.do("ACL", "SETUSER", "default", "on")
    assert other.do("PING") == b"+PONG\r\n"


@pytest.mark.parametrize(
    ("rule", "reason"),
    [
        ("<none", b"The password you are trying to remove from the user does not exist"),
        ("#xyz", b"The password hash must be exactly 64 characters and contain only lowercase hexadecimal characters"),
        ("+nothing", b"Unknown command or category name in ACL"),
        ("-@nothing", b"Unknown command or category name in ACL"),
        ("%%", b"Syntax error"),
        ("nonsense", b"Syntax error"),
        (
            "~foo",
            b"Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid and does not have any effect. "
            b"Try 'resetkeys' to start with an empty list of patterns",
        ),
        (
            "&foo",
            b"Adding a pattern after the * pattern (or the 'allchannels' flag) is not valid and does not have any "
            b"effect. Try 'resetchannels' to start with an empty list of channels",
        ),
        ("resetkeys", b"Restricting what a user may do is not supported by this server"),
        ("-@all", b"Restricting what a user may do is not supported by this server"),
        ("-ping", b"Restricting what a user may do is not supported by this server"),
    ],
)
def test_a_refused_rule_leaves_nothing_behind(session: RecordedSession, rule: str, reason: bytes) -> None:
    before = session.instance.default_user
    expected = b"-ERR Error in ACL SETUSER modifier '%b': %b\r\n" % (rule.encode(), reason)
    assert session.do("ACL", "SETUSER", "default", ">secret", rule) == expected
    assert session.instance.default_user == before


def test_other_users_are_refused_by_name(session: RecordedSession) -> None:
    assert b"no user but 'default'" in session.do("ACL", "SETUSER", "bob", "on")
    assert session.do("ACL", "SETUSER", "b ob") == b"-ERR Usernames can't contain spaces or null characters\r\n"
    assert session.do("ACL", "DRYRUN", "bob", "ping") == b"-ERR User 'bob' not found\r\n"


def test_cat_names_categories_and_commands(session: RecordedSession) -> None:
    assert session.do("ACL", "CAT").startswith(b"*21\r\n$8\r\nkeyspace\r\n$4\r\nread\r\n")
    pubsub = session.do("ACL", "CAT", "PubSub")
    assert b"$9\r\nsubscribe\r\n" in pubsub and b"$13\r\npubsub|numsub\r\n" in pubsub and b"ping" not in pubsub
    assert session.do("ACL", "CAT", "nothing") == b"-ERR Unknown category 'nothing'\r\n"


@pytest.mark.parametrize(("bits", "length"), [("5", 2), ("4", 1), ("4096", 1024)])
def test_genpass_makes_as_many_bits_as_asked_for(session: RecordedSession, bits: str, length: int) -> None:
    assert session.do("ACL", "GENPASS", bits).startswith(b"$%d\r\n" % length)
    assert session.do("ACL", "GENPASS") != session.do("ACL", "GENPASS")


@pytest.mark.parametrize("bits", ["0", "-5", "4097"])
def test_genpass_refuses_what_is_no_number_of_bits(session: RecordedSession, bits: str) -> None:
    error = (
        b"-ERR ACL GENPASS argument must be the number of bits for the output password, a positive number up to 4096"
    )
    assert session.do("ACL", "GENPASS", bits) == error + b"\r\n"
