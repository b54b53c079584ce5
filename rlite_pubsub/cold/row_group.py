"""A row group: the bytes of a block that are read at once, proved, and decoded."""

from __future__ import annotations

import io
from collections.abc import Sequence
from hashlib import sha256

import pyarrow as pa
import pyarrow.parquet as pq

from rlite_pubsub.cold import columns
from rlite_pubsub.cold.errors import BlockDamaged, BlockMissing
from rlite_pubsub.cold.footer import Footer
from rlite_pubsub.cold.place import Place
from rlite_pubsub.storage.topics.chunks import Chunk

_OF_ENTRIES = ("ms", "seq", "fields")


def read(place: Place, path: str, footer: Footer, number: int) -> bytes:
    """It as it stands in the file."""
    start, stop = footer.extents[number][:2]
    try:
        data = place.read(path, start, stop - start)
    except FileNotFoundError as failure:
        raise BlockMissing(path, "this block is not there") from failure
    if len(data) != stop - start:
        raise BlockDamaged(path, f"it ends at byte {start + len(data)}, and row group {number} does at {stop}")
    return data


def chunk_of(path: str, footer: Footer, number: int, data: bytes | memoryview, *, is_thorough: bool = False) -> Chunk:
    """Its entries, as a chunk without a key; thoroughly, they are proved once more when they are decoded."""
    chunk = columns.to_chunk(batch_of(path, footer, number, data, _OF_ENTRIES))
    if is_thorough and sha256(chunk.value).digest() != footer.extents[number].entries_sha256:
        raise BlockDamaged(path, f"row group {number} is whole, and decoded otherwise than when it was written")
    return chunk


def batch_of(
    path: str,
    footer: Footer,
    number: int,
    data: bytes | memoryview,
    names: Sequence[str] = tuple(columns.SCHEMA.names),
) -> pa.RecordBatch:
    """Its entries, as columns."""
    if sha256(data).digest() != footer.extents[number].sha256:
        raise BlockDamaged(path, f"row group {number} has other bytes than were written")
    return decoded(footer, number, data, names)


def decoded(
    footer: Footer, number: int, data: bytes | memoryview, names: Sequence[str] = tuple(columns.SCHEMA.names)
) -> pa.RecordBatch:
    """The columns of a row group whose bytes are known to be those that were written."""
    source = pa.PythonFile(_Window(data, footer.extents[number].start), mode="r")
    file = pq.ParquetFile(source, metadata=footer.parquet, pre_buffer=False)
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
