"""What is ephemeral goes with its last reader: topics after a while, consumers and their groups with connections."""

from __future__ import annotations

import pytest
from recorded_session import House, RecordedSession

from rlite_pubsub.engine.topics import readership
from rlite_pubsub.engine.topics.readership import GRACE_SECONDS
from rlite_pubsub.keyspace import ephemeral

TOPIC = "news#ephemeral"
GROUP = "workers#ephemeral"


def pass_time(house: House, seconds: float) -> None:
    """In steps, as a loop looks."""
    for _ in range(round(seconds * 2)):
        house.clock.now += 0.5
        for _ in range(4):
            house.engine.cron(house.clock.now)
            house.engine.commit()


def exists(house: House, name: str = TOPIC) -> bool:
    """Without touching it."""
    keyspace = house.engine.keyspace
    assert keyspace is not None
    found = keyspace.find(0, name.encode()) is not None
    house.engine.commit()
    return found


def test_topic_that_nobody_reads_or_writes_goes_after_a_while(house: House, session: RecordedSession) -> None:
    session.do("XADD", TOPIC, "*", "f", "v")
    pass_time(house, GRACE_SECONDS - 1)
    assert exists(house)
    pass_time(house, 2)
    assert not exists(house)
    assert session.do("DBSIZE") == b":0\r\n"


def test_topic_that_is_written_or_read_now_and_then_stays(house: House, session: RecordedSession) -> None:
    session.do("XADD", TOPIC, "*", "f", "v")
    for request in (["XADD", TOPIC, "*", "f", "v"], ["XRANGE", TOPIC, "-", "+"], ["XLEN", TOPIC]) * 3:
        pass_time(house, GRACE_SECONDS - 1)
        session.do(*request)
    assert session.do("XLEN", TOPIC) == b":4\r\n"


def test_topic_that_only_a_retained_channel_writes_stays_while_it_does(house: House, session: RecordedSession) -> None:
    session.do("CONFIG", "SET", "retain", "news#* 7d")
    for _ in range(4):
        assert session.do("PUBLISH", TOPIC, "m") == b":0\r\n"
        pass_time(house, GRACE_SECONDS - 1)
    assert session.do("XLEN", TOPIC) == b":4\r\n"


@pytest.mark.parametrize(
    "request_words",
    [
        ["XREAD", "BLOCK", "0", "STREAMS", TOPIC, "$"],
        ["TOPIC.SUBSCRIBE", TOPIC, "$"],
        ["XREADGROUP", "GROUP", "g", "c", "STREAMS", TOPIC, ">"],
        ["XREADGROUP", "GROUP", "g", "c", "BLOCK", "0", "STREAMS", TOPIC, ">"],
    ],
    ids=["blocked", "follower", "consumer", "blocked consumer"],
)
def test_topic_stays_with_its_reader_and_goes_when_that_has_gone(
    house: House, session: RecordedSession, request_words: list[str]
) -> None:
    session.do("XADD", TOPIC, "*", "f", "v")
    session.do("XGROUP", "CREATE", TOPIC, "g", "$")
    reader = house.session()
    reader.do(*request_words)
    pass_time(house, 3 * GRACE_SECONDS)
    assert exists(house)
    reader.close_now()
    pass_time(house, GRACE_SECONDS - 1)
    assert exists(house)
    pass_time(house, 2)
    assert not exists(house)


def test_of_many_topics_all_go_that_nobody_reads(
    house: House, session: RecordedSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readership, "TOPICS_PER_LOOK", 3)
    reader = house.session()
    for number in range(60):
        for one in (session, reader):
            one.do("SELECT", str(number % 3))
        session.do("XADD", f"{number}{TOPIC}", "*", "f", "v")
        if number % 2:
            reader.do("TOPIC.SUBSCRIBE", f"{number}{TOPIC}", "$")
            reader = house.session()
    pass_time(house, 3 * GRACE_SECONDS)
    assert house.engine.keyspace is not None
    assert house.engine.keyspace.databases.sizes() == {0: (10, 0), 1: (10, 0), 2: (10, 0)}
    house.engine.commit()


def test_other_topics_stay_whoever_has_gone(house: House, session: RecordedSession) -> None:
    session.do("XADD", "news", "*", "f", "v")
    session.do("XADD", TOPIC, "*", "f", "v")
    pass_time(house, 3 * GRACE_SECONDS)
    assert exists(house, "news") and not exists(house)


