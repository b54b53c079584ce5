"""CLIENT TRACKING: who is told of which keys, when, and how often."""

from __future__ import annotations

import pytest
from recorded_session import House, RecordedSession

from rlite_pubsub.keyspace.keyspace import Keyspace

OK = b"+OK\r\n"


def told(*keys: bytes) -> bytes:
    """An invalidation in RESP3."""
    names = b"".join(b"$%d\r\n%b\r\n" % (len(key), key) for key in keys)
    return b">2\r\n$10\r\ninvalidate\r\n*%d\r\n%b" % (len(keys), names)


@pytest.fixture
def writer(house: House) -> RecordedSession:
    return house.session()


def tracker(house: House, *options: str) -> RecordedSession:
    """A session that tracks, in RESP3."""
    session = house.session()
    session.do("HELLO", "3")
    assert session.do("CLIENT", "TRACKING", "ON", *options) == OK
    return session


def test_a_reader_is_told_once_of_each_change_of_what_it_has_read(house: House, writer: RecordedSession) -> None:
    reader = tracker(house)
    reader.do("GET", "k")
    writer.do("SET", "k", "1")
    writer.do("SET", "k", "2")
    writer.do("SET", "else", "2")
    assert reader.heard() == told(b"k")
    reader.do("GET", "k")
    writer.do("SET", "k", "3")
    assert reader.heard() == told(b"k")


@pytest.mark.parametrize(
    "words",
    [["DEL", "k"], ["EXPIRE", "k", "100"], ["RENAME", "k", "new"], ["RENAME", "other", "k"], ["MOVE", "k", "1"],
     ["INCR", "k"], ["APPEND", "k", "x"], ["COPY", "other", "k", "REPLACE"], ["GETDEL", "k"]],
)  # fmt: skip
def test_every_kind_of_change_is_told(house: House, writer: RecordedSession, words: list[str]) -> None:
    writer.do("MSET", "k", "1", "other", "2")
    reader = tracker(house)
    reader.do("MGET", "k", "unrelated")
    writer.do(*words)
    assert reader.heard() == told(b"k")


def test_what_was_only_written_is_not_tracked(house: House, writer: RecordedSession) -> None:
    session = tracker(house)
    session.do("SET", "k", "1")
    writer.do("SET", "k", "2")
    assert session.heard() == b""


def test_a_key_that_expires_is_told(house: House) -> None:
    reader = tracker(house)
    reader.do("SET", "k", "1", "PX", "100")
    reader.do("GET", "k")
    house.clock.now += 1
    house.engine.cron(house.clock.now)
    assert reader.heard() == told(b"k")


def test_one_s_own_change_is_told_behind_the_reply_unless_there_is_no_loop(house: House) -> None:
    reader, quiet = tracker(house), tracker(house, "NOLOOP")
    for session in (reader, quiet):
        session.do("GET", "k")
    assert reader.do("SET", "k", "1") == OK + told(b"k")
    assert quiet.heard() == told(b"k")
    quiet.do("GET", "k")
    assert quiet.do("SET", "k", "1") == OK


def test_an_invalidation_does_not_stand_inside_the_reply_to_exec(house: House) -> None:
    reader = tracker(house)
    reader.do("MGET", "a", "b")
    reader.do("MULTI")
    reader.do("SET", "a", "1")
    reader.do("SET", "b", "1")
    assert reader.do("EXEC") == b"*2\r\n+OK\r\n+OK\r\n" + told(b"a") + told(b"b")


def test_with_optin_only_what_follows_caching_yes_is_tracked(house: House, writer: RecordedSession) -> None:
    reader = tracker(house, "OPTIN")
    reader.do("GET", "a")
    reader.do("CLIENT", "CACHING", "YES")
    reader.do("GET", "b")
    reader.do("GET", "c")
    for key in "abc":
        writer.do("SET", key, "1")
    assert reader.heard() == told(b"b")


def test_with_optout_what_follows_caching_no_is_not_tracked(house: House, writer: RecordedSession) -> None:
    reader = tracker(house, "OPTOUT")
    reader.do("CLIENT", "CACHING", "NO")
    reader.do("GET", "a")
    reader.do("GET", "b")
    for key in "ab":
        writer.do("SET", key, "1")
    assert reader.heard() == told(b"b")


def test_who_broadcasts_is_told_of_all_keys_with_its_prefixes_at_the_turn_s_end(house: House) -> None:
    listener = tracker(house, "BCAST", "PREFIX", "user:", "PREFIX", "log:")
    writer = house.session()
    writer.do("MSET", "user:2", "x", "user:1", "x", "other", "x", "log:1", "x")
    assert listener.heard() == told(b"log:1") + told(b"user:1", b"user:2")
    listener.do("CLIENT", "TRACKING", "OFF")
    writer.do("SET", "user:1", "y")
    assert listener.heard() == b""


