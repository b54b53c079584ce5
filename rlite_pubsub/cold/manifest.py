"""A topic's manifest: which blocks it has, for readers of the cold store without a server, and for recovery.

    NAME/NUMBER/_manifest.json    format 1, store, topic (as text), name (base64), number, blocks, sha256

The truth is in the store (storage/cold/cold_blocks.py), of which this is a mirror; without a store the blocks say
enough of themselves to make it again (checking.py). It is replaced as a whole; its sha256 is that of all before it,
written as `_text` does. A block has path, first, last, count, wire_bytes, file_bytes, sha256, sealed_ms, previous and
next (paths, or null at the ends); its row groups stand in its file.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable
from dataclasses import replace
from hashlib import sha256
from itertools import pairwise
from typing import Any, NamedTuple

from rlite_pubsub.cold import paths
from rlite_pubsub.cold.errors import ForeignManifest, ManifestDamaged
from rlite_pubsub.cold.id_words import id_of, id_text
from rlite_pubsub.cold.origin import Origin, text_of
from rlite_pubsub.cold.place import Place
from rlite_pubsub.storage.cold.cold_blocks import BlockInfo

FORMAT = 1


class Manifest(NamedTuple):
    """A topic's blocks, in order, as a manifest knows them: without their row groups."""

    origin: Origin
    blocks: tuple[BlockInfo, ...]

    @property
    def path(self) -> str:
        return paths.manifest_of(self.origin.topic, self.origin.number)


def of(origin: Origin, blocks: Iterable[BlockInfo]) -> Manifest:
    """Return the manifest of these blocks."""
    return Manifest(origin, tuple(replace(block, groups=()) for block in sorted(blocks, key=lambda block: block.first)))


def write(
    place: Place, manifest: Manifest, *, is_kept_empty: bool = False, make_safe: Callable[[], object] | None = None
) -> None:
    """Put it in the place of the one before; a topic without a block has none, unless files of blocks that it had are
    still there (`is_kept_empty`). `make_safe` is called before a block goes from it: a power cut must not give the
    store one back that no manifest has. Raises ForeignManifest where that is another store's; PlaceFailed."""
    try:
        before = read(place, manifest.path)
    except ManifestDamaged:
        pass  # which is what this one is there for
    else:
        if before.origin.store != manifest.origin.store:
            stores = f"it is of store {before.origin.store}, and this is {manifest.origin.store}"
            raise ForeignManifest(manifest.path, f"{stores}: two stores cannot share a place")
        if before == manifest and (before.blocks or is_kept_empty):
            return
        if make_safe is not None and set(before.blocks) - set(manifest.blocks):
            make_safe()
    if manifest.blocks or is_kept_empty:
        place.write(manifest.path, _text(manifest))
    else:
        place.delete(manifest.path)


def keep(
    place: Place,
    origin: Origin,
    blocks: Callable[[], Iterable[BlockInfo]],
    *,
    is_kept_empty: bool = False,
    make_safe: Callable[[], object] | None = None,
) -> None:
    """Write what the topic has, as `blocks` tells, until it has that still once it is written. Several write it: a
    sealer, a compaction. Whoever changes a topic's blocks calls this afterwards; so whoever writes last is right.
    Raises as `write`."""
    wanted = of(origin, blocks())
    while True:
        write(place, wanted, is_kept_empty=is_kept_empty, make_safe=make_safe)
        written, wanted = wanted, of(origin, blocks())
        if written == wanted:
            return


def read(place: Place, path: str) -> Manifest:
    """Return the manifest in this file. Raises ManifestDamaged, also where there is none; PlaceFailed."""
    try:
        text = place.read(path)
    except FileNotFoundError as failure:
        raise ManifestDamaged(path, "this manifest is not there: it can be rebuilt from the blocks") from failure
    try:
        said = json.loads(text)
        found = _of_words(said)
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as failure:
        raise ManifestDamaged(path, f"it cannot be read, and can be rebuilt from the blocks ({failure})") from failure
    if _text(found) != text:
        raise ManifestDamaged(path, "it is not what was written, and can be rebuilt from the blocks")
    if found.path != path:
        raise ManifestDamaged(path, f"it is the one of {found.path}")
    return found


def _text(manifest: Manifest) -> bytes:
    """Return the text of the file: readable, and always the same for the same blocks."""
    links = [None, *(block.path for block in manifest.blocks), None]
    said: dict[str, Any] = {
        "format": FORMAT,
        "store": manifest.origin.store,
        "topic": text_of(manifest.origin.topic),
        "name": b64encode(manifest.origin.topic).decode(),
        "number": manifest.origin.number,
        "blocks": [
            {
                "path": block.path,
                "first": id_text(block.first),
                "last": id_text(block.last),
                "count": block.count,
                "wire_bytes": block.wire_bytes,
                "file_bytes": block.file_bytes,
                "sha256": block.sha256.hex(),
                "sealed_ms": block.sealed_ms,
                "previous": links[place],
                "next": links[place + 2],
            }
            for place, block in enumerate(manifest.blocks)
        ],
    }
    said["sha256"] = sha256(json.dumps(said, indent=1).encode()).hexdigest()
    return json.dumps(said, indent=1).encode() + b"\n"


def _of_words(said: Any) -> Manifest:
    if said["format"] != FORMAT:
        raise ValueError(f"it has format {said['format']}, and this version reads format {FORMAT}")
    origin = Origin(str(said["store"]), b64decode(said["name"], validate=True), int(said["number"]))
    blocks = tuple(
        BlockInfo(
            str(each["path"]),
            id_of(each["first"]),
            id_of(each["last"]),
            int(each["count"]),
            int(each["wire_bytes"]),
            int(each["file_bytes"]),
            bytes.fromhex(each["sha256"]),
            int(each["sealed_ms"]),
            (),
        )
        for each in said["blocks"]
    )
    for block, following in pairwise(blocks):
        if block.last >= following.first:
            raise ValueError(f"{following.path} does not follow {block.path}")
    return Manifest(origin, blocks)
