"""The catalog of a query's plan: which topics there are, where they begin and end, and which blocks they have.

Who is asked is a server, or a store's folder (`ServerCatalog`), or a cold store by itself (shelf.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import pyarrow as pa
import redis

from rlite_pubsub.cold.place import Place
from rlite_pubsub.cold.plain_entries import batch_of
from rlite_pubsub.pipeline import cold_topic, topics
from rlite_pubsub.pipeline.cold_topic import ColdTopic
from rlite_pubsub.pipeline.connection import ask, connect
from rlite_pubsub.pipeline.options import SourceOptions
from rlite_pubsub.pipeline.topics import NOTHING, Marks, TopicExtent
from rlite_pubsub.storage.topics import entry_ids
from rlite_pubsub.storage.topics.entry_ids import Id

SAMPLE_ENTRIES = 1000
"""Of each end of a topic, where fields are inferred."""
_SAMPLED_TOPICS = 100


class Catalog(Protocol):
    """What a query asks for planning. Raises OptionRefused, and what the source of the answers raises."""

    def names(self) -> dict[str, bytes]:
        """Return the topics that are subscribed to: text -> name. One that is named need not be there yet."""

    def extent(self, name: bytes) -> TopicExtent | None:
        """Return the extent of a topic; None if it does not exist."""

    def marks(self, name: bytes, after: Id, upto: Id, step: int, most: int | None = None) -> Marks:
        """Return where a range that is in no block may be cut."""

    def cold(self, name: bytes) -> ColdTopic:
        """Return the part of a topic that is in blocks."""

    def place(self, cold: ColdTopic) -> Place:
        """Return the place of these blocks."""

    def sample(self, name: bytes, most: int) -> list[pa.RecordBatch]:
        """Some of a topic's first entries and some of its last ones, about `most` of each, as cold/columns.py has
        them."""


class ServerCatalog:
    """The catalog of a server, or of a store's folder."""

    def __init__(self, client: redis.Redis, options: SourceOptions | None = None) -> None:
        self._client = client
        self._options = options or SourceOptions()
        self._cold: dict[bytes, ColdTopic] = {}

    def names(self) -> dict[str, bytes]:
        return topics.find_topics(self._client, self._options)

    def extent(self, name: bytes) -> TopicExtent | None:
        return topics.extent(self._client, name)

    def marks(self, name: bytes, after: Id, upto: Id, step: int, most: int | None = None) -> Marks:
        return topics.marks(self._client, name, after, upto, step, most)

    def cold(self, name: bytes) -> ColdTopic:
        if name not in self._cold:
            self._cold[name] = cold_topic.cold_topic(self._client, name)
        return self._cold[name]

    def place(self, cold: ColdTopic) -> Place:
        return cold_topic.place_of(self._client, cold, self._options.cold_path)

    def sample(self, name: bytes, most: int) -> list[pa.RecordBatch]:
        there = self.extent(name) or NOTHING
        found = []
        for after in (there.trimmed, self._before_last(name, there, most)):
            if after < there.last:
                values = ask(
                    self._client,
                    "TOPIC.EXPORT",
                    name,
                    b"(" + entry_ids.text(after),
                    entry_ids.text(there.last),
                    "COUNT",
                    most,
                )
                found += [batch_of(values, name)] if values else []
        return found

    def _before_last(self, name: bytes, there: TopicExtent, most: int) -> Id:
        newest = ask(self._client, "XREVRANGE", name, "+", "-", "COUNT", most)
        if not newest:
            return there.last
        ms, _, seq = newest[-1][0].partition(b"-")
        return entry_ids.before((int(ms), int(seq))) or entry_ids.MIN


def catalog(options: SourceOptions) -> Catalog:
    """Return the one that these options mean. Raises OptionRefused."""
    if options.url is not None:
        return ServerCatalog(connect(options), options)
    from rlite_pubsub.pipeline.shelf import PlaceCatalog

    return PlaceCatalog(options)


def samples(found: Catalog) -> Iterator[pa.RecordBatch]:
    """Some entries of each topic that is subscribed to, or of the first hundred."""
    for _, name in sorted(found.names().items())[:_SAMPLED_TOPICS]:
        yield from found.sample(name, SAMPLE_ENTRIES)