@pytest.mark.parametrize("topic", ["news", TOPIC])
def test_ephemeral_group_goes_with_its_last_consumer_s_connection(house: House, topic: str) -> None:
    keeper, *workers = [house.session() for _ in range(3)]
    keeper.do("XGROUP", "CREATE", topic, GROUP, "$", "MKSTREAM")
    house.session().do("TOPIC.SUBSCRIBE", topic, "$")
    for number, worker in enumerate(workers):
        worker.do("XREADGROUP", "GROUP", GROUP, f"c{number}", "BLOCK", "0", "STREAMS", topic, ">")
    workers[0].close_now()
    pass_time(house, 1)
    assert b"groups\r\n:1\r\n" in keeper.do("XINFO", "STREAM", topic)
    workers[1].close_now()
    pass_time(house, 1)
    assert b"groups\r\n:0\r\n" in keeper.do("XINFO", "STREAM", topic)


def test_group_that_never_had_a_consumer_stays_and_so_do_other_groups(house: House, session: RecordedSession) -> None:
    session.do("XGROUP", "CREATE", "news", GROUP, "$", "MKSTREAM")
    session.do("XGROUP", "CREATE", "news", "lasting", "$")
    worker = house.session()
    worker.do("XREADGROUP", "GROUP", "lasting", "c", "STREAMS", "news", ">")
    worker.close_now()
    pass_time(house, 1)
    assert b"groups\r\n:2\r\n" in session.do("XINFO", "STREAM", "news")


def test_what_a_consumer_that_has_gone_had_in_flight_is_given_to_another(
    house: House, session: RecordedSession
) -> None:
    session.do("XGROUP", "CREATE", "news", GROUP, "$", "MKSTREAM")
    worker, other = house.session(), house.session()
    other.do("XREADGROUP", "GROUP", GROUP, "b", "STREAMS", "news", ">")
    for number in range(3):
        session.do("XADD", "news", f"{number + 1}-0", "f", str(number))
    worker.do("XREADGROUP", "GROUP", GROUP, "a", "STREAMS", "news", ">")
    assert worker.do("XACK", "news", GROUP, "2-0") == b":1\r\n"
    worker.close_now()
    pass_time(house, 1)
    assert b"consumers\r\n:1\r\n" in session.do("XINFO", "GROUPS", "news")
    said = other.do("XREADGROUP", "GROUP", GROUP, "b", "STREAMS", "news", ">")
    assert b"1-0" in said and b"3-0" in said and b"2-0" not in said


def test_consumer_that_another_connection_has_taken_over_stays(house: House, session: RecordedSession) -> None:
    session.do("XGROUP", "CREATE", "news", GROUP, "$", "MKSTREAM")
    before, after = house.session(), house.session()
    for worker in (before, after):
        worker.do("XREADGROUP", "GROUP", GROUP, "c", "STREAMS", "news", ">")
    before.close_now()
    pass_time(house, 1)
    assert b"consumers\r\n:1\r\n" in session.do("XINFO", "GROUPS", "news")
    after.close_now()
    back = house.session()
    back.do("XREADGROUP", "GROUP", GROUP, "c", "STREAMS", "news", ">")
    pass_time(house, 1)
    assert b"consumers\r\n:1\r\n" in session.do("XINFO", "GROUPS", "news")


