"""MULTI and EXEC on keys, and WATCH: within a process, and over processes."""

from __future__ import annotations

from pathlib import Path

import pytest
from recorded_session import House, RecordedSession

from rlite_pubsub.keyspace.keyspace import Keyspace
from rlite_pubsub.storage.environment import Txn
from rlite_pubsub.storage.errors import StoreBusy
from rlite_pubsub.storage.turn import Turn

OK = b"+OK\r\n"
QUEUED = b"+QUEUED\r\n"
SPOILT = b"*-1\r\n"


def begun(session: RecordedSession, *keys: str) -> None:
    """A transaction that watches keys and is ready for EXEC."""
    assert session.do("WATCH", *keys) == OK
    assert session.do("MULTI") == OK
    assert session.do("SET", "result", "done") == QUEUED


def test_a_transaction_is_executed_as_a_whole(session: RecordedSession) -> None:
    session.do("MULTI")
    for words in (["SET", "k", "5"], ["INCR", "k"], ["GET", "k"]):
        assert session.do(*words) == QUEUED
    assert session.do("EXEC") == b"*3\r\n+OK\r\n:6\r\n$1\r\n6\r\n"


def test_a_command_that_fails_does_not_keep_the_others_from_being_executed(session: RecordedSession) -> None:
    session.do("MULTI")
    session.do("SET", "k", "text")
    session.do("INCR", "k")
    session.do("APPEND", "k", "!")
    assert session.do("EXEC") == b"*3\r\n+OK\r\n-ERR value is not an integer or out of range\r\n:5\r\n"
    assert session.do("GET", "k") == b"$5\r\ntext!\r\n"


def test_a_command_that_cannot_be_queued_spoils_the_transaction(session: RecordedSession) -> None:
    session.do("MULTI")
    session.do("SET", "k", "v")
    session.do("SET", "k")
    assert session.do("EXEC") == b"-EXECABORT Transaction discarded because of previous errors.\r\n"
    assert session.do("EXISTS", "k") == b":0\r\n"


@pytest.mark.parametrize(
    "words",
    [["SET", "k", "v"], ["DEL", "k"], ["EXPIRE", "k", "100"], ["RENAME", "k", "new"], ["RENAME", "other", "k"],
     ["COPY", "other", "k", "REPLACE"], ["MOVE", "k", "1"], ["FLUSHDB"], ["FLUSHALL"], ["SWAPDB", "0", "1"],
     ["GETEX", "k", "EX", "10"], ["APPEND", "k", ""], ["SWAPDB", "0", "2"]],
)  # fmt: skip
def test_a_change_of_a_watched_key_spoils_the_transaction(
    house: House, session: RecordedSession, words: list[str]
) -> None:
    other = house.session()
    other.do("MSET", "k", "1", "other", "2")
    begun(session, "k")
    other.do(*words)
    assert not house.engine.watching
    assert session.do("EXEC") == SPOILT
    begun(session, "k")
    assert session.do("EXEC") == b"*1\r\n+OK\r\n"


@pytest.mark.parametrize(
    "words",
    [["GET", "k"], ["SET", "k", "v", "NX"], ["PERSIST", "k"], ["EXPIRE", "k", "1", "XX"], ["DEL", "none"],
     ["SET", "else", "v"], ["FLUSHDB"], ["SWAPDB", "1", "2"], ["SWAPDB", "0", "0"]],
)  # fmt: skip
def test_what_changes_no_watched_key_spoils_nothing(house: House, session: RecordedSession, words: list[str]) -> None:
    other = house.session()
    if words[0] != "FLUSHDB":
        other.do("SET", "k", "1")
    begun(session, "k", "none")
    other.do(*words)
    assert session.do("EXEC") == b"*1\r\n+OK\r\n"


