"""The footer of a block.

    PAR1, pages, page indexes | seal | Parquet's metadata | their length u32 | PAR1

    seal    RLBLOCK1 | sha256 of all before the seal (32) | sha256 of the metadata (32)

The metadata have, beside all that is Parquet's, one key: `rlite.block`, JSON: format 1, store, topic (base64), number,
path, first, last, count, wire_bytes, sealed_ms, and groups: of each first, last, count, wire_bytes, where it begins and
ends in the file, the sha256 of these bytes, and that of its entries as a chunk's value.

Law: no byte is given to Arrow before its digest is proved. Over some flipped bits its reader aborts the process, and
Parquet's own checksums cover no headers.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from dataclasses import replace
from functools import lru_cache
from hashlib import sha256
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from rlite_pubsub.cold.errors import BlockDamaged, BlockMissing, ForeignBlock
from rlite_pubsub.cold.id_words import id_of, id_text
from rlite_pubsub.cold.origin import Origin
from rlite_pubsub.cold.place import Place
from rlite_pubsub.storage.cold.cold_blocks import BlockInfo, GroupInfo

FORMAT = 1
KEY = "rlite.block"
SEAL = b"RLBLOCK1"
_DIGEST_BYTES = 32
_SEAL_BYTES = len(SEAL) + 2 * _DIGEST_BYTES
_MAGIC = b"PAR1"
_LENGTH_BYTES = 4
_TAIL_BYTES = 64 << 10
_CACHED = 64


class GroupExtent(NamedTuple):
    """Where a row group is in its file, and the digest that proves it."""

    start: int
    stop: int
    sha256: bytes
    """Of these bytes."""
    entries_sha256: bytes
    """Of its entries, as the value of one chunk."""


class Footer(NamedTuple):
    """The footer of a block."""

    origin: Origin
    path: str
    sealed_ms: int
    groups: tuple[GroupInfo, ...]
    extents: tuple[GroupExtent, ...]
    parquet: Any = None
    """pyarrow's FileMetaData; None for a block that is being written."""
    size: int = 0
    """How many bytes it takes, with its seal."""
    body_sha256: bytes = b""
    """Of all that is before it."""

    def words(self) -> dict[str, str]:
        """Return the entries for Parquet's metadata."""
        info = self.info(0, b"")
        said = {
            "format": FORMAT,
            "store": self.origin.store,
            "topic": b64encode(self.origin.topic).decode(),
            "number": self.origin.number,
            "path": self.path,
            "first": id_text(info.first),
            "last": id_text(info.last),
            "count": info.count,
            "wire_bytes": info.wire_bytes,
            "sealed_ms": self.sealed_ms,
            "groups": [
                {
                    "first": id_text(group.first),
                    "last": id_text(group.last),
                    "count": group.count,
                    "wire_bytes": group.wire_bytes,
                    "start": extent.start,
                    "stop": extent.stop,
                    "sha256": extent.sha256.hex(),
                    "entries_sha256": extent.entries_sha256.hex(),
                }
                for group, extent in zip(self.groups, self.extents, strict=True)
            ],
        }
        return {KEY: json.dumps(said, separators=(",", ":"))}

    def info(self, file_bytes: int, digest: bytes) -> BlockInfo:
        """Return the block, of this many bytes."""
        return BlockInfo(
            self.path,
            self.groups[0].first,
            self.groups[-1].last,
            sum(group.count for group in self.groups),
            sum(group.wire_bytes for group in self.groups),
            file_bytes,
            digest,
            self.sealed_ms,
            self.groups,
        )

    def is_of(self, info: BlockInfo) -> bool:
        """Return whether this is the block that somebody knows, as far as they know it: without row groups, or the
        time."""
        mine = self.info(info.file_bytes, info.sha256)
        if not info.groups:
            mine = replace(mine, groups=())
        return info == (mine if info.sealed_ms else replace(mine, sealed_ms=0))


def sealed(file: bytes) -> bytes:
    """Return a Parquet file, with its seal before its metadata: no reader looks there."""
    at = len(file) - len(_MAGIC) - _LENGTH_BYTES
    start = at - int.from_bytes(file[at : at + _LENGTH_BYTES], "little")
    view = memoryview(file)
    return b"".join((view[:start], SEAL, sha256(view[:start]).digest(), sha256(view[start:at]).digest(), view[start:]))


@lru_cache(_CACHED)
def known(place: Place, info: BlockInfo) -> Footer:
    """Return the footer of this block and of no other. It is read once for as long as it is among the last used."""
    footer = read(place, info.path, info.file_bytes)
    if not footer.is_of(info):
        own = footer.info(0, b"")
        raise ForeignBlock(
            info.path,
            f"this is block {own.path} of {own.count} entries, sealed at {own.sealed_ms}, and not the one of "
            f"{info.count} that was sealed here at {info.sealed_ms}",
        )
    return footer


def read(place: Place, path: str, file_bytes: int | None = None) -> Footer:
    """Return the footer of the block in this file. Raises BlockMissing, BlockDamaged, ForeignBlock, PlaceFailed."""
    try:
        size = place.size(path)
        if file_bytes is not None and size != file_bytes:
            raise BlockDamaged(path, f"it has {size} bytes and was written with {file_bytes}")
        tail = place.read(path, max(0, size - _TAIL_BYTES))
        wanted = _footer_bytes(tail, path)
        if len(tail) < wanted <= size:
            tail = place.read(path, size - wanted)
    except FileNotFoundError as failure:
        raise BlockMissing(path, "this block is not there") from failure
    return parsed(tail, path)


def _footer_bytes(tail: bytes | memoryview, path: str) -> int:
    """Return the length of the footer that these bytes end with, with its seal."""
    end = len(_MAGIC) + _LENGTH_BYTES
    if bytes(tail[-len(_MAGIC) :]) != _MAGIC or len(tail) < end:
        raise BlockDamaged(path, "it does not end as a Parquet file does")
    length = int.from_bytes(tail[-end : -len(_MAGIC)], "little")
    return _SEAL_BYTES + length + end


def parsed(tail: bytes | memoryview, path: str) -> Footer:
    """Return the footer that these bytes end with."""
    size = _footer_bytes(tail, path)
    if size > len(tail):
        raise BlockDamaged(path, f"its metadata would have {size} bytes")
    footer = bytes(tail[len(tail) - size :])
    if not footer.startswith(SEAL):
        raise ForeignBlock(path, "not a block of rlite-pubsub, or one whose metadata is damaged")
    metadata = footer[_SEAL_BYTES : -len(_MAGIC) - _LENGTH_BYTES]
    if sha256(metadata).digest() != footer[_SEAL_BYTES - _DIGEST_BYTES : _SEAL_BYTES]:
        raise BlockDamaged(path, "its metadata is not what was written")
    parquet = pq.read_metadata(pa.BufferReader(footer))
    said = json.loads(parquet.metadata[KEY.encode()])
    if said["format"] != FORMAT:
        raise ForeignBlock(path, f"a block of format {said['format']}, and this version reads format {FORMAT}")
    return Footer(
        Origin(said["store"], b64decode(said["topic"]), said["number"]),
        said["path"],
        said["sealed_ms"],
        tuple(
            GroupInfo(id_of(each["first"]), id_of(each["last"]), each["count"], each["wire_bytes"])
            for each in said["groups"]
        ),
        tuple(
            GroupExtent(
                each["start"], each["stop"], bytes.fromhex(each["sha256"]), bytes.fromhex(each["entries_sha256"])
            )
            for each in said["groups"]
        ),
        parquet,
        size,
        footer[len(SEAL) : len(SEAL) + _DIGEST_BYTES],
    )
