"""What a dead letter looks like."""

from __future__ import annotations

import hiredis
import pytest

from rlite_pubsub.groups.dead_letters import FIELDS, entry_with
from rlite_pubsub.keyspace.topic.append import encode_entry


@pytest.mark.parametrize(
    "words", [[b"f", b"v"], [b"", b""], [b"*2\r\n", b"$3\r\nfoo\r\n"], [b"\xff" * 100_000, b"v"], [b"a", b"b"] * 10_000]
)
@pytest.mark.parametrize("entry_id", [(0, 1), (2**64 - 1, 2**64 - 1)])
def test_dead_letter_has_what_the_entry_had_and_where_it_comes_from(
    words: list[bytes], entry_id: tuple[int, int]
) -> None:
    origin = (b"t\r\n", b"", b"1-2", b"7", b"1700000000000")
    reader = hiredis.Reader()
    reader.feed(entry_with((8, 9), encode_entry(entry_id, words), origin))
    assert reader.gets() == [b"8-9", words + [word for pair in zip(FIELDS, origin, strict=True) for word in pair]]
    assert reader.gets() is False
