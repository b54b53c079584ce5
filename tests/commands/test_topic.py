"""TOPIC.CREATE, CONFIG, LIST, INFO, EMPTY, DELETE and HELP, in the words of a client."""

from __future__ import annotations

import hiredis
import pytest
from parsed_session import ParsedSession
from recorded_session import House

from rlite_pubsub.engine.table import TABLE


def pass_time(house: House, seconds: float = 0.0) -> None:
    house.clock.now += seconds
    for _ in range(50):
        house.engine.cron(house.clock.now)
        house.engine.commit()


def test_topic_is_created_once_and_not_changed_by_a_second_create(client: ParsedSession) -> None:
    assert client.do("TOPIC.CREATE", "t", "RETAIN-AGE", "7d", "RETAIN-LENGTH", "1000", "RETAIN-BYTES", "512mb") == 1
    assert client.do("TOPIC.CREATE", "t", "RETAIN-AGE", "1d") == 0
    assert client.do("TYPE", "t") == b"stream"
    assert client.do("TOPIC.CONFIG", "t", "GET") == {
        b"retain-age": 604_800_000,
        b"retain-length": 1000,
        b"retain-bytes": 512 << 20,
        b"retain-rule": None,
        b"max-entry-bytes": 0,
        b"sync-every": 0,
        b"segment-length": 0,
        b"segment-bytes": 0,
    }


def test_config_changes_what_it_names_and_nothing_else(client: ParsedSession) -> None:
    client.do("CONFIG", "SET", "retain", "t* 1h 50 entries")
    client.do("TOPIC.CREATE", "t", "RETAIN-AGE", "5000", "RETAIN-BYTES", "100")
    assert client.do("TOPIC.CONFIG", "t", "SET", "retain-bytes", "none", "retain-length", "0") == b"OK"
    assert client.do("TOPIC.CONFIG", "t", "get") == {
        b"retain-age": 5000,
        b"retain-length": 0,
        b"retain-bytes": 0,
        b"retain-rule": b"t*",
        b"max-entry-bytes": 0,
        b"sync-every": 0,
        b"segment-length": 0,
        b"segment-bytes": 0,
    }
    assert client.do("TOPIC.CONFIG", "t", "SET", "RETAIN-AGE", "default", "RETAIN-LENGTH", "Default") == b"OK"
    found = client.do("TOPIC.CONFIG", "t", "GET")
    assert (found[b"retain-age"], found[b"retain-length"]) == (3_600_000, 50)


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("TOPIC.CREATE", "new", "RETAIN-AGE"), "ERR syntax error"),
        (("TOPIC.CREATE", "new", "RETAIN", "7d"), "ERR syntax error"),
        (("TOPIC.CREATE", "new", "RETAIN-AGE", "7d", "retain-age", "8d"), "ERR syntax error"),
        (("TOPIC.CREATE", "new", "RETAIN-AGE", "7x"), "ERR RETAIN-AGE must be an age like 7d, or milliseconds"),
        (("TOPIC.CREATE", "new", "RETAIN-LENGTH", "-1"), "ERR RETAIN-LENGTH must be a number of entries"),
        (("TOPIC.CREATE", "new", "RETAIN-LENGTH", "7d"), "ERR RETAIN-LENGTH must be a number of entries"),
        (("TOPIC.CREATE", "new", "RETAIN-BYTES", "x"), "ERR RETAIN-BYTES must be a size like 512mb, or bytes"),
        (("TOPIC.CREATE", "string"), "WRONGTYPE"),
        (("TOPIC.CONFIG", "t", "SET"), "ERR syntax error"),
        (("TOPIC.CONFIG", "t", "PUT", "RETAIN-AGE", "1"), "ERR syntax error"),
        (("TOPIC.CONFIG", "t", "GET", "RETAIN-AGE"), "ERR syntax error"),
        (("TOPIC.CONFIG", "new", "GET"), "ERR no such key"),
        (("TOPIC.CONFIG", "new", "SET", "RETAIN-AGE", "1"), "ERR no such key"),
        (("TOPIC.CONFIG", "string", "GET"), "WRONGTYPE"),
        (("TOPIC.INFO", "new"), "ERR no such key"),
        (("TOPIC.INFO", "string"), "WRONGTYPE"),
        (("TOPIC.EMPTY", "string"), "WRONGTYPE"),
        (("TOPIC.DELETE", "string"), "WRONGTYPE"),
        (("TOPIC.LIST", "t"), "ERR syntax error"),
        (("TOPIC.LIST", "MATCH"), "ERR syntax error"),
    ],
)
def test_what_makes_no_sense_is_refused_and_changes_nothing(house: House, words: tuple[str, ...], text: str) -> None:
    client = ParsedSession(house)
    client.do("TOPIC.CREATE", "t")
    keyspace = house.engine.keyspace
    assert keyspace is not None
    keyspace.put_string(0, b"string", b"x")
    house.engine.commit()
    before = client.do("TOPIC.INFO", "t")
    reply = client.do(*words)
    assert isinstance(reply, hiredis.ReplyError) and str(reply).startswith(text)
    assert client.do("TOPIC.LIST") == [b"t"]
    assert client.do("TOPIC.INFO", "t") == before


