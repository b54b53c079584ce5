"""Blocks back into entries: of a whole cold store, of a topic, of a range."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from rlite_pubsub.cold import block, checking, columns
from rlite_pubsub.cold.errors import ColdError
from rlite_pubsub.cold.manifest import Manifest
from rlite_pubsub.cold.origin import Origin
from rlite_pubsub.cold.place import Place
from rlite_pubsub.cold.survey import is_in, survey
from rlite_pubsub.storage.cold.cold_blocks import BlockInfo
from rlite_pubsub.storage.topics import entry_ids
from rlite_pubsub.storage.topics.chunks import ChunkSlice
from rlite_pubsub.storage.topics.entry_ids import Id


class RestoredEntries(NamedTuple):
    """Some entries of a topic."""

    origin: Origin
    part: ChunkSlice


def restore(
    place: Place, topic: bytes | None = None, start: Id = entry_ids.MIN, end: Id = entry_ids.MAX
) -> Iterator[RestoredEntries | ColdError]:
    """All entries that can be read, of a topic or of all, with ids from `start` to `end`: topic after topic, in order;
    and in their place, why some can't be.

    By the manifests; by the blocks alone, where theirs is lost. What is deleted only the store knows, so it comes back.
    Raises PlaceFailed if the files cannot be listed."""
    found = survey(place)
    alone, problems = checking.alone(place, [path for path in found.orphans if is_in(path, topic)])
    yield from problems
    for each in (*found.manifests, *(known for known, _ in alone)):
        if topic in (None, each.origin.topic):
            yield from entries(place, each, start, end)


def entries_in(restored: RestoredEntries) -> Iterator[tuple[bytes, list[bytes]]]:
    """(id as text, names and values) of each."""
    part = restored.part
    lists = columns.field_lists(part.ids, part.wire, part.count, restored.origin.topic) if part.count else []
    return zip(map(entry_ids.text, entry_ids.unpack_all(part.ids)), lists, strict=True)


def entries(
    place: Place, manifest: Manifest, start: Id = entry_ids.MIN, end: Id = entry_ids.MAX
) -> Iterator[RestoredEntries | ColdError]:
    """Yield the same of one manifest."""
    for known in manifest.blocks:
        if known.last >= start and known.first <= end:
            for found in _of_block(place, known, start, end):
                yield found if isinstance(found, ColdError) else RestoredEntries(manifest.origin, found)


def _of_block(place: Place, known: BlockInfo, start: Id, end: Id) -> Iterator[ChunkSlice | ColdError]:
    try:
        groups = block.complete(place, known).groups
    except ColdError as failure:
        yield failure
        return
    low, high = entry_ids.pack(start), entry_ids.pack(end)
    for number, group in enumerate(groups):
        if group.last >= start and group.first <= end:
            try:
                chunk = block.read_group(place, known, number)
                yield ChunkSlice(chunk, chunk.place_of(low), chunk.place_behind(high))
            except ColdError as failure:
                yield failure
