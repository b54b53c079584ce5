"""A block: an immutable Parquet file of a topic's old entries, in order. Anything that reads Parquet reads it.

Promises:
 - What is written is decoded again and compared, entry for entry, before it has its name.
 - What is read is what was written: each row group is held against a digest of its entries. Anything else raises, and
   names the file: BlockMissing, BlockDamaged, ForeignBlock; PlaceFailed says nothing about the block.
 - A row group is read by one request to its place, and decoded outside of the GIL but for little.

FORMAT.md ("Blocks") draws the file.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from rlite_pubsub.cold import columns, footer
from rlite_pubsub.cold.errors import BlockDamaged, BlockMissing, ForeignBlock
from rlite_pubsub.cold.footer import Footer, Origin
from rlite_pubsub.cold.place import Place
from rlite_pubsub.storage.chunks import Chunk
from rlite_pubsub.storage.cold_blocks import BlockInfo, GroupInfo

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
_OF_ENTRIES = ["ms", "seq", "fields"]


def write(
    place: Place, path: str, origin: Origin, batches: Iterable[pa.RecordBatch], sealed_ms: int
) -> BlockInfo:
    """Write the entries of these batches (columns.py's, in the order of their ids) as one block.

    Raises ValueError without any entry or where they are out of order; PlaceFailed."""
    sink = pa.BufferOutputStream()
    groups: list[GroupInfo] = []
    digests: list[bytes] = []
    with pq.ParquetWriter(sink, columns.SCHEMA, **_OPTIONS) as writer:
        for batch in _groups(batches):
            first, last = columns.id_at(batch, 0), columns.id_at(batch, batch.num_rows - 1)
            if not columns.is_in_order(batch) or (groups and first <= groups[-1].last):
                raise ValueError(f"entries of {path} are out of order, between {first} and {last}")
            chunk = columns.to_chunk(batch)
            groups.append(GroupInfo(first, last, batch.num_rows, _wire_bytes(chunk)))
            digests.append(sha256(chunk.value).digest())
            writer.write_table(pa.Table.from_batches([batch]), row_group_size=batch.num_rows)
        if not groups:
            raise ValueError(f"{path} would be a block without an entry")
        written = Footer(
            origin,
            path,
            groups[0].first,
            groups[-1].last,
            sum(group.count for group in groups),
            sum(group.wire_bytes for group in groups),
            sealed_ms,
            tuple(groups),
            tuple(digests),
            None,
        )
        writer.add_key_value_metadata(written.words())
    data = memoryview(sink.getvalue())
    info = written.info(len(data), sha256(data).digest())
    again = footer.parsed(data, path)
    for number in range(len(groups)):
        _chunk_of(again, number, path, data[slice(*_range(again, number, len(data), path))])
    place.write(path, data)
    return info


def _wire_bytes(chunk: Chunk) -> int:
    return chunk.ends[-1]


def _groups(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows, in batches that each fill a row group as far as the next one lets them."""
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
    """A batch, in pieces that each fit into a row group."""
    for start in range(0, batch.num_rows, columns.GROUP_ROWS):
        piece = batch.slice(start, columns.GROUP_ROWS)
        if piece.nbytes <= columns.GROUP_BYTES or piece.num_rows == 1:
            yield piece
        else:
            half = piece.num_rows // 2
            yield from _pieces(piece.slice(0, half))
            yield from _pieces(piece.slice(half))


def read_group(place: Place, info: BlockInfo, number: int) -> Chunk:
    """The entries of one row group, as a chunk without a key. In any thread."""
    known = footer.known(place, info)
    return _chunk_of(known, number, info.path, _bytes_of(place, info, known, number))


def read_batch(place: Place, info: BlockInfo, number: int) -> pa.RecordBatch:
    """The same entries as columns, proved by the checksums of Parquet's pages alone: `verify_file` proves the rest of a
    file in one go, and is cheaper for who reads all of it."""
    known = footer.known(place, info)
    return _decoded(known, number, info.path, _bytes_of(place, info, known, number), columns.SCHEMA.names)


def verify(place: Place, info: BlockInfo) -> None:
    """All of a block is there, and it is the one that was sealed. Raises as reading does, with all that is wrong."""
    try:
        verify_file(place, info)
    except BlockDamaged as failure:
        raise BlockDamaged(info.path, f"{failure.reason}; {_extent(place, info)}") from failure
    for number in range(len(info.groups)):
        read_group(place, info, number)


def verify_file(place: Place, info: BlockInfo) -> None:
    """The file has the bytes that were written: nothing is decoded."""
    digest = sha256()
    size = 0
    try:
        for piece in place.slices(info.path):
            digest.update(piece)
            size += len(piece)
    except FileNotFoundError as failure:
        raise BlockMissing(info.path, "this block is not there") from failure
    if digest.digest() == info.sha256:
        footer.known(place, info)
        return
    if size == info.file_bytes:
        raise BlockDamaged(info.path, "its sha256 is not the one of what was written")
    try:
        other = footer.read(place, info.path)
    except (BlockDamaged, ForeignBlock) as failure:
        if isinstance(failure, ForeignBlock):
            raise
        raise BlockDamaged(info.path, f"it has {size} bytes and was written with {info.file_bytes}") from failure
    if other.is_of(info):
        raise BlockDamaged(info.path, f"it has {size} bytes and was written with {info.file_bytes}")
    raise ForeignBlock(info.path, f"this is block {other.path}, and not the one that was sealed here")


def _extent(place: Place, info: BlockInfo) -> str:
    """Which row groups of a damaged block can still be read."""
    bad = []
    for number, group in enumerate(info.groups):
        try:
            read_group(place, info, number)
        except ForeignBlock:
            raise
        except (BlockDamaged, BlockMissing):
            bad.append(f"{number} ({footer.id_text(group.first)} to {footer.id_text(group.last)})")
    if len(bad) == len(info.groups):
        return "none of its row groups can be read"
    return f"row groups that cannot be read: {', '.join(bad)}" if bad else "all its entries can be read"


def info_of(place: Place, path: str) -> tuple[BlockInfo, Origin]:
    """What is known of the block in this file, by itself alone; all its entries are decoded and proved."""
    found = footer.read(place, path)
    if found.path != path:
        raise ForeignBlock(path, f"this is block {found.path}, under another name")
    digest = sha256()
    size = 0
    for piece in place.slices(path):
        digest.update(piece)
        size += len(piece)
    info = found.info(size, digest.digest())
    for number in range(len(info.groups)):
        _chunk_of(found, number, path, _bytes_of(place, info, found, number))
    return info, found.origin


def _bytes_of(place: Place, info: BlockInfo, known: Footer, number: int) -> bytes:
    """A row group as it stands in the file."""
    start, stop = _range(known, number, info.file_bytes, info.path)
    try:
        data = place.read(info.path, start, stop - start)
    except FileNotFoundError as failure:
        raise BlockMissing(info.path, "this block is not there") from failure
    if len(data) != stop - start:
        raise BlockDamaged(info.path, f"it ends at byte {start + len(data)}, and row group {number} does at {stop}")
    return data


def _range(known: Footer, number: int, file_bytes: int, path: str) -> tuple[int, int]:
    """Where a row group begins and ends in the file."""
    try:
        group = known.parquet.row_group(number)
        chunks = [group.column(place) for place in range(group.num_columns)]
        start = min(_begin(chunk) for chunk in chunks)
        stop = max(_begin(chunk) + chunk.total_compressed_size for chunk in chunks)
    except Exception as failure:  # whatever Arrow makes of metadata that are not what was written
        raise BlockDamaged(path, f"it has no row group {number} ({failure})") from failure
    if not 0 < start < stop <= file_bytes:
        raise BlockDamaged(path, f"row group {number} cannot be from byte {start} to {stop}")
    return start, stop


def _begin(chunk: Any) -> int:
    return int(chunk.dictionary_page_offset if chunk.has_dictionary_page else chunk.data_page_offset)


def _chunk_of(known: Footer, number: int, path: str, data: bytes | memoryview) -> Chunk:
    """A row group's entries, proved."""
    batch = _decoded(known, number, path, data, _OF_ENTRIES)
    try:
        chunk = columns.to_chunk(batch)
    except Exception as failure:  # columns of other lengths, or of nonsense
        raise BlockDamaged(path, f"row group {number} has no entries ({failure})") from failure
    if sha256(chunk.value).digest() != known.digests[number]:
        raise BlockDamaged(path, f"row group {number} has other entries than were written")
    return chunk


def _decoded(known: Footer, number: int, path: str, data: bytes | memoryview, names: list[str]) -> pa.RecordBatch:
    window = _Window(data, _range(known, number, 1 << 62, path)[0])
    try:
        file = pq.ParquetFile(
            pa.PythonFile(window, mode="r"),
            metadata=known.parquet,
            pre_buffer=False,
            page_checksum_verification=True,
        )
        table = file.read_row_group(number, columns=names, use_threads=False)
        (batch,) = table.combine_chunks().to_batches()
        return batch.select(names)
    except Exception as failure:  # whatever Arrow makes of bytes that are not what was written
        reason = " ".join(str(failure).split())
        raise BlockDamaged(path, f"row group {number} cannot be read ({reason})") from failure


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