def test_list_has_the_topics_of_its_database_and_no_other_keys(house: House, client: ParsedSession) -> None:
    for name in ("b", "a1", "a2"):
        client.do("TOPIC.CREATE", name)
    client.do("SELECT", "1")
    client.do("TOPIC.CREATE", "elsewhere")
    client.do("SELECT", "0")
    keyspace = house.engine.keyspace
    assert keyspace is not None
    keyspace.put_string(0, b"a3", b"x")
    house.engine.commit()
    assert client.do("TOPIC.LIST") == [b"a1", b"a2", b"b"]
    assert client.do("TOPIC.LIST", "match", "a*") == [b"a1", b"a2"]


def test_info_tells_what_is_there_and_what_retention_has_removed(house: House, client: ParsedSession) -> None:
    client.do("CONFIG", "SET", "retain", "t 3 entries")
    for number in range(10):
        client.do("PUBLISH", "t", f"{number}")
    pass_time(house)
    now_ms = int(house.clock.now * 1000)
    info = client.do("TOPIC.INFO", "t")
    size = info.pop(b"bytes")
    assert info == {
        b"name": b"t",
        b"length": 3,
        b"earliest-id": b"%d-7" % now_ms,
        b"last-id": b"%d-9" % now_ms,
        b"entries-added": 10,
        b"max-deleted-id": b"0-0",
        b"groups": 0,
        b"group-list": [],
        b"ephemeral": 0,
        b"paused": 0,
        b"deferred": 0,
        b"retain-age": 0,
        b"retain-length": 3,
        b"retain-bytes": 0,
        b"retain-rule": b"t",
        b"max-entry-bytes": 0,
        b"sync-every": 0,
        b"segment-length": 0,
        b"segment-bytes": 0,
        b"removed-entries": 7,
        b"removed-bytes": size // 3 * 7,
        b"trimmed-entries": 7,
        b"trimmed-id": b"%d-6" % now_ms,
        b"cold-entries": 0,
        b"cold-bytes": 0,
        b"sealed-to": b"0-0",
    }
    told = client.do("INFO", "topics").decode()
    assert "retention_rules:1\r\nretention_removed_entries:7\r\n" in told
    assert "retained_messages:10\r\nretained_messages_refused:0\r\n" in told


def test_emptied_topic_keeps_its_settings_and_a_deleted_one_nothing(house: House, client: ParsedSession) -> None:
    client.do("CONFIG", "SET", "retain", "t 1h")
    client.do("PUBLISH", "t", "x")
    client.do("TOPIC.CONFIG", "t", "SET", "RETAIN-LENGTH", "5")
    assert client.do("TOPIC.EMPTY", "t") == 1
    assert client.do("TOPIC.EMPTY", "t") == 0
    assert client.do("TOPIC.EMPTY", "new") == 0
    info = client.do("TOPIC.INFO", "t")
    assert (info[b"length"], info[b"retain-length"], info[b"trimmed-entries"]) == (0, 5, 1)
    assert client.do("TOPIC.DELETE", "t") == 1
    assert client.do("TOPIC.DELETE", "t") == 0
    client.do("TOPIC.CREATE", "t")
    info = client.do("TOPIC.INFO", "t")
    assert (info[b"retain-length"], info[b"entries-added"]) == (0, 0)


def test_trimming_and_emptying_and_deleting_are_told_to_who_wants_to_know(house: House, client: ParsedSession) -> None:
    listener = house.session()
    client.do("CONFIG", "SET", "notify-keyspace-events", "KA")
    listener.do("SUBSCRIBE", "__keyspace@0__:t")
    client.do("CONFIG", "SET", "retain", "t 1 entries")
    client.do("PUBLISH", "t", "1")
    client.do("PUBLISH", "t", "2")
    assert listener.heard().count(b"xadd") == 2
    pass_time(house)
    assert listener.heard().count(b"xtrim") == 1
    client.do("TOPIC.EMPTY", "t")
    assert listener.heard().count(b"xtrim") == 1
    client.do("TOPIC.DELETE", "t")
    assert b"del" in listener.heard()


def test_rules_can_be_changed_and_seen_while_it_runs(house: House, client: ParsedSession) -> None:
    assert client.do("CONFIG", "GET", "retain") == {b"retain": b""}
    assert client.do("CONFIG", "SET", "retain", "a.* 7d ; b 10 entries 1gb") == b"OK"
    assert client.do("CONFIG", "GET", "retain") == {b"retain": b"a.* 7d ; b 1gb 10 entries"}
    reply = client.do("CONFIG", "SET", "retain", "a.* 5m")
    assert isinstance(reply, hiredis.ReplyError) and "minutes" in str(reply)
    assert client.do("CONFIG", "GET", "retain") == {b"retain": b"a.* 7d ; b 1gb 10 entries"}
    client.do("PUBLISH", "a.b", "x")
    assert client.do("CONFIG", "SET", "retain", "") == b"OK"
    client.do("PUBLISH", "a.b", "x")
    assert client.do("TOPIC.INFO", "a.b")[b"length"] == 1


def test_help_names_every_topic_command(client: ParsedSession) -> None:
    text = b"\n".join(client.do("TOPIC.HELP"))
    for name in TABLE.commands:
        if name.startswith(b"topic."):
            assert name.upper() in text