def test_who_broadcasts_without_a_loop_is_not_told_of_its_own_changes(house: House, writer: RecordedSession) -> None:
    listener = tracker(house, "BCAST", "NOLOOP")
    assert listener.do("SET", "k", "1") == OK
    writer.do("SET", "k", "2")
    assert listener.heard() == told(b"k")


def test_a_redirected_invalidation_reaches_the_other_session(house: House, writer: RecordedSession) -> None:
    receiver = house.session()
    receiver.do("SUBSCRIBE", "__redis__:invalidate")
    reader = house.session()
    reader.do("CLIENT", "TRACKING", "ON", "REDIRECT", str(receiver.id))
    reader.do("GET", "k")
    writer.do("SET", "k", "1")
    assert receiver.heard() == b"*3\r\n$7\r\nmessage\r\n$20\r\n__redis__:invalidate\r\n*1\r\n$1\r\nk\r\n"
    assert reader.heard() == b""


def test_who_redirects_to_a_session_that_is_gone_is_told_so(house: House, writer: RecordedSession) -> None:
    receiver = house.session()
    reader = tracker(house, "REDIRECT", str(receiver.id))
    reader.do("GET", "k")
    receiver.close_now()
    writer.do("SET", "k", "1")
    assert reader.heard() == b">2\r\n$21\r\ntracking-redir-broken\r\n:%d\r\n" % receiver.id


def test_a_flush_tells_of_all_keys_at_once(house: House, writer: RecordedSession) -> None:
    reader = tracker(house)
    reader.do("GET", "k")
    writer.do("FLUSHALL")
    assert reader.heard() == b">2\r\n$10\r\ninvalidate\r\n_\r\n"
    writer.do("SET", "k", "1")
    assert reader.heard() == b""


def test_keys_beyond_the_limit_are_forgotten_and_told(house: House, writer: RecordedSession) -> None:
    reader = tracker(house)
    reader.do("MGET", "a", "b", "c")
    house.session().do("CONFIG", "SET", "tracking-table-max-keys", "1")
    assert reader.do("PING") == told(b"a") + told(b"b") + b"+PONG\r\n"
    assert house.engine.tracked.key_count == 1


def test_where_nobody_knows_what_another_process_has_changed_what_was_read_is_compared(
    house: House, writer: RecordedSession
) -> None:
    elsewhere = Keyspace(house.data, lambda: int(house.clock.now * 1000))
    reader = tracker(house)
    writer.do("MSET", "k", "1", "stays", "1")
    reader.do("MGET", "k", "none", "stays")
    for name in (b"k", b"none", b"else"):
        elsewhere.put_string(0, name, b"2")
    elsewhere.put_string(1, b"stays", b"2")
    elsewhere.end_turn()
    house.engine.tracked.suspect_all()
    house.engine.cron(house.clock.now)
    assert reader.heard() == told(b"k") + told(b"none")
    elsewhere.put_string(0, b"k", b"3")
    elsewhere.end_turn()
    house.engine.tracked.suspect_all()
    writer.do("GET", "stays")
    house.engine.cron(house.clock.now)
    assert reader.heard() == b""


def test_who_broadcasts_is_told_of_all_keys_where_nobody_knows_which(house: House) -> None:
    listener = tracker(house, "BCAST", "PREFIX", "a")
    house.engine.tracked.suspect_all()
    assert listener.heard() == b">2\r\n$10\r\ninvalidate\r\n_\r\n"


def test_a_change_elsewhere_that_the_reader_has_read_is_not_told(house: House, writer: RecordedSession) -> None:
    reader = tracker(house)
    writer.do("SET", "k", "1")
    changed_in = house.engine.keyspace.last_commit()
    reader.do("GET", "k")
    house.engine.tracked.changed_elsewhere(b"k", changed_in)
    assert reader.heard() == b""
    house.engine.tracked.changed_elsewhere(b"k", changed_in + 1)
    assert reader.heard() == told(b"k")


def test_nothing_is_left_of_a_session_that_is_gone(house: House, writer: RecordedSession) -> None:
    reader, listener = tracker(house), tracker(house, "BCAST")
    reader.do("GET", "k")
    reader.close_now()
    listener.close_now()
    writer.do("SET", "k", "1")
    assert house.engine.tracked.is_empty


def test_info_counts_tracked_keys_items_and_prefixes(house: House, writer: RecordedSession) -> None:
    for _ in range(2):
        tracker(house).do("MGET", "a", "b")
    tracker(house, "BCAST", "PREFIX", "x")
    stats = writer.do("INFO", "stats")
    assert b"tracking_total_keys:2\r\ntracking_total_items:4\r\ntracking_total_prefixes:1\r\n" in stats
