"""The window without a compiler: the same files, by `mmap`, `struct` and a dict.

It reads every record that others have committed since it last looked, and keeps each key's rows in a dict; it never
touches the slots of the shared index. So a process that reads by them (core.h) searches what this one has written
record by record, until the next compiled writer has put it into the index.

Words that others read are stored whole, behind a lock that is released: CPython's own lock is the fence where the
processor needs one.
"""

from __future__ import annotations

import mmap
import os
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator
from struct import Struct
from threading import Lock
from typing import Final, Literal, TypeAlias
from zlib import crc32

INDEX_MAGIC: Final = b"RLITEIDX"
INDEX_HEAD: Final = Struct("<8sIIQQQ16sQ")
"""Magic, format, nothing, number, the log's first commit, slots, seed, how large the log may become."""
LOG_HEAD_BYTES: Final = 64
INDEX_HEAD_BYTES: Final = 4096
MOST_KEY_BYTES: Final = 511
_RECORD: Final = Struct("<IIQQII")
_ROW: Final = Struct("<IIHH")
_PLACE: Final = Struct("<QQ")
_CHECKED_FROM: Final = 8
_UNIT: Final = 8
_REMOVED: Final = 0xFFFFFFFF
_MOST_COMMITS: Final = 0xFFFFFFFF
_MOST_RECORD_BYTES: Final = 0xFFFFFFF8
_TIP, _PENDING, _NEXT, _HOME, _SYNCED, _GROWN = (byte // 8 for byte in (64, 128, 144, 160, 192, 200))
_WORD_BITS: Final = 64
_LARGE_ROW_BYTES: Final = 2000
_PAGE_BYTES: Final = 4096
_IN_PAGE_BYTES: Final = 4080


Record: TypeAlias = tuple[int, int, int, list[tuple[bytes, int]]]


class PlainWindow:
    """See window.py."""

    def __init__(self, log_fd: int, index_fd: int) -> None:
        head = os.pread(index_fd, INDEX_HEAD_BYTES, 0)
        if len(head) < INDEX_HEAD_BYTES or not head.startswith(INDEX_MAGIC):
            raise ValueError("this is no index of a window")
        _, _, _, self.number, _, _, _, self._log_bytes = INDEX_HEAD.unpack_from(head)
        self._log_fd = log_fd
        self._index = mmap.mmap(index_fd, INDEX_HEAD_BYTES)
        self._words = memoryview(self._index).cast("Q")
        self._fence = Lock()
        self.rows: dict[bytes, list[int]] = {}
        """The places of each key's rows, oldest first."""
        self.order: list[bytes] = []
        """Each key, as it came first."""
        self._read_to = LOG_HEAD_BYTES
        self.users = 0

    # -- reading

    @property
    def tip(self) -> int:
        return self._words[_TIP]

    def get(self, snapshot: int, key: bytes, /) -> bytes | Literal[False] | None:
        end = self.look(snapshot)
        for row in reversed(self.rows.get(key, ())):
            if row < end:
                value = self.value(row)
                return False if value is None else value
        return None

    def changed(self, since: int, until: int, /) -> list[bytes]:
        return [key for _, _, _, rows in self._between(since, until) for key, _ in rows]

    def records(self, since: int, until: int, /) -> list[tuple[int, int, list[tuple[bytes, bytes | None]]]]:
        return [
            (commit, time_ms, [(key, self.value(row)) for key, row in rows])
            for _, commit, time_ms, rows in self._between(since, until)
        ]

    # -- writing, under the store's writer lock

    def append(self, rows: dict[bytes, bytes | None], commit: int, time_ms: int, /) -> bool:
        if not self.is_whole():
            raise RuntimeError("the window must be repaired first")
        tip = self.tip
        end = self.look(tip)
        parts = [b""]
        for key, value in rows.items():
            if not 0 < len(key) <= MOST_KEY_BYTES:
                raise ValueError(f"a key has 1 to {MOST_KEY_BYTES} bytes, not {len(key)}")
            places = self.rows.get(key)
            previous = places[-1] // _UNIT if places else 0
            row = _ROW.pack(previous, _REMOVED if value is None else len(value), len(key), 0) + key + (value or b"")
            parts.append(row.ljust(_padded(len(row)), b"\0"))
        size = _RECORD.size + sum(map(len, parts))
        if size > self._log_bytes - end or size > _MOST_RECORD_BYTES or tip >> 32 == _MOST_COMMITS:
            return False
        parts[0] = _RECORD.pack(size, 0, commit, time_ms, len(rows), 0)
        record = b"".join(parts)
        checked = record[_CHECKED_FROM:]
        record = record[:4] + crc32(checked, self._place_sum(end)).to_bytes(4, "little") + checked
        self._put(_PENDING, end + size)
        try:
            self._write(record, end)
        except OSError:
            self._cut_off(end)
            raise
        self._put(_TIP, (tip >> 32) + 1 << 32 | (end + size) // _UNIT)
        self.grown += self._grown_by(self._between(tip, self.tip))
        return True

    def is_whole(self) -> bool:
        return self._words[_PENDING] == _end(self.tip)

    def repair(self) -> None:
        file_bytes = os.fstat(self._log_fd).st_size
        tip = self.tip
        end, commits = _end(tip), tip >> 32
        while commits < _MOST_COMMITS and (following := self._whole_record(end, min(file_bytes, self._log_bytes))):
            end, commits = following, commits + 1
        if end < file_bytes or self._words[_PENDING] != end:
            self._cut_off(end)
        self._put(_TIP, commits << 32 | end // _UNIT)
        self.grown += self._grown_by(self._between(tip, self.tip))

    # -- words that all processes share

    @property
    def next(self) -> int:
        return self._words[_NEXT]

    @next.setter
    def next(self, number: int) -> None:
        self._put(_NEXT, number)

    @property
    def home(self) -> int:
        return self._words[_HOME]

    @home.setter
    def home(self, is_home: int) -> None:
        self._put(_HOME, is_home)

    @property
    def synced(self) -> int:
        return self._words[_SYNCED]

    @synced.setter
    def synced(self, end: int) -> None:
        self._put(_SYNCED, end)

    @property
    def grown(self) -> int:
        word = self._words[_GROWN]
        return word - (word >> _WORD_BITS - 1 << _WORD_BITS)

    @grown.setter
    def grown(self, size: int) -> None:
        self._put(_GROWN, size % (1 << _WORD_BITS))

    def close(self) -> None:
        if self.users:
            raise BufferError("the window is in use")
        self._words.release()
        self._index.close()

    # -- within

    def look(self, snapshot: int) -> int:
        """Read the records up to the snapshot; return its end."""
        end = _end(snapshot)
        if end < LOG_HEAD_BYTES or end > _end(self.tip):
            raise ValueError("this snapshot is of another window")
        for at, _, _, rows in self._read(self._read_to, end):
            for key, row in rows:
                places = self.rows.get(key)
                if places is None:
                    self.rows[key] = [row]
                    self.order.append(key)
                else:
                    places.append(row)
            self._read_to = at
        return end

    def _between(self, since: int, until: int) -> Iterator[Record]:
        begin = _end(since) if since else LOG_HEAD_BYTES
        return self._read(begin, self.look(until))

    def _read(self, at: int, end: int) -> Iterator[Record]:
        """Yield the records between two places: behind it, its commit, its time, each row's key and place."""
        while at < end:
            size, _, commit, time_ms, count, _ = _RECORD.unpack(os.pread(self._log_fd, _RECORD.size, at))
            record = os.pread(self._log_fd, size, at)
            rows = list[tuple[bytes, int]]()
            row = _RECORD.size
            for _ in range(count):
                _, value_bytes, key_bytes, _ = _ROW.unpack_from(record, row)
                begin = row + _ROW.size
                rows.append((record[begin : begin + key_bytes], at + row))
                row += _padded(_ROW.size + key_bytes + (0 if value_bytes == _REMOVED else value_bytes))
            at += size
            yield at, commit, time_ms, rows

    def value(self, row: int) -> bytes | None:
        """Return the value of the row at this place; None if it says that the key was removed."""
        _, value_bytes, key_bytes, _ = _ROW.unpack(os.pread(self._log_fd, _ROW.size, row))
        return None if value_bytes == _REMOVED else os.pread(self._log_fd, value_bytes, row + _ROW.size + key_bytes)

    def _grown_by(self, records: Iterator[Record]) -> int:
        """Return how much more the rows of these records take than those of the same keys before."""
        grown = 0
        for _, _, _, rows in records:
            for _, row in rows:
                previous, value_bytes, key_bytes, _ = _ROW.unpack(os.pread(self._log_fd, _ROW.size, row))
                grown += taken_by(key_bytes, value_bytes)
                if previous:
                    _, value_bytes, key_bytes, _ = _ROW.unpack(os.pread(self._log_fd, _ROW.size, previous * _UNIT))
                    grown -= taken_by(key_bytes, value_bytes)
        return grown

    def _whole_record(self, at: int, limit: int) -> int:
        """Return the end of the record at this place; 0 if there is no whole one below the limit."""
        if at + _RECORD.size > limit:
            return 0
        size, mark, _, _, _, _ = _RECORD.unpack(os.pread(self._log_fd, _RECORD.size, at))
        if size < _RECORD.size or size % _UNIT or size > limit - at:
            return 0
        checked = os.pread(self._log_fd, size - _CHECKED_FROM, at + _CHECKED_FROM)
        return at + size if crc32(checked, self._place_sum(at)) == mark else 0

    def _place_sum(self, at: int) -> int:
        return crc32(_PLACE.pack(self.number, at))

    def _write(self, record: bytes, at: int) -> None:
        rest = memoryview(record)
        while rest:
            written = os.pwrite(self._log_fd, rest, at)
            rest, at = rest[written:], at + written

    def _cut_off(self, end: int) -> None:
        os.ftruncate(self._log_fd, end)
        self._put(_PENDING, end)

    def _put(self, word: int, value: int) -> None:
        with self._fence:
            self._words[word] = value


class PlainView:
    """See window.py."""

    def __init__(self, window: PlainWindow, database: int = -1) -> None:
        self._window = window
        self._database = database
        self._keys: list[bytes] = []
        self._known = 0  # how many of the window's keys have been looked at
        self._is_open = True
        window.users += 1

    def at_or_after(self, snapshot: int, key: bytes, /) -> bytes | None:
        return self._next(snapshot, bisect_left(self._look(snapshot), key))

    def after(self, snapshot: int, key: bytes, /) -> bytes | None:
        return self._next(snapshot, bisect_right(self._look(snapshot), key))

    def before(self, snapshot: int, key: bytes | None, /) -> bytes | None:
        keys = self._look(snapshot)
        return self._previous(snapshot, len(keys) if key is None else bisect_left(keys, key))

    def at_or_before(self, snapshot: int, key: bytes, /) -> bytes | None:
        return self._previous(snapshot, bisect_right(self._look(snapshot), key))

    def slice(self, snapshot: int, place: int, most_bytes: int, /) -> tuple[list[tuple[bytes, bytes | None]], int]:
        keys = self._look(snapshot)
        rows = list[tuple[bytes, bytes | None]]()
        size = 0
        while place < len(keys) and size < most_bytes:
            key = keys[place]
            place += 1
            value = self._window.get(snapshot, key)
            if value is not None:
                rows.append((key, None if value is False else value))
                size += _padded(_ROW.size + len(key) + len(value or b""))
        return rows, place if place < len(keys) else -1

    def close(self) -> None:
        if self._is_open:
            self._is_open = False
            self._window.users -= 1

    def _look(self, snapshot: int) -> list[bytes]:
        if not self._is_open:
            raise ValueError("the view is closed")
        self._window.look(snapshot)
        order = self._window.order
        if len(order) > self._known:
            fresh = [key for key in order[self._known :] if self._database in (-1, key[0])]
            self._known = len(order)
            if len(fresh) < len(self._keys):
                for key in fresh:
                    insort(self._keys, key)
            else:
                self._keys = sorted(self._keys + fresh)
        return self._keys

    def _next(self, snapshot: int, at: int) -> bytes | None:
        end = _end(snapshot)
        return next((key for key in self._keys[at:] if self._window.rows[key][0] < end), None)

    def _previous(self, snapshot: int, at: int) -> bytes | None:
        end = _end(snapshot)
        return next((key for key in self._keys[:at][::-1] if self._window.rows[key][0] < end), None)


def taken_by(key_bytes: int, value_bytes: int) -> int:
    """Return about what a row takes of LMDB: a place in a page that is three quarters full, or pages of its own."""
    if value_bytes == _REMOVED:
        return 0
    size = 10 + key_bytes + value_bytes
    if size > _LARGE_ROW_BYTES:
        return 10 + key_bytes + (value_bytes + 16 + _PAGE_BYTES - 1) // _PAGE_BYTES * _PAGE_BYTES
    return _PAGE_BYTES // (_IN_PAGE_BYTES // size) * 4 // 3


def _end(snapshot: int) -> int:
    return snapshot % (1 << 32) * _UNIT


def _padded(size: int) -> int:
    return (size + _UNIT - 1) // _UNIT * _UNIT
