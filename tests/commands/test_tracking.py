"""CLIENT TRACKING and its kin: the state, and what is refused."""

from __future__ import annotations

import pytest
from recorded_session import House, RecordedSession

OK = b"+OK\r\n"


def test_trackinginfo_tells_what_was_chosen(session: RecordedSession) -> None:
    session.do("HELLO", "3")
    assert session.do("CLIENT", "TRACKINGINFO") == (
        b"%3\r\n$5\r\nflags\r\n~1\r\n$3\r\noff\r\n$8\r\nredirect\r\n:-1\r\n$8\r\nprefixes\r\n*0\r\n"
    )
    assert session.do("CLIENT", "GETREDIR") == b":-1\r\n"
    assert session.do("CLIENT", "TRACKING", "ON", "OPTIN", "NOLOOP", "REDIRECT", str(session.id)) == OK
    assert session.do("CLIENT", "CACHING", "YES") == OK
    assert session.do("CLIENT", "TRACKINGINFO") == (
        b"%%3\r\n$5\r\nflags\r\n~4\r\n$2\r\non\r\n$5\r\noptin\r\n$11\r\ncaching-yes\r\n$6\r\nnoloop\r\n$8\r\nredirect\r\n:%d\r\n"
        b"$8\r\nprefixes\r\n*0\r\n" % session.id
    )
    assert session.do("CLIENT", "GETREDIR") == b":%d\r\n" % session.id
    assert session.do("CLIENT", "TRACKING", "OFF") == OK
    assert session.do("CLIENT", "GETREDIR") == b":-1\r\n"


def test_prefixes_gather_in_order_and_may_not_overlap(session: RecordedSession) -> None:
    assert session.do("CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", "foo", "PREFIX", "bar") == OK
    assert session.do("CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", "zoo") == OK
    assert session.do("CLIENT", "TRACKINGINFO").endswith(b"*3\r\n$3\r\nbar\r\n$3\r\nfoo\r\n$3\r\nzoo\r\n")
    assert session.do("CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", "fo") == (
        b"-ERR Prefix 'fo' overlaps with an existing prefix 'foo'. Prefixes for a single client must not overlap.\r\n"
    )
    error = (
        b"-ERR Prefix 'q' overlaps with another provided prefix 'qq'. Prefixes for a single client must not overlap."
    )
    assert session.do("CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", "q", "PREFIX", "qq") == error + b"\r\n"


@pytest.mark.parametrize(
    ("held", "wanted", "said"),
    [
        ("b", "a ab b", b"'a' overlaps with another provided prefix 'ab'"),
        ("b", "bc a ab", b"'bc' overlaps with an existing prefix 'b'"),
        ("z", "a abc b ab", b"'a' overlaps with another provided prefix 'abc'"),
        ("z", "abc b ab", b"'abc' overlaps with another provided prefix 'ab'"),
        ("z", "k a k", b"'k' overlaps with another provided prefix 'k'"),
        ("b ba1", "", b""),
    ],
)
def test_the_pair_of_prefixes_that_is_named_is_the_first_of_the_request(
    session: RecordedSession, held: str, wanted: str, said: bytes
) -> None:
    """As in redis-server 7.0.15."""

    def track(prefixes: str) -> bytes:
        return session.do("CLIENT", "TRACKING", "ON", "BCAST", *(w for p in prefixes.split() for w in ("PREFIX", p)))

    first = track(held)
    assert first == OK or b"'b' overlaps with another provided prefix 'ba1'" in first
    if said:
        assert b"-ERR Prefix " + said + b". Prefixes" in track(wanted)


