"""The part that one task reads: ranges of topics, one after the other."""

from __future__ import annotations

from typing import NamedTuple

from pyspark.sql.datasource import InputPartition

from rlite_pubsub.cold.place import Place
from rlite_pubsub.storage.cold.cold_blocks import BlockInfo
from rlite_pubsub.storage.topics import entry_ids
from rlite_pubsub.storage.topics.entry_ids import Id


class ColdPiece(NamedTuple):
    """A block, as the server told of it."""

    place: Place
    info: BlockInfo
    deleted: tuple[Id, ...]
    """Of its entries, those that are gone."""


class EntrySpan(NamedTuple):
    """Entries of one topic with ids above `after`, up to and with `upto`."""

    topic: bytes
    after: Id
    upto: Id
    entries: int
    """How many there were when it was planned."""
    cold: ColdPiece | None = None
    """Where they are, if not on the server."""


class TopicPartition(InputPartition):
    """Spans, in order."""

    def __init__(self, spans: tuple[EntrySpan, ...]) -> None:
        super().__init__(spans)
        self.spans = spans

    def __repr__(self) -> str:
        told = [
            f"{span.topic!r} ({entry_ids.text(span.after).decode()}, {entry_ids.text(span.upto).decode()}]"
            for span in self.spans
        ]
        return f"TopicPartition({', '.join(told)})"
