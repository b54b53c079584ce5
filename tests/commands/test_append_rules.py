"""MAX-ENTRY-BYTES and SYNC-EVERY: what may be appended to a topic, and when its appends wait for the disk."""

from __future__ import annotations

import hiredis
import pytest
from parsed_session import ParsedSession
from recorded_session import House

from rlite_pubsub.engine.refusal import Acknowledged
from rlite_pubsub.protocol.encoder import bulk_array

TEN = "MAX-ENTRY-BYTES", "10"


def refused(reply: object) -> bool:
    return isinstance(reply, hiredis.ReplyError) and str(reply).startswith("TOOLARGE ")


def test_entry_that_is_too_large_is_refused_and_nothing_of_it_stored(client: ParsedSession) -> None:
    client.do("TOPIC.CREATE", "t", *TEN)
    assert client.do("TOPIC.INFO", "t")[b"max-entry-bytes"] == 10
    reply = client.do("XADD", "t", "*", "ab", "123456789")
    assert str(reply) == "TOOLARGE The entry has 11 bytes, and its topic takes 10 at most (MAX-ENTRY-BYTES)"
    assert refused(client.do("XADD", "t", "*", "a", "1234", "b", "12345"))
    assert client.do("XADD", "t", "*", "ab", "12345678")
    assert client.do("XLEN", "t") == 1
    client.do("TOPIC.CONFIG", "t", "SET", "MAX-ENTRY-BYTES", "1kb")
    assert client.do("XADD", "t", "*", "ab", "x" * 1022) and refused(client.do("XADD", "t", "*", "ab", "x" * 1023))
    client.do("TOPIC.CONFIG", "t", "SET", "MAX-ENTRY-BYTES", "none")
    assert client.do("XADD", "t", "*", "ab", "x" * 5000)


@pytest.mark.settings(retain="t 7d")
def test_every_way_into_a_topic_is_measured(client: ParsedSession) -> None:
    client.do("TOPIC.CREATE", "t", *TEN)
    later = client.house.clock.now * 1000 + 60_000
    assert refused(client.do("TOPIC.DEFER", "t", int(later), "ab", "123456789"))
    assert refused(client.do("PUBLISH", "t", "1234"))  # `message` has seven bytes
    assert client.do("PUBLISH", "t", "123") == 0
    rows = bulk_array((b"ab", b"1")) + bulk_array((b"ab", b"123456789"))
    assert refused(client.do("TOPIC.STAGE", "app", "1", "0", "1", "0", "t", "2", rows))
    client.do("QUEUE.CREATE", "q")
    client.do("TOPIC.CONFIG", "q", "SET", *TEN)
    assert refused(client.do("QUEUE.PUSH", "q", "1", "123456"))
    assert client.do("XLEN", "q") == 0 and client.do("XLEN", "t") == 1


def test_what_was_accepted_before_comes_in_its_time(client: ParsedSession) -> None:
    house = client.house
    client.do("TOPIC.DEFER", "t", int(house.clock.now * 1000) + 1000, "ab", "x" * 100)
    client.do("TOPIC.CONFIG", "t", "SET", *TEN)
    house.clock.now += 2
    for _ in range(5):
        house.engine.cron(house.clock.now)
        house.engine.commit()
    assert client.do("XLEN", "t") == 1


def test_rules_go_with_a_copy_and_stay_when_the_topic_is_renamed(client: ParsedSession) -> None:
    client.do("TOPIC.CREATE", "t", *TEN, "SYNC-EVERY", "5")
    client.do("COPY", "t", "copy")
    client.do("RENAME", "t", "renamed")
    for name in ("copy", "renamed"):
        about = client.do("TOPIC.CONFIG", name, "GET")
        assert (about[b"max-entry-bytes"], about[b"sync-every"]) == (10, 5)
        assert refused(client.do("XADD", name, "*", "ab", "123456789"))


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("MAX-ENTRY-BYTES", "x"), "ERR MAX-ENTRY-BYTES must be a size like 64kb, a number of bytes or none"),
        (("SYNC-EVERY", "-1"), "ERR SYNC-EVERY must be a number of entries or none"),
        (("SYNC-EVERY", "default"), "ERR SYNC-EVERY must be a number of entries or none"),
    ],
)
def test_what_is_no_limit_is_refused(client: ParsedSession, words: tuple[str, str], text: str) -> None:
    client.do("TOPIC.CREATE", "t")
    assert str(client.do("TOPIC.CONFIG", "t", "SET", *words)) == text


def test_answers_wait_for_the_disk_with_each_so_many_th_entry_and_with_no_other(house: House) -> None:
    waiting: Acknowledged = []
    house.engine.key_commit.withhold_by(None, waiting.extend)
    client = ParsedSession(house)
    client.do("TOPIC.CREATE", "t", "SYNC-EVERY", "5")
    synced = []
    for number in range(1, 21):
        client.do("XADD", "t", "*", "n", number)
        if waiting:
            synced.append(number)
        waiting.clear()
    assert synced == [5, 10, 15, 20]
    client.do("XADD", "other", "*", "n", "1")
    client.do("XDEL", "t", "1-1")
    assert not waiting


def test_a_turn_that_passes_a_multiple_waits_whole(house: House) -> None:
    waiting: Acknowledged = []
    house.engine.key_commit.withhold_by(None, waiting.extend)
    client = ParsedSession(house)
    client.do("QUEUE.CREATE", "q")
    client.do("TOPIC.CONFIG", "q", "SET", "SYNC-EVERY", "5")
    client.do("QUEUE.PUSH", "q", *["x"] * 4)
    assert not waiting
    client.do("QUEUE.PUSH", "q", *["x"] * 7)
    assert waiting
