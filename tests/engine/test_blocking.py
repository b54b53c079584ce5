"""Commands that wait for a key: whom a change serves, in which order, and what ends a wait."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from blocking_commands import attempts, declared
from recorded_session import House, RecordedSession

from rlite_pubsub.storage.errors import StoreError
from rlite_pubsub.storage.turn import Turn

NULL = b"*-1\r\n"


def entry(number: int, text: bytes) -> bytes:
    return b"*2\r\n$%d\r\n%d-0\r\n*2\r\n$4\r\ntext\r\n$%d\r\n%b\r\n" % (len(b"%d-0" % number), number, len(text), text)


def taken(key: bytes, number: int, text: bytes) -> bytes:
    return b"*2\r\n$%d\r\n%b\r\n" % (len(key), key) + entry(number, text)


def read(key: bytes, *entries: bytes, protocol: int = 2) -> bytes:
    head = b"*2\r\n" if protocol == 2 else b"%1\r\n"
    return head + b"$%d\r\n%b\r\n*%d\r\n" % (len(key), key, len(entries)) + b"".join(entries)


@pytest.fixture
def house() -> Iterator[House]:
    with declared():
        yield House()


def named(house: House, name: str) -> RecordedSession:
    session = house.session()
    session.do("CLIENT", "SETNAME", name)
    return session


# -- being served


def test_a_waiting_session_is_served_by_the_command_that_makes_its_key_ready(house: House) -> None:
    reader, writer = house.session(), house.session()
    assert reader.do("T.READ", "0", "0", "k") == b""
    assert writer.do("T.ADD", "k", "a") == b":1\r\n"
    assert reader.heard() == read(b"k", entry(1, b"a"))


def test_what_is_there_already_is_answered_at_once(house: House) -> None:
    session = house.session()
    session.do("T.ADD", "k", "a")
    assert session.do("T.READ", "0", "0", "k") == read(b"k", entry(1, b"a"))


def test_those_who_take_are_served_in_the_order_in_which_they_came(house: House) -> None:
    house.session().do("T.ADD", "k", "before")
    takers = [house.session() for _ in range(3)]
    assert takers[0].do("T.TAKE", "0", "k") == taken(b"k", 1, b"before")
    assert [taker.do("T.TAKE", "0", "k") for taker in takers] == [b"", b"", b""]
    writer = house.session()
    writer.do("T.ADD", "k", "a")
    assert [taker.heard() for taker in takers] == [taken(b"k", 2, b"a"), b"", b""]
    takers[0].do("T.TAKE", "0", "k")
    writer.do("T.ADD", "k", "b")
    writer.do("T.ADD", "k", "c")
    assert [taker.heard() for taker in takers] == [b"", taken(b"k", 3, b"b"), taken(b"k", 4, b"c")]
    writer.do("T.ADD", "k", "d")
    assert takers[0].heard() == taken(b"k", 5, b"d")


def test_where_there_is_nothing_for_the_first_of_a_queue_the_others_are_not_asked(house: House) -> None:
    writer = house.session()
    writer.do("T.ADD", "k", "a")
    writer.do("T.TAKE", "0", "k")
    takers = [named(house, f"t{number}") for number in range(100)]
    for taker in takers:
        taker.do("T.TAKE", "0", "k")
    attempts.clear()
    writer.do("T.ADD", "k", "b")
    assert attempts == [b"t0", b"t1"]


def test_readers_of_the_same_are_answered_with_the_same_bytes_made_once(house: House) -> None:
    readers = [named(house, f"r{number}") for number in range(10)]
    for reader in readers[::2]:
        reader.do("HELLO", "3")
    for reader in readers:
        assert reader.do("T.READ", "0", "0", "k") == b""
    attempts.clear()
    house.session().do("T.ADD", "k", "a")
    assert attempts == [b"r0", b"r1"]
    for place, reader in enumerate(readers):
        assert reader.heard() == read(b"k", entry(1, b"a"), protocol=2 if place % 2 else 3)


def test_a_session_that_waits_for_several_keys_is_served_once_by_the_first_that_is_ready(house: House) -> None:
    reader, writer = house.session(), house.session()
    reader.do("T.READ", "0", "0", "j", "k", "j")
    writer.do("T.ADD", "k", "a")
    assert reader.heard() == read(b"k", entry(1, b"a"))
    writer.do("T.ADD", "j", "b")
    assert reader.heard() == b""
    assert not house.engine.waiting.keys


def test_what_a_transaction_adds_is_served_behind_all_of_it(house: House) -> None:
    reader, writer = house.session(), house.session()
    reader.do("T.READ", "0", "0", "k")
    writer.do("MULTI")
    writer.do("T.ADD", "k", "a")
    writer.do("T.ADD", "k", "b")
    assert reader.heard() == b""
    writer.do("EXEC")
    assert reader.heard() == read(b"k", entry(1, b"a"), entry(2, b"b"))


def test_added_and_deleted_in_one_transaction_a_reader_waits_on(house: House) -> None:
    reader, writer = house.session(), house.session()
    reader.do("T.READ", "0", "0", "k")
    for words in (("MULTI",), ("T.ADD", "k", "a"), ("T.DEL", "k"), ("EXEC",)):
        writer.do(*words)
    assert reader.heard() == b""
    writer.do("T.ADD", "k", "b")
    assert reader.heard() == read(b"k", entry(1, b"b"))


def test_a_wait_within_a_transaction_ends_at_once(house: House) -> None:
    session = house.session()
    session.do("MULTI")
    session.do("T.READ", "0", "0", "k")
    assert session.do("EXEC") == b"*1\r\n" + NULL
    assert session.blocked is None


def test_another_database_s_key_of_that_name_serves_nobody(house: House) -> None:
    reader, writer = house.session(), house.session()
    reader.do("T.READ", "0", "0", "k")
    writer.db = 1
    writer.do("T.ADD", "k", "a")
    assert reader.heard() == b""


def test_an_attempt_that_refuses_ends_the_wait_with_its_error(house: House) -> None:
    taker, reader, writer = house.session(), house.session(), house.session()
    writer.do("T.ADD", "k", "a")
    writer.do("T.TAKE", "0", "k")
    taker.do("T.TAKE", "0", "k")
    reader.do("T.READ", "0", "1", "k")
    writer.do("T.DEL", "k")
    assert taker.heard() == b"-UNBLOCKED it is gone\r\n"
    assert reader.heard() == b""
    assert house.engine.stats.errors == {b"UNBLOCKED": 1}


def test_a_key_that_becomes_a_string_is_no_topic_any_more(house: House) -> None:
    taker, writer = house.session(), house.session()
    writer.do("T.ADD", "k", "a")
    writer.do("T.TAKE", "0", "k")
    taker.do("T.TAKE", "0", "k")
    assert house.engine.keyspace is not None
    house.engine.keyspace.put_string(0, b"k", b"v")
    writer.heard()
    assert taker.heard() == b"-UNBLOCKED it is gone\r\n"


@pytest.mark.parametrize("how", ["flush", "swap"])
def test_a_database_that_is_flushed_or_swapped_makes_all_of_its_keys_ready(house: House, how: str) -> None:
    taker, reader, writer = house.session(), house.session(), house.session()
    writer.do("T.ADD", "k", "a")
    writer.do("T.TAKE", "0", "k")
    taker.do("T.TAKE", "0", "k")
    reader.do("T.READ", "0", "0", "other")
    writer.db = 1
    writer.do("T.ADD", "other", "from 1")
    assert house.engine.keyspace is not None
    if how == "flush":
        house.engine.keyspace.databases.flush(0)
    else:
        house.engine.keyspace.databases.swap(0, 1)
    writer.heard()
    assert taker.heard() == b"-UNBLOCKED it is gone\r\n"
    assert reader.heard() == (b"" if how == "flush" else read(b"other", entry(1, b"from 1")))


def test_a_reply_is_taken_back_if_the_commit_behind_it_fails(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    readers, writer = [house.session(), house.session()], house.session()
    for reader in readers:
        reader.do("T.READ", "0", "0", "k")

    end = house.data.end

    def refuse(turn: Turn, *, commit: bool) -> None:
        end(turn, commit=False)
        if commit:
            raise StoreError("the disk is on fire")

    monkeypatch.setattr(house.data, "end", refuse)
    assert writer.do("T.ADD", "k", "a").startswith(b"-MISCONF")
    for reader in readers:
        assert reader.heard().startswith(b"-MISCONF")


class Broken(RecordedSession):
    """Something of ours breaks it when it goes on."""

    def resume(self) -> None:
        if self.recorded or self.said:
            raise RuntimeError("it breaks")
        super().resume()


def test_one_that_breaks_when_it_goes_on_is_closed_and_the_others_go_on(house: House) -> None:
    broken, behind = Broken(house.engine), house.session()
    for reader in (broken, behind):
        reader.do("T.READ", "0", "0", "k")
        reader.do("T.ADD", "j", "a")
    house.session().do("T.ADD", "k", "a")
    assert behind.heard() == read(b"k", entry(1, b"a")) + b":1\r\n"
    assert broken.gone and not behind.gone


# -- what ends a wait


def test_a_wait_ends_with_null_when_its_time_is_over(house: House) -> None:
    two, three = house.session(), house.session()
    three.do("HELLO", "3")
    two.do("T.READ", "1000", "0", "k")
    three.do("T.READ", "500", "0", "k")
    house.timers.advance(0.6)
    assert (two.heard(), three.heard()) == (b"", b"_\r\n")
    house.timers.advance(0.5)
    assert two.heard() == NULL


def test_a_wait_of_0_ms_has_no_end(house: House) -> None:
    session = house.session()
    session.do("T.READ", "0", "0", "k")
    house.timers.advance(1e9)
    house.engine.cron(house.clock())
    assert session.heard() == b""


def test_a_wait_that_ended_otherwise_does_not_end_again(house: House) -> None:
    session = house.session()
    session.do("T.READ", "1000", "0", "k")
    house.session().do("T.ADD", "k", "a")
    session.heard()
    session.do("T.READ", "5000", "1", "k")
    house.timers.advance(1.1)
    assert session.heard() == b""
    house.timers.advance(4)
    assert session.heard() == NULL


def test_waits_that_are_over_do_not_pile_up_until_their_time_comes(house: House) -> None:
    reader, writer = house.session(), house.session()
    for number in range(1000):
        reader.do("T.READ", "100000", str(number), "k")
        writer.do("T.ADD", "k", "a")
    assert len(house.engine.waiting._ends) < 100


@pytest.mark.parametrize(
    ("text", "refusal"),
    [
        ("-1", "timeout is negative"),
        ("x", "timeout is not an integer or out of range"),
        ("1.5", "timeout is not an integer or out of range"),
        ("9223372036854775808", "timeout is not an integer or out of range"),
    ],
)
def test_a_timeout_that_is_none_is_refused(house: House, text: str, refusal: str) -> None:
    assert house.session().do("T.READ", text, "0", "k") == b"-ERR %b\r\n" % refusal.encode()


def test_a_timeout_beyond_all_time_is_as_good_as_none(house: House) -> None:
    session = house.session()
    assert session.do("T.READ", "9223372036854775807", "0", "k") == b""
    house.timers.advance(4000)
    assert session.heard() == b""


@pytest.mark.parametrize(
    ("words", "said"),
    [((), NULL), (("TIMEOUT",), NULL), (("ERROR",), b"-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n")],
)
def test_client_unblock_ends_a_wait(house: House, words: tuple[str, ...], said: bytes) -> None:
    reader, admin = house.session(), house.session()
    reader.do("T.READ", "0", "0", "k")
    assert admin.do("CLIENT", "UNBLOCK", str(reader.id), *words) == b":1\r\n"
    assert reader.heard() == said
    assert admin.do("CLIENT", "UNBLOCK", str(reader.id)) == b":0\r\n"
    assert reader.do("PING") == b"+PONG\r\n"


def test_who_is_gone_is_not_served_and_leaves_nothing(house: House) -> None:
    gone, taker, writer = house.session(), house.session(), house.session()
    writer.do("T.ADD", "k", "a")
    writer.do("T.TAKE", "0", "k")
    gone.do("T.TAKE", "1000", "k")
    taker.do("T.TAKE", "0", "k")
    assert writer.do("CLIENT", "KILL", "ID", str(gone.id)) == b":1\r\n"
    writer.do("T.ADD", "k", "b")
    assert taker.heard() == taken(b"k", 2, b"b")
    house.timers.advance(2)
    assert not house.engine.waiting.keys


# -- beside other commands


def test_what_was_sent_behind_a_wait_goes_on_in_order(house: House) -> None:
    reader, writer = house.session(), house.session()
    reader.do("T.READ", "0", "0", "k")
    assert reader.do("ECHO", "a") == b""
    assert reader.do("T.READ", "0", "1", "k") == b""
    assert reader.do("ECHO", "b") == b""
    writer.do("T.ADD", "k", "a")
    assert reader.heard() == read(b"k", entry(1, b"a")) + b"$1\r\na\r\n"
    writer.do("T.ADD", "k", "b")
    assert reader.heard() == read(b"k", entry(2, b"b")) + b"$1\r\nb\r\n"


def test_what_the_released_say_makes_others_ready_in_the_same_turn(house: House) -> None:
    first, second, writer = house.session(), house.session(), house.session()
    second.do("T.READ", "0", "0", "other")
    first.do("T.READ", "0", "0", "k")
    first.do("T.ADD", "other", "b")
    writer.do("T.ADD", "k", "a")
    assert first.heard() == read(b"k", entry(1, b"a")) + b":1\r\n"
    assert second.heard() == read(b"other", entry(1, b"b"))


def test_a_reply_that_client_reply_silences_stays_silent_when_it_comes_late(house: House) -> None:
    off, skip, writer = house.session(), house.session(), house.session()
    off.do("CLIENT", "REPLY", "OFF")
    skip.do("CLIENT", "REPLY", "SKIP")
    off.do("T.READ", "0", "0", "k")
    skip.do("T.READ", "0", "0", "k")
    writer.do("T.ADD", "k", "a")
    assert off.heard() == b""
    assert skip.heard() == b""
    assert skip.do("PING") == b"+PONG\r\n"


def test_who_waits_is_shown_and_counted(house: House) -> None:
    reader, admin = house.session(), house.session()
    reader.do("T.READ", "0", "0", "k")
    line = admin.do("CLIENT", "LIST", "ID", str(reader.id))
    assert b" flags=b " in line
    assert b" cmd=t.read " in line
    assert b"blocked_clients:1\r\n" in admin.do("INFO", "clients")
    assert b"cmdstat_t.read:calls=1," in admin.do("INFO", "commandstats")
    admin.do("T.ADD", "k", "a")
    assert b"blocked_clients:0\r\n" in admin.do("INFO", "clients")
    assert b"cmdstat_t.read:calls=1," in admin.do("INFO", "commandstats")


def test_a_pause_holds_what_would_serve(house: House) -> None:
    reader, writer, admin = house.session(), house.session(), house.session()
    reader.do("T.READ", "0", "0", "k")
    admin.do("CLIENT", "PAUSE", "1000", "WRITE")
    assert writer.do("T.ADD", "k", "a") == b""
    assert reader.heard() == b""
    house.timers.advance(1.1)
    assert writer.heard() == b":1\r\n"
    assert reader.heard() == read(b"k", entry(1, b"a"))


def test_the_same_words_mean_to_each_session_what_its_database_and_protocol_say(house: House) -> None:
    writer = house.session()
    writer.do("XADD", "k", "1-0", "text", "x")
    words = ("XREAD", "BLOCK", "0", "STREAMS", "k", "1-0")
    here, again, there, three = (house.session() for _ in range(4))
    there.do("SELECT", "1")
    three.do("HELLO", "3")
    for reader in (here, again, there, three):
        assert reader.do(*words) == b""
    writer.do("XADD", "k", "2-0", "text", "a")
    expected = b"*1\r\n" + read(b"k", entry(2, b"a"))
    assert [here.heard(), again.heard()] == [expected, expected]
    assert three.heard() == read(b"k", entry(2, b"a"), protocol=3)
    assert there.heard() == b""
    assert again.do(*words) == expected, "there is something by now"
    writer.do("SELECT", "1")
    writer.do("XADD", "k", "3-0", "text", "b")
    assert there.heard() == b"*1\r\n" + read(b"k", entry(3, b"b"))


def test_a_timer_that_comes_too_early_is_set_again(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    in_time = house.timers.call_later
    monkeypatch.setattr(
        house.timers, "call_later", lambda seconds, callback: in_time(max(0.0, seconds - 0.1), callback)
    )
    session = house.session()
    session.do("T.READ", "1000", "0", "k")
    house.timers.advance(0.95)
    assert session.heard() == b""
    house.timers.advance(0.1)
    assert session.heard() == NULL


def test_a_wait_that_ends_before_all_others_is_not_late(house: House) -> None:
    sessions = [house.session() for _ in range(5)]
    for session, milliseconds in zip(sessions, ("5000", "3000", "4000", "1000", "2000"), strict=True):
        session.do("T.READ", milliseconds, "0", "k")
    ended = []
    for _ in range(5):
        house.timers.advance(1.0)
        ended += [place for place, session in enumerate(sessions) if session.heard() == NULL]
    assert ended == [3, 4, 1, 2, 0]
