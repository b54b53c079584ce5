"""INFO's section Topics."""

from __future__ import annotations

from unittest.mock import MagicMock, Mock

from rlite_pubsub.engine.stats.info_topics import topics
from rlite_pubsub.keyspace.topic.cold_shelf import Shelf
from rlite_pubsub.storage.topics.chunks import Chunk


def test_what_was_read_of_the_cold_store_is_told_once_there_is_one() -> None:
    engine = MagicMock()
    engine.keyspace.cold.shelf = None
    assert "cold_row_groups_read" not in dict(topics(engine))
    engine.keyspace.cold.shelf = Shelf(lambda block, number: Chunk(b"", b"\0" * 4), None, lambda: 1000)
    assert dict(topics(engine))["cold_row_groups_read"] == 0
    engine.keyspace.cold.shelf.get(Mock(path="block"), 0)
    told = dict(topics(engine))
    assert told["cold_row_groups_read"] == 1
    assert told["cold_cached_bytes"] == engine.keyspace.cold.shelf.held_bytes > 0