@pytest.mark.settings(enable_debug_command="yes")
@pytest.mark.parametrize("script", [[], [["EVAL", "return redis.call('GET', 'k')", "0"]]], ids=["", "with a script"])
def test_a_key_does_not_expire_in_the_middle_of_a_transaction(
    house: House, session: RecordedSession, monkeypatch: pytest.MonkeyPatch, script: list[list[str]]
) -> None:
    session.do("SET", "k", "v", "PX", "50")
    session.do("MULTI")
    for words in [["GET", "k"], *script, ["DEBUG", "SLEEP", "0.1"], ["GET", "k"], ["EXISTS", "k"]]:
        session.do(*words)

    def sleep(seconds: float) -> None:
        house.clock.now += seconds

    monkeypatch.setattr("time.sleep", sleep)
    said = session.do("EXEC")
    assert house.clock.now > 1_700_000_000
    assert said == b"*%d\r\n" % (4 + len(script)) + b"$1\r\nv\r\n" * (1 + len(script)) + b"+OK\r\n$1\r\nv\r\n:1\r\n"
    assert session.do("GET", "k") == b"$-1\r\n"


@pytest.mark.parametrize("words", [["LPOP", "k", "0"], ["RPOP", "k", "0"]])
def test_popping_no_elements_spoils_nothing(house: House, session: RecordedSession, words: list[str]) -> None:
    house.session().do("RPUSH", "k", "a")
    begun(session, "k")
    assert house.session().do(*words) == b"*0\r\n"
    assert session.do("EXEC") == b"*1\r\n+OK\r\n"


def test_a_change_of_its_own_spoils_a_session_s_transaction(session: RecordedSession) -> None:
    session.do("WATCH", "k")
    session.do("SET", "k", "v")
    session.do("MULTI")
    assert session.do("EXEC") == SPOILT


def test_unwatch_discard_and_exec_end_the_watching(house: House, session: RecordedSession) -> None:
    other = house.session()
    for end in (["UNWATCH"], ["MULTI", "DISCARD"], ["MULTI", "EXEC"]):
        session.do("WATCH", "k")
        for word in end:
            session.do(word)
        other.do("SET", "k", "v")
        session.do("MULTI")
        assert session.do("EXEC") == b"*0\r\n"
    assert not house.engine.watching


def test_a_key_that_expires_while_it_is_watched_spoils_the_transaction(house: House, session: RecordedSession) -> None:
    session.do("SET", "k", "v", "PX", "100")
    begun(session, "k")
    house.clock.now += 1
    assert session.do("EXEC") == SPOILT


def test_a_key_that_had_expired_before_is_as_none(house: House, session: RecordedSession) -> None:
    session.do("SET", "k", "v", "PX", "100")
    house.clock.now += 1
    begun(session, "k")
    assert session.do("EXEC") == b"*1\r\n+OK\r\n"


def test_a_session_that_is_gone_watches_nothing(house: House, session: RecordedSession) -> None:
    session.do("WATCH", "k")
    session.close_now()
    assert not house.engine.watching


def test_what_redis_takes_for_no_change_spoils_nothing(house: House, session: RecordedSession) -> None:
    keyspace = house.engine.keyspace
    assert keyspace is not None
    session.do("SET", "k", "v")
    begun(session, "k")
    record = keyspace.for_change(0, b"k")
    assert record is not None
    keyspace.stored.keep(record)  # as a group's deliveries are
    house.engine.commit()
    assert session.do("EXEC") == b"*1\r\n+OK\r\n"


@pytest.fixture
def elsewhere(house: House) -> Keyspace:
    """The same store as another process has it: with a cache of its own."""
    return Keyspace(house.data, lambda: 0)


@pytest.mark.parametrize("exists", [False, True])
def test_another_process_s_change_spoils_the_transaction(
    house: House, session: RecordedSession, elsewhere: Keyspace, exists: bool
) -> None:
    if exists:
        session.do("SET", "k", "1")
    begun(session, "k")
    elsewhere.put_string(0, b"k", b"1")
    assert elsewhere.end_turn() is None
    assert session.do("EXEC") == SPOILT


