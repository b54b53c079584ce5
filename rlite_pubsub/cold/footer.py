"""What a block says of itself: in its Parquet metadata, under two keys.

    rlite.block     JSON: format 1, store, topic (base64), number, path, first, last, count, wire_bytes, sealed_ms,
                    groups: of each [first, last, count, wire_bytes, sha256 of its entries as a chunk's value]
    rlite.sha256    of that JSON, in hex

The digests of the groups are of what comes out, so that nothing that Parquet's own checksums don't cover can change it.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from functools import lru_cache
from hashlib import sha256
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from rlite_pubsub.cold.errors import BlockDamaged, BlockMissing, ForeignBlock
from rlite_pubsub.cold.place import Place
from rlite_pubsub.storage import entry_ids
from rlite_pubsub.storage.cold_blocks import BlockInfo, GroupInfo
from rlite_pubsub.storage.entry_ids import Id

FORMAT = 1
_KEY, _DIGEST_KEY = b"rlite.block", b"rlite.sha256"
_TAIL_BYTES = 64 << 10
_END_BYTES = 8
"""Parquet's: length of the metadata u32, PAR1."""
_MAGIC = b"PAR1"
_CACHED = 64


class Origin(NamedTuple):
    """Whose entries a block has."""

    store: str
    topic: bytes
    number: int
    """The topic's in its store: it tells it from one of the same name that was before it."""


class Footer(NamedTuple):
    """A block's."""

    origin: Origin
    path: str
    first: Id
    last: Id
    entries: int
    wire_bytes: int
    sealed_ms: int
    groups: tuple[GroupInfo, ...]
    digests: tuple[bytes, ...]
    parquet: Any
    """pyarrow's FileMetaData; None for a block that is being written."""

    def words(self) -> dict[str, str]:
        """What goes into Parquet's metadata."""
        said = {
            "format": FORMAT,
            "store": self.origin.store,
            "topic": b64encode(self.origin.topic).decode(),
            "number": self.origin.number,
            "path": self.path,
            "first": id_text(self.first),
            "last": id_text(self.last),
            "count": self.entries,
            "wire_bytes": self.wire_bytes,
            "sealed_ms": self.sealed_ms,
            "groups": [
                [id_text(group.first), id_text(group.last), group.count, group.wire_bytes, digest.hex()]
                for group, digest in zip(self.groups, self.digests, strict=True)
            ],
        }
        text = json.dumps(said, separators=(",", ":"))
        return {_KEY.decode(): text, _DIGEST_KEY.decode(): sha256(text.encode()).hexdigest()}

    def info(self, file_bytes: int, digest: bytes) -> BlockInfo:
        return BlockInfo(
            self.path,
            self.first,
            self.last,
            self.entries,
            self.wire_bytes,
            file_bytes,
            digest,
            self.sealed_ms,
            self.groups,
        )

    def is_of(self, info: BlockInfo) -> bool:
        """Whether this is the block that somebody knows of."""
        return self.info(info.file_bytes, info.sha256) == info


def id_text(entry_id: Id) -> str:
    return entry_ids.text(entry_id).decode()


def id_of(text: str) -> Id:
    """Raises ValueError."""
    ms, _, seq = text.partition("-")
    found = int(ms), int(seq)
    if not all(0 <= half <= entry_ids.PART_MAX for half in found):
        raise ValueError(f"{text} is no id")
    return found


@lru_cache(_CACHED)
def known(place: Place, info: BlockInfo) -> Footer:
    """The footer of this block and of no other. It is read once for as long as it is among the last used."""
    footer = read(place, info.path, info.file_bytes)
    if not footer.is_of(info):
        raise ForeignBlock(
            info.path,
            f"this is block {footer.path} of {id_text(footer.first)} to {id_text(footer.last)}, sealed at "
            f"{footer.sealed_ms}, and not what was sealed here at {info.sealed_ms}",
        )
    return footer


def read(place: Place, path: str, file_bytes: int | None = None) -> Footer:
    """The footer of the block in this file. Raises BlockMissing, BlockDamaged, ForeignBlock, PlaceFailed."""
    try:
        size = place.size(path)
        if file_bytes is not None and size != file_bytes:
            raise BlockDamaged(path, f"it has {size} bytes and was written with {file_bytes}")
        tail = place.read(path, max(0, size - _TAIL_BYTES))
        wanted = int.from_bytes(tail[-_END_BYTES : -len(_MAGIC)], "little") + _END_BYTES
        if len(tail) < min(wanted, size) and tail.endswith(_MAGIC):
            tail = place.read(path, max(0, size - wanted))
    except FileNotFoundError as failure:
        raise BlockMissing(path, "this block is not there") from failure
    if not tail.endswith(_MAGIC):
        raise BlockDamaged(path, "it does not end as a Parquet file does")
    return parsed(tail, path)


def parsed(tail: bytes | memoryview, path: str) -> Footer:
    """The footer that stands at the end of these bytes."""
    try:
        parquet = pq.read_metadata(pa.BufferReader(tail))
        words = parquet.metadata or {}
    except Exception as failure:  # whatever Arrow makes of bytes that are not what was written
        raise BlockDamaged(path, f"its metadata cannot be read ({_line(failure)})") from failure
    if _KEY not in words:
        raise ForeignBlock(path, "a Parquet file, but no block of rlite-pubsub")
    text = words[_KEY]
    if sha256(text).hexdigest().encode() != words.get(_DIGEST_KEY):
        raise BlockDamaged(path, "what it says of itself is not what was written")
    said = json.loads(text)
    if said["format"] != FORMAT:
        raise ForeignBlock(path, f"a block of format {said['format']}, and this version reads format {FORMAT}")
    return Footer(
        Origin(said["store"], b64decode(said["topic"]), said["number"]),
        said["path"],
        id_of(said["first"]),
        id_of(said["last"]),
        said["count"],
        said["wire_bytes"],
        said["sealed_ms"],
        tuple(GroupInfo(id_of(each[0]), id_of(each[1]), each[2], each[3]) for each in said["groups"]),
        tuple(bytes.fromhex(each[4]) for each in said["groups"]),
        parquet,
    )


def _line(failure: Exception) -> str:
    return " ".join(f"{type(failure).__name__}: {failure}".split())