def test_group_that_the_store_could_not_remove_is_removed_later(
    house: House, session: RecordedSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    session.do("XGROUP", "CREATE", "news", GROUP, "$", "MKSTREAM")
    worker = house.session()
    worker.do("XREADGROUP", "GROUP", GROUP, "c", "STREAMS", "news", ">")
    worker.close_now()
    keyspace = house.engine.keyspace
    assert keyspace is not None
    house.engine.readership.cron(house.clock.now)
    keyspace.fail(OSError("the commit fails"))
    house.engine.commit()
    assert b"groups\r\n:1\r\n" in session.do("XINFO", "STREAM", "news")
    pass_time(house, 1)
    assert b"groups\r\n:0\r\n" in session.do("XINFO", "STREAM", "news")


def test_nothing_goes_while_writes_are_paused(house: House, session: RecordedSession) -> None:
    session.do("XADD", TOPIC, "*", "f", "v")
    session.do("CLIENT", "PAUSE", "100000", "WRITE")
    pass_time(house, 3 * GRACE_SECONDS)
    assert exists(house)
    session.do("CLIENT", "UNPAUSE")
    pass_time(house, 2 * GRACE_SECONDS)
    assert not exists(house)


def test_only_the_newest_of_a_large_one_is_kept_and_what_is_lost_is_told(
    house: House, session: RecordedSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ephemeral, "MAX_TOPIC_BYTES", 10_000)
    for _ in range(30):
        session.do("XADD", TOPIC, "*", "f", "v" * 1000)
    pass_time(house, 1)
    assert session.do("XLEN", TOPIC) == b":9\r\n"
    assert b"removed-entries\r\n:21\r\n" in session.do("TOPIC.INFO", TOPIC)


def test_entries_that_it_defers_come_in_time(house: House, session: RecordedSession) -> None:
    due_ms = int(house.clock.now * 1000) + 2000
    session.do("TOPIC.DEFER", TOPIC, str(due_ms), "f", "v")
    house.session().do("TOPIC.SUBSCRIBE", TOPIC, "$")
    assert session.do("XLEN", TOPIC) == b":0\r\n"
    pass_time(house, 3)
    assert session.do("XLEN", TOPIC) == b":1\r\n"


@pytest.mark.parametrize(("topic", "grave"), [(TOPIC, "graves"), ("news", "graves#ephemeral")])
def test_dead_letters_go_from_one_kind_of_topic_to_the_other(
    house: House, session: RecordedSession, topic: str, grave: str
) -> None:
    session.do("XGROUP", "CREATE", topic, "g", "$", "MKSTREAM")
    session.do("TOPIC.GROUP", topic, "g", "TIMEOUT", "1000", "MAXDELIVERIES", "1", "DEADLETTER", grave)
    session.do("XADD", topic, "1-0", "f", "v")
    session.do("XREADGROUP", "GROUP", "g", "c", "STREAMS", topic, ">")
    pass_time(house, 3)
    assert b"$1\r\nf\r\n$1\r\nv\r\n" in session.do("XRANGE", grave, "-", "+")
    assert b"ephemeral\r\n:1\r\n" in session.do("TOPIC.INFO", TOPIC if topic == TOPIC else grave)
    assert b"ephemeral\r\n:0\r\n" in session.do("TOPIC.INFO", grave if topic == TOPIC else topic)


def test_it_says_of_itself_that_it_is_ephemeral(session: RecordedSession) -> None:
    session.do("XADD", TOPIC, "*", "f", "v")
    session.do("XADD", "news", "*", "f", "v")
    assert b"ephemeral\r\n:1\r\n" in session.do("TOPIC.INFO", TOPIC)
    assert b"ephemeral\r\n:0\r\n" in session.do("TOPIC.INFO", "news")
    assert session.do("TOPIC.LIST") == b"*2\r\n$4\r\nnews\r\n$14\r\nnews#ephemeral\r\n"


@pytest.mark.parametrize("request_words", [["RENAME"], ["RENAMENX"], ["COPY"]], ids=str)
def test_topic_neither_becomes_ephemeral_nor_ceases_to_be(session: RecordedSession, request_words: list[str]) -> None:
    session.do("XADD", TOPIC, "*", "f", "v")
    session.do("XADD", "news", "*", "f", "v")
    session.do("SET", "s", "v")
    assert session.do(*request_words, TOPIC, "lasting").startswith(b"-ERR an ephemeral topic")
    assert session.do(*request_words, "news", "other#ephemeral").startswith(b"-ERR only a topic")
    assert session.do(*request_words, "s", "s#ephemeral") in (b"+OK\r\n", b":1\r\n")
    assert session.do(*request_words, TOPIC, "other#ephemeral") in (b"+OK\r\n", b":1\r\n")
    assert session.do("XLEN", "other#ephemeral") == session.do("XLEN", "news") == b":1\r\n"


def test_transaction_that_watches_it_is_broken_by_a_change(house: House, session: RecordedSession) -> None:
    session.do("XADD", TOPIC, "*", "f", "v")
    session.do("WATCH", TOPIC)
    house.session().do("XADD", TOPIC, "*", "f", "v")
    session.do("MULTI")
    session.do("PING")
    assert session.do("EXEC") == b"*-1\r\n"
