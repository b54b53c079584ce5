"""A block: an immutable Parquet file of a topic's old entries, in order. Anything that reads Parquet reads it.

Promises:
 - What is written is decoded again and compared, entry for entry, before it has its name.
 - What is read is what was written: no byte is decoded before its digest is proved (footer.py). Anything else raises,
   and names the file: BlockMissing, BlockDamaged, ForeignBlock; PlaceFailed says nothing about the block.
 - A row group is read by one request to its place, and decoded outside of the GIL but for little.

storage/FORMAT.md ("Blocks") draws the file.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from rlite_pubsub.cold import columns, footer
from rlite_pubsub.cold.errors import BlockDamaged, BlockMissing, ForeignBlock
from rlite_pubsub.cold.footer import Footer, GroupExtent
from rlite_pubsub.cold.id_words import id_text
from rlite_pubsub.cold.origin import Origin
from rlite_pubsub.cold.place import Place
from rlite_pubsub.storage.cold.cold_blocks import BlockInfo, GroupInfo
from rlite_pubsub.storage.topics.chunks import Chunk

_DELTA = "DELTA_BINARY_PACKED"
_OPTIONS: dict[str, Any] = {
    "version": "2.6",
    "compression": "zstd",
    "compression_level": 3,
    "use_dictionary": ["topic", "fields.list.element.name"],
    "column_encoding": {"ms": _DELTA, "seq": _DELTA},
    "write_statistics": ["topic", "ms", "seq"],
    "write_page_index": True,
    "write_page_checksum": True,
    "store_schema": False,
}
_OF_ENTRIES = ("ms", "seq", "fields")


def write(
    place: Place, path: str, origin: Origin, batches: Iterable[pa.RecordBatch], sealed_ms: int
) -> BlockInfo:
    """Write the entries of these batches (columns.py's, in the order of their ids) as one block.

    Raises ValueError without any entry or where they are out of order; PlaceFailed."""
    full: list[pa.RecordBatch] = []
    file, written = _encoded(path, origin, batches, sealed_ms, full)
    again = footer.parsed(file, path)
    view = memoryview(file)
    for number, (extent, batch) in enumerate(zip(again.extents, full, strict=True)):
        found = _decoded(again, number, view[extent.start : extent.stop])
        if not found.cast(columns.SCHEMA).equals(batch):
            raise BlockDamaged(path, f"row group {number} decodes to something other than was written")
    place.write(path, file)
    return written.info(len(file), sha256(file).digest())


def _encoded(
    path: str, origin: Origin, batches: Iterable[pa.RecordBatch], sealed_ms: int, full: list[pa.RecordBatch]
) -> tuple[bytes, Footer]:
    """Return the file's bytes, and its footer. `full` is given what its row groups hold."""
    sink = io.BytesIO()
    groups: list[GroupInfo] = []
    extents: list[GroupExtent] = []
    with pq.ParquetWriter(sink, columns.SCHEMA, **_OPTIONS) as writer:
        for batch in _full(batches):
            first, last = columns.id_at(batch, 0), columns.id_at(batch, batch.num_rows - 1)
            if not columns.is_in_order(batch) or (groups and first <= groups[-1].last):
                raise ValueError(f"entries of {path} are out of order, between {first} and {last}")
            chunk = columns.to_chunk(batch)
            start = sink.tell()
            writer.write_table(pa.Table.from_batches([batch]), row_group_size=batch.num_rows)
            stop = sink.tell()
            groups.append(GroupInfo(first, last, batch.num_rows, chunk.ends[-1]))
            proof = sha256(sink.getbuffer()[start:stop]).digest()
            extents.append(GroupExtent(start, stop, proof, sha256(chunk.value).digest()))
            full.append(batch)
        if not groups:
            raise ValueError(f"{path} would be a block without an entry")
        written = Footer(origin, path, sealed_ms, tuple(groups), tuple(extents))
        writer.add_key_value_metadata(written.words())
    return footer.sealed(sink.getvalue()), written


def _full(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the same rows, in batches that each fill a row group, unless the next row is too large for it."""
    held: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        for piece in _pieces(batch.select(columns.SCHEMA.names).cast(columns.SCHEMA)):
            if held and (rows + piece.num_rows > columns.GROUP_ROWS or size + piece.nbytes > columns.GROUP_BYTES):
                yield pa.concat_batches(held)
                held, rows, size = [], 0, 0
            held.append(piece)
            rows += piece.num_rows
            size += piece.nbytes
    if held:
        yield pa.concat_batches(held)


def _pieces(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Yield a batch, in pieces that each fit into a row group."""
    for start in range(0, batch.num_rows, columns.GROUP_ROWS):
        piece = batch.slice(start, columns.GROUP_ROWS)
        if piece.nbytes <= columns.GROUP_BYTES or piece.num_rows == 1:
            yield piece
        else:
            half = piece.num_rows // 2
            yield from _pieces(piece.slice(0, half))
            yield from _pieces(piece.slice(half))


def complete(place: Place, info: BlockInfo) -> BlockInfo:
    """Return a block with its row groups and the time when it was sealed: manifests and TOPIC.BLOCKS leave them out."""
    return footer.known(place, info).info(info.file_bytes, info.sha256)


def read_group(place: Place, info: BlockInfo, number: int) -> Chunk:
    """Return the entries of one row group, as a chunk without a key. In any thread."""
    known = footer.known(place, info)
    return _chunk_of(info.path, known, number, _read(place, info.path, known, number))


def read_batch(
    place: Place, info: BlockInfo, number: int, names: Sequence[str] = tuple(columns.SCHEMA.names)
) -> pa.RecordBatch:
    """Return the same entries as columns, or as some of them."""
    known = footer.known(place, info)
    return _batch_of(info.path, known, number, _read(place, info.path, known, number), names)


def prove(place: Place, info: BlockInfo) -> None:
    """Check that its bytes are those that were sealed; none of them is decoded. Raises BlockMissing, BlockDamaged,
    PlaceFailed."""
    size, digest = _size_and_digest(place, info.path)
    if size != info.file_bytes:
        raise BlockDamaged(info.path, f"it has {size} bytes and was written with {info.file_bytes}")
    if digest != info.sha256:
        raise BlockDamaged(info.path, "its sha256 is not that of what was written")


def verify(place: Place, info: BlockInfo) -> None:
    """Check that a block is whole, and the one that was sealed. Raises as reading does, and says what can be read."""
    size, digest = _size_and_digest(place, info.path)
    if (size, digest) == (info.file_bytes, info.sha256):
        _decode_all(place, info.path, footer.known(place, info))
        return
    found = footer.read(place, info.path)  # raises where even that cannot be read, or is no block
    if not found.is_of(info):
        raise ForeignBlock(info.path, f"this is block {found.path}, and not the one that was sealed here")
    if size != info.file_bytes:
        raise BlockDamaged(info.path, f"it has {size} bytes and was written with {info.file_bytes}")
    raise BlockDamaged(info.path, f"its sha256 is not that of what was written; {_readable(place, found)}")


def _size_and_digest(place: Place, path: str, stop: int | None = None) -> tuple[int, bytes]:
    """Return size and digest of a file, or of its first bytes."""
    digest = sha256()
    size = 0
    try:
        for piece in place.slices(path, stop):
            digest.update(piece)
            size += len(piece)
    except FileNotFoundError as failure:
        raise BlockMissing(path, "this block is not there") from failure
    return size, digest.digest()


def _decode_all(place: Place, path: str, known: Footer) -> None:
    for number in range(len(known.groups)):
        _chunk_of(path, known, number, _read(place, path, known, number), is_thorough=True)


def _readable(place: Place, found: Footer) -> str:
    """Return a text that says how much of a damaged block can still be read."""
    bad = []
    for number, group in enumerate(found.groups):
        try:
            _batch_of(found.path, found, number, _read(place, found.path, found, number))
        except BlockDamaged:
            bad.append(f"{number} ({id_text(group.first)} to {id_text(group.last)})")
    if len(bad) == len(found.groups):
        return "none of its row groups can be read"
    return f"row groups that cannot be read: {', '.join(bad)}" if bad else "all its entries can be read"


def info_of(place: Place, path: str) -> tuple[BlockInfo, Origin]:
    """Return the block in this file, from the file alone; all its entries are decoded and verified."""
    found = footer.read(place, path)
    if found.path != path:
        raise ForeignBlock(path, f"this is block {found.path}, under another name")
    info = found.info(*_size_and_digest(place, path))
    if _size_and_digest(place, path, info.file_bytes - found.size)[1] != found.body_sha256:
        raise BlockDamaged(path, f"its bytes are not those that were written; {_readable(place, found)}")
    _decode_all(place, path, found)
    return info, found.origin


# -- row groups: the bytes of a block that are read at once, proved, and decoded


def _read(place: Place, path: str, known: Footer, number: int) -> bytes:
    """Return a row group as it stands in the file."""
    start, stop = known.extents[number][:2]
    try:
        data = place.read(path, start, stop - start)
    except FileNotFoundError as failure:
        raise BlockMissing(path, "this block is not there") from failure
    if len(data) != stop - start:
        raise BlockDamaged(path, f"it ends at byte {start + len(data)}, and row group {number} does at {stop}")
    return data


def _chunk_of(path: str, known: Footer, number: int, data: bytes | memoryview, *, is_thorough: bool = False) -> Chunk:
    """Return its entries as a chunk without a key; thoroughly, they are verified once more when they are decoded."""
    chunk = columns.to_chunk(_batch_of(path, known, number, data, _OF_ENTRIES))
    if is_thorough and sha256(chunk.value).digest() != known.extents[number].entries_sha256:
        raise BlockDamaged(path, f"row group {number} is whole, but decodes to something other than was written")
    return chunk


def _batch_of(
    path: str,
    known: Footer,
    number: int,
    data: bytes | memoryview,
    names: Sequence[str] = tuple(columns.SCHEMA.names),
) -> pa.RecordBatch:
    """Return its entries as columns."""
    if sha256(data).digest() != known.extents[number].sha256:
        raise BlockDamaged(path, f"row group {number} has other bytes than were written")
    return _decoded(known, number, data, names)


def _decoded(
    known: Footer, number: int, data: bytes | memoryview, names: Sequence[str] = tuple(columns.SCHEMA.names)
) -> pa.RecordBatch:
    """Return the columns of a row group whose bytes are known to be those that were written."""
    source = pa.PythonFile(_Window(data, known.extents[number].start), mode="r")
    file = pq.ParquetFile(source, metadata=known.parquet, pre_buffer=False)
    table = file.read_row_group(number, columns=list(names), use_threads=False)
    (batch,) = table.combine_chunks().to_batches()
    return batch.select(list(names))


class _Window(io.RawIOBase):
    """A file of which only some bytes are here."""

    def __init__(self, data: bytes | memoryview, start: int) -> None:
        super().__init__()
        self._data = memoryview(data)
        self._start = start
        self._at = start

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = (0, self._at, self._start + len(self._data))[whence]
        self._at = base + offset
        return self._at

    def read(self, size: int = -1) -> bytes:
        begin = self._at - self._start
        end = len(self._data) if size < 0 else begin + size
        if not 0 <= begin <= end <= len(self._data):
            raise OSError(f"bytes {self._at} to {self._start + end} are not in this row group")
        self._at = self._start + end
        return bytes(self._data[begin:end])
