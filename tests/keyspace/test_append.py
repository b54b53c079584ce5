"""The next id of a topic, and runs of entries."""

from __future__ import annotations

import pytest

from rlite_pubsub.keyspace.topic.append import encode_entry, encode_run, next_id
from rlite_pubsub.storage.topics.entry_ids import MAX, PART_MAX, Id


@pytest.mark.parametrize(
    ("last", "now_ms", "count", "following"),
    [
        ((0, 0), 5, 1, (5, 0)),
        ((5, 0), 5, 1, (5, 1)),
        ((5, 3), 4, 1, (5, 4)),
        ((5, PART_MAX - 1), 5, 1, (5, PART_MAX)),
        ((5, PART_MAX), 5, 1, (6, 0)),
        ((5, PART_MAX - 2), 5, 2, (5, PART_MAX - 1)),
        ((5, PART_MAX - 1), 5, 2, (6, 0)),
        ((PART_MAX, PART_MAX - 2), 5, 2, (PART_MAX, PART_MAX - 1)),
        ((PART_MAX, PART_MAX - 1), 5, 2, None),
        (MAX, 5, 1, None),
    ],
)
def test_next_id_is_the_time_or_behind_the_last(last: Id, now_ms: int, count: int, following: Id | None) -> None:
    assert next_id(last, now_ms, count) == following


def test_entries_of_a_run_are_as_if_encoded_one_by_one() -> None:
    values = [b"%d%%d" % number for number in range(105)]
    tails = [b"%d\r\n%b" % (len(value), value) for value in values]
    name = b"100%%b"
    run = encode_run((7, 8), tails, b"*2\r\n$%d\r\n%b\r\n$" % (len(name), name), b"\r\n")
    assert run == [encode_entry((7, 8 + at), (name, value)) for at, value in enumerate(values)]
