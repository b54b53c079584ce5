"""Retained channels: the entries that messages become."""

from __future__ import annotations

import logging

import pytest
from keeper import START_MS, Keeper

from rlite_pubsub.keyspace.topic.append import encode_entry
from rlite_pubsub.protocol.errors import CommandError
from rlite_pubsub.storage.topics.entry_ids import PART_MAX


def tails(*payloads: bytes) -> list[bytes]:
    return [b"%d\r\n%b" % (len(payload), payload) for payload in payloads]


def test_message_is_the_only_field_of_its_entry_whatever_its_bytes(keeper: Keeper) -> None:
    payloads = [b"", b"\r\n", b"\x00\xff" * 5000, b"x"]
    assert keeper.retained.append(b"t", tails(*payloads))
    keeper.end_turn()
    topic = keeper.to_change()
    wire = b"".join(part.wire for part in topic.between())
    assert wire == b"".join(
        encode_entry((START_MS, number), [b"message", payload]) for number, payload in enumerate(payloads)
    )
    assert topic.size_bytes == len(wire) and topic.length == topic.entries_added == 4
    assert topic.last_id == (START_MS, 3)


def test_ids_grow_though_the_clock_stands_or_goes_back(keeper: Keeper) -> None:
    keeper.retained.append(b"t", tails(b"a", b"b"))
    keeper.end_turn()
    keeper.retained.append(b"t", tails(b"c"))
    keeper.clock.ms -= 1000
    keeper.retained.append(b"t", tails(b"d"))
    keeper.end_turn()
    keeper.clock.ms += 1001
    keeper.retained.append(b"t", tails(b"e"))
    keeper.end_turn()
    assert keeper.ids() == [*((START_MS, number) for number in range(4)), (START_MS + 1, 0)]


def test_ids_at_the_end_of_a_millisecond_go_on_in_the_next_and_at_the_end_of_all_are_refused(keeper: Keeper) -> None:
    keeper.topic()
    keeper.append((START_MS, PART_MAX - 1))
    keeper.retained.append(b"t", tails(b"a", b"b"))
    keeper.end_turn()
    assert keeper.ids()[1:] == [(START_MS + 1, 0), (START_MS + 1, 1)]
    keeper.append((PART_MAX, PART_MAX))
    with pytest.raises(CommandError):
        keeper.retained.append(b"t", tails(b"a"))
    keeper.end_turn()
    assert len(keeper.ids()) == 4


def test_key_that_is_no_topic_is_left_alone_and_that_is_counted_and_logged_once(
    keeper: Keeper, caplog: pytest.LogCaptureFixture
) -> None:
    keeper.keyspace.put_string(0, b"t", b"value")
    keeper.end_turn()
    with caplog.at_level(logging.WARNING, "rlite_pubsub"):
        assert not keeper.retained.append(b"t", tails(b"a", b"b"))
        assert not keeper.retained.append(b"t", tails(b"c"))
    keeper.end_turn()
    assert keeper.retained.refused == 3 and keeper.retained.entries == 0
    assert len(caplog.records) == 1