def test_another_process_s_change_of_other_keys_spoils_nothing(
    house: House, session: RecordedSession, elsewhere: Keyspace
) -> None:
    session.do("SET", "k", "1")
    begun(session, "k", "none")
    elsewhere.put_string(0, b"else", b"1")
    elsewhere.put_string(1, b"k", b"1")
    assert elsewhere.end_turn() is None
    assert session.do("EXEC") == b"*1\r\n+OK\r\n"


def test_another_process_s_change_while_exec_waits_to_write_spoils_the_transaction(
    house: House, session: RecordedSession, elsewhere: Keyspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has looked at a snapshot before."""
    session.do("SET", "k", "1")
    begun(session, "k")
    begin = house.data.begin

    def begin_behind_the_other(turn: Turn, *, write: bool) -> Txn:
        if write:
            monkeypatch.undo()
            elsewhere.put_string(0, b"k", b"2")
            assert elsewhere.end_turn() is None
        return begin(turn, write=write)

    monkeypatch.setattr(house.data, "begin", begin_behind_the_other)
    assert session.do("EXEC") == SPOILT
    assert session.do("EXISTS", "result") == b":0\r\n"


def test_another_process_s_change_when_the_turn_gives_way_spoils_the_transaction(
    house: House, session: RecordedSession, elsewhere: Keyspace
) -> None:
    for words in (["SET", "k", "1"], ["WATCH", "k"], ["MULTI"], ["SET", "result", "done"]):
        session.waiting.append([word.encode() for word in words])
    session.resume()
    house.data.read(lambda txn: None)  # somebody needs a transaction in the turn's midst
    elsewhere.put_string(0, b"k", b"2")
    assert elsewhere.end_turn() is None
    assert session.do("EXEC").endswith(SPOILT)


def test_a_store_that_cannot_be_written_fails_a_transaction_that_watches_as_a_whole(
    house: House, session: RecordedSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin = house.data.begin

    def begin_later(turn: Turn, *, write: bool) -> Txn:
        if write:
            monkeypatch.undo()
            raise StoreBusy(house.data.path, "of this test")
        return begin(turn, write=write)

    begun(session, "k")
    monkeypatch.setattr(house.data, "begin", begin_later)
    assert b"of this test" in session.do("EXEC")
    assert session.do("EXISTS", "result") == b":0\r\n"
    assert session.do("EXEC") == b"-ERR EXEC without MULTI\r\n"


@pytest.mark.parametrize("watches", [True, False])
@pytest.mark.parametrize("failure", [StoreBusy(Path("data.mdb"), "of this test"), RuntimeError("of this test")])
def test_exec_that_fails_before_its_first_command_ends_the_transaction(
    house: House, session: RecordedSession, failure: Exception, watches: bool
) -> None:
    """Something else in its turn has met an error, so that nothing can be read or written in it."""
    if watches:
        session.do("WATCH", "k")
    session.do("MULTI")
    session.do("SET", "result", "done")
    house.engine.keyspace.reading()
    house.engine.keyspace.fail(failure)
    assert b"-" in session.do("EXEC")
    assert session.do("EXISTS", "result") == b":0\r\n"
    assert session.do("EXEC") == b"-ERR EXEC without MULTI\r\n"


@pytest.mark.parametrize(
    ("script", "is_queued", "is_executed"),
    [("#!lua\nreturn 1", False, False), ("#!lua flags=no-writes\nreturn 1", True, True), ("return 1", True, True)],
)
def test_a_transaction_goes_by_what_its_scripts_declare(
    house: House, session: RecordedSession, script: str, is_queued: bool, is_executed: bool
) -> None:
    refusal = b"NOREPLICAS Not enough good replicas to write.\r\n"
    session.do("MULTI")
    session.do("EVAL", script, "0")
    house.session().do("CONFIG", "SET", "min-replicas-to-write", "1")
    aborted = b"-EXECABORT Transaction discarded because of: " + refusal
    assert session.do("EXEC") == (b"*1\r\n:1\r\n" if is_executed else aborted)
    session.do("MULTI")
    assert session.do("EVAL", script, "0") == (b"+QUEUED\r\n" if is_queued else b"-" + refusal)
    session.do("DISCARD")
