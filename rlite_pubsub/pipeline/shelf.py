"""A cold store by itself: its topics, as their manifests tell. No server and no store is asked, or needs to be there.

Only the store knows which entries were deleted or trimmed since their block was sealed, so these are there once more.
Of topics that had one name one after the other, the last is read.
"""

from __future__ import annotations

import re
from functools import cached_property

import pyarrow as pa

from rlite_pubsub.cold import block, manifest, paths
from rlite_pubsub.cold.manifest import Manifest
from rlite_pubsub.cold.origin import text_of
from rlite_pubsub.cold.place import Place
from rlite_pubsub.cold.places import open_place
from rlite_pubsub.pipeline.cold_topic import NOWHERE, ColdTopic
from rlite_pubsub.pipeline.errors import OptionRefused
from rlite_pubsub.pipeline.options import SourceOptions
from rlite_pubsub.pipeline.topics import Marks, TopicExtent
from rlite_pubsub.storage.topics import entry_ids
from rlite_pubsub.storage.topics.entry_ids import Id


class PlaceCatalog:
    """The catalog of a cold store by itself. Raises ManifestDamaged, PlaceFailed."""

    def __init__(self, options: SourceOptions) -> None:
        assert options.cold_path is not None
        self._options = options
        self._place = open_place(options.cold_path, "")

    def names(self) -> dict[str, bytes]:
        pattern = self._options.subscribe_pattern
        if pattern is None:
            return {text: text.encode() for text in self._options.subscribe}
        expression = re.compile(pattern)
        return {text_of(name): name for name in self._manifests if expression.fullmatch(text_of(name))}

    def extent(self, name: bytes) -> TopicExtent | None:
        found = self._manifests.get(name)
        if found is None:
            return None
        return TopicExtent(entry_ids.MIN, found.blocks[-1].last, sum(one.count for one in found.blocks))

    def marks(self, name: bytes, after: Id, upto: Id, step: int, most: int | None = None) -> Marks:
        return Marks(0, None, step, [])

    def cold(self, name: bytes) -> ColdTopic:
        found = self._manifests.get(name)
        if found is None:
            return NOWHERE
        origin, blocks = found
        return ColdTopic(
            self._place.url, origin.store, origin.number, blocks[-1].last, entry_ids.MIN, frozenset(), blocks
        )

    def place(self, cold: ColdTopic) -> Place:
        return self._place

    def sample(self, name: bytes, most: int) -> list[pa.RecordBatch]:
        found = self._manifests.get(name)
        if found is None:
            return []
        first, last = found.blocks[0], found.blocks[-1]
        newest = block.read_batch(self._place, last, len(block.complete(self._place, last).groups) - 1)
        return [
            block.read_batch(self._place, first, 0).slice(0, most),
            newest.slice(max(0, newest.num_rows - most)),
        ]

    @cached_property
    def _manifests(self) -> dict[bytes, Manifest]:
        """Name -> the last topic of it that has a block."""
        files = [file.path for file in self._place.files() if file.path.endswith(f"/{paths.MANIFEST}")]
        if not files:
            raise OptionRefused(f"coldPath: there is no cold store in {self._place.shown}")
        found: dict[bytes, Manifest] = {}
        for path in files:
            one = manifest.read(self._place, path)
            before = found.get(one.origin.topic)
            if one.blocks and (before is None or before.origin.number < one.origin.number):
                found[one.origin.topic] = one
        return found