def test_changes_are_told_by_every_length_of_prefix(session: RecordedSession, house: House) -> None:
    session.do("HELLO", "3")
    assert session.do("CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", "ab", "PREFIX", "b") == OK
    other = house.session()
    for key, is_told in (("abc", True), ("b", True), ("ab", True), ("a", False), ("cab", False), ("", False)):
        other.do("SET", key, "1")
        assert (b"invalidate" in session.heard()) is is_told, key
    other.do("CLIENT", "TRACKING", "ON", "BCAST")
    session.do("CLIENT", "TRACKING", "OFF")
    session.do("SET", "abc", "2")
    assert session.heard() == b""
    assert house.engine.tracked.prefix_count == 1


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ("maybe", b"syntax error"),
        ("ON REDIRECT", b"syntax error"),
        ("ON REDIRECT 999", b"The client ID you want redirect to does not exist"),
        ("ON REDIRECT x", b"value is not an integer or out of range"),
        ("ON REDIRECT 1 REDIRECT 1", b"A client can only redirect to a single other client"),
        ("ON PREFIX a", b"PREFIX option requires BCAST mode to be enabled"),
        ("ON BCAST OPTIN", b"OPTIN and OPTOUT are not compatible with BCAST"),
        ("ON OPTIN OPTOUT", b"You can't specify both OPTIN mode and OPTOUT mode"),
    ],
)
def test_options_that_do_not_go_together_are_refused(session: RecordedSession, words: str, error: bytes) -> None:
    assert session.do("CLIENT", "TRACKING", *words.split()) == b"-ERR %b\r\n" % error
    assert session.tracking is None


def test_a_mode_is_not_switched_while_tracking_is_on(session: RecordedSession) -> None:
    session.do("CLIENT", "TRACKING", "ON", "OPTIN")
    assert session.do("CLIENT", "TRACKING", "ON", "BCAST").startswith(b"-ERR You can't switch BCAST mode on/off before")
    assert session.do("CLIENT", "TRACKING", "ON", "OPTOUT").startswith(
        b"-ERR You can't switch OPTIN/OPTOUT mode before"
    )


def test_caching_is_for_the_mode_that_it_belongs_to(session: RecordedSession) -> None:
    assert session.do("CLIENT", "CACHING", "YES").startswith(
        b"-ERR CLIENT CACHING can be called only when the client is"
    )
    session.do("CLIENT", "TRACKING", "ON")
    assert b"CACHING YES is only valid" in session.do("CLIENT", "CACHING", "YES")
    assert b"CACHING NO is only valid" in session.do("CLIENT", "CACHING", "NO")
    assert session.do("CLIENT", "CACHING", "x") == b"-ERR syntax error\r\n"


def test_caching_is_for_one_command_or_one_transaction(session: RecordedSession) -> None:
    session.do("CLIENT", "TRACKING", "ON", "OPTIN")
    session.do("CLIENT", "CACHING", "YES")
    assert b"caching-yes" in session.do("CLIENT", "TRACKINGINFO")
    session.do("MULTI")
    session.do("PING")
    assert session.tracking is not None and session.tracking.caching
    session.do("EXEC")
    assert b"caching-yes" not in session.do("CLIENT", "TRACKINGINFO")


@pytest.mark.parametrize("broadcast", [False, True])
def test_who_waited_is_told_of_what_it_changes_behind_its_reply(house: House, broadcast: bool) -> None:
    waiter, pusher, reader = house.session(), house.session(), house.session()
    for session in waiter, pusher, reader:
        session.do("HELLO", "3")
        assert session.do("CLIENT", "TRACKING", "ON", *(["BCAST", "PREFIX", "there"] if broadcast else [])) == OK
        session.do("RPUSH", "there", "a")
        session.do("LRANGE", "there", "0", "-1")
    for session in waiter, pusher, reader:
        session.heard()
        session.do("LRANGE", "there", "0", "-1")
    told = b">2\r\n$10\r\ninvalidate\r\n*1\r\n$5\r\nthere\r\n"
    assert waiter.do("BLMOVE", "here", "there", "LEFT", "LEFT", "0") == b""
    assert pusher.do("RPUSH", "here", "x") == (b":1\r\n" + told)
    assert waiter.heard() == b"$1\r\nx\r\n" + told
    assert reader.heard() == told
