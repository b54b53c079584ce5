"""Ranges of topics, and where their entries are: what planning cuts, and what is read."""

from __future__ import annotations

from typing import NamedTuple

from rlite_pubsub.cold.place import Place
from rlite_pubsub.storage.cold.cold_blocks import BlockInfo
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
