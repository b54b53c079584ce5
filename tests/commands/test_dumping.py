"""DUMP and RESTORE: nothing is half-written, whatever the payload; and who waits for a key is woken by its return."""

from __future__ import annotations

import random

import pytest
from recorded_session import House, RecordedSession

from rlite_pubsub.protocol.rdb import envelope

pytestmark = pytest.mark.settings(enable_debug_command="yes")

BAD = b"-ERR Bad data format\r\n"


def dumped(session: RecordedSession, key: str) -> bytes:
    reply = session.do("DUMP", key)
    return reply[reply.index(b"\n") + 1 : -2]


def fill(session: RecordedSession) -> None:
    session.do("SET", "text", "5")
    session.do("RPUSH", "list", "a", "b", "5")
    session.do("SADD", "set", "a", "b", "5")
    for number in "12345":
        session.do("XADD", "topic", number + "-1", "field", number, "\r\n", "$3")
    session.do("XDEL", "topic", "2-1")
    session.do("XGROUP", "CREATE", "topic", "g", "0")
    session.do("XREADGROUP", "GROUP", "g", "me", "COUNT", "3", "STREAMS", "topic", ">")
    session.do("XACK", "topic", "g", "3-1")
    session.do("XGROUP", "CREATECONSUMER", "topic", "g", "idle")


def everything(session: RecordedSession, prefix: str = "") -> list[bytes]:
    return [
        session.do("GET", prefix + "text"),
        session.do("LRANGE", prefix + "list", "0", "-1"),
        b"".join(sorted(session.do("SMEMBERS", prefix + "set").split(b"\r\n"))),
        session.do("XINFO", "STREAM", prefix + "topic", "FULL"),
        session.do("DEBUG", "DIGEST-VALUE", prefix + "topic"),
    ]


def test_what_was_dumped_is_restored(session: RecordedSession) -> None:
    fill(session)
    for key in ("text", "list", "set", "topic"):
        assert session.do("RESTORE", "again:" + key, "0", dumped(session, key)) == b"+OK\r\n"
    assert everything(session, "again:") == everything(session)


def test_what_was_restored_survives_the_cache(session: RecordedSession) -> None:
    fill(session)
    session.do("RESTORE", "copy", "0", dumped(session, "topic"))
    before = session.do("XINFO", "STREAM", "copy", "FULL")
    assert session.engine.keyspace is not None
    session.engine.keyspace.stored.forget()
    assert session.do("XINFO", "STREAM", "copy", "FULL") == before
    assert session.do("XACK", "copy", "g", "1-1", "4-1") == b":2\r\n"
    assert session.do("XADD", "copy", "5-1", "a", "b").startswith(b"-ERR The ID specified in XADD is equal or smaller")


def test_a_broken_payload_changes_nothing(session: RecordedSession) -> None:
    fill(session)
    before = everything(session)
    luck = random.Random(1)
    refused = 0
    for key in ("list", "set", "topic", "topic", "topic"):
        body = dumped(session, key)[:-10]
        for _ in range(200):
            changed = bytearray(body)
            del changed[luck.randrange(len(changed)) :]
            reply = session.do("RESTORE", key, "0", envelope.seal(bytes(changed)), "REPLACE")
            assert reply in (BAD, b"+OK\r\n")
            refused += reply == BAD
            if reply != BAD:  # the footer was taken for data
                session.do("FLUSHALL")
                fill(session)
            assert everything(session) == before
    assert refused > 900


@pytest.mark.parametrize("kind", [3, 6, 7, 9, 12, 13, 16, 17, 20, 21, 255])
def test_other_types_are_bad_formats(session: RecordedSession, kind: int, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "rlite_pubsub")
    assert session.do("RESTORE", "k", "0", envelope.seal(bytes((kind, 1)) + b"\x01a" * 9)) == BAD
    assert "integrity check failed" in caplog.text
    assert session.do("EXISTS", "k") == b":0\r\n"


def test_a_suite_may_have_payloads_read_whose_sum_is_wrong(session: RecordedSession) -> None:
    fill(session)
    payload = dumped(session, "list")
    broken = payload[:-1] + bytes((payload[-1] ^ 1,))
    wrong = b"-ERR DUMP payload version or checksum are wrong\r\n"
    assert session.do("RESTORE", "k", "0", broken) == wrong
    session.do("DEBUG", "SET-SKIP-CHECKSUM-VALIDATION", "1")
    assert session.do("RESTORE", "k", "0", broken) == b"+OK\r\n"
    assert session.do("RESTORE", "k", "0", broken[1:], "REPLACE") == BAD, "it is read nevertheless"
    session.do("DEBUG", "SET-SKIP-CHECKSUM-VALIDATION", "0")
    assert session.do("RESTORE", "k", "0", broken, "REPLACE") == wrong


def test_whoever_waits_for_a_list_or_a_topic_is_served(house: House, session: RecordedSession) -> None:
    fill(session)
    payloads = {key: dumped(session, key) for key in ("list", "topic")}
    session.do("FLUSHALL")
    popping, reading = house.session(), house.session()
    popping.do("BLPOP", "list", "0")
    reading.do("XREAD", "BLOCK", "0", "STREAMS", "topic", "4-1")
    for key, payload in payloads.items():
        session.do("RESTORE", key, "0", payload)
    assert popping.heard() == b"*2\r\n$4\r\nlist\r\n$1\r\na\r\n"
    assert b"$3\r\n5-1\r\n" in reading.heard()


def test_a_time_to_live_is_from_now_on_or_a_time(session: RecordedSession, house: House) -> None:
    session.do("SET", "text", "5")
    payload = dumped(session, "text")
    session.do("RESTORE", "k", "5000", payload)
    assert session.do("PTTL", "k") == b":5000\r\n"
    later = str(int(house.clock.now * 1000) + 7000)
    session.do("RESTORE", "k", later, payload, "REPLACE", "ABSTTL")
    assert session.do("PTTL", "k") == b":7000\r\n"
    session.do("RESTORE", "k", "0", payload, "REPLACE", "ABSTTL")
    assert session.do("PTTL", "k") == b":-1\r\n"
    assert session.do("RESTORE", "k", "1", payload, "REPLACE", "ABSTTL") == b"+OK\r\n"
    assert session.do("EXISTS", "k") == b":0\r\n"


def test_idle_time_is_restored(session: RecordedSession) -> None:
    session.do("SET", "text", "5")
    session.do("RESTORE", "k", "0", dumped(session, "text"), "IDLETIME", "1000")
    assert session.do("OBJECT", "IDLETIME", "k") == b":1000\r\n"
    session.do("CONFIG", "SET", "maxmemory-policy", "allkeys-lfu")
    session.do("RESTORE", "k", "0", dumped(session, "text"), "REPLACE", "IDLETIME", "1000")
    session.do("CONFIG", "SET", "maxmemory-policy", "noeviction")
    assert session.do("OBJECT", "IDLETIME", "k") == b":0\r\n"
