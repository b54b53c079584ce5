"""An RDB file, as SAVE writes it and as a replica is sent it: what stands around the keys.

    REDIS and a version of four digits, or VALKEY and one of three
    fa: strings name and value           something about the file
    f5, f6: a library of functions       functions.py
    fe: a length                         the number of the database whose keys follow
    fb: two lengths                      how many keys that has, and how many of these expire
    fc: time u64 in ms | fd: u32 in s    the next key expires then
    f8: a length | f9: u8                the next key was not used for so many seconds | has this frequency (maxmemory)
    f4: three lengths                    of a cluster's slot: how many keys
    f7: a module's data                  passed over
    a type u8, a string, a value         a key, its name, and what DUMP packs (envelope.py)
    ff | CRC-64 of all before it u64     the end; a sum of 0: there is none

Times and sums are little-endian. A file may be larger than memory; a single value may not, but for a stream that is
written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from struct import Struct
from typing import Generic, TypeAlias, TypeVar

from rlite_pubsub.protocol.rdb import envelope
from rlite_pubsub.protocol.rdb.crc64 import RunningSum
from rlite_pubsub.protocol.rdb.envelope import MAX_UNPACKED_BYTES, PayloadReader
from rlite_pubsub.protocol.rdb.functions import FUNCTION_2, read_library
from rlite_pubsub.protocol.rdb.malformed import Malformed

T = TypeVar("T")

_AUX, _SIZES, _EXPIRES_MS, _DATABASE, _END = 0xFA, 0xFB, 0xFC, 0xFE, 0xFF
STREAM_DATABASE = b"repl-stream-db"
"""Of `Aux`: the database that the stream behind this file has selected."""
_MODULE, _MODULE_2 = 6, 7
_HEAD_BYTES = 9
_AT_ONCE_BYTES = 1 << 20
_HEAD = re.compile(rb"REDIS([0-9]{4})|VALKEY([0-9]{3})")
_LATEST_OF_REDIS = 13
_LATEST_OF_VALKEY = 80
_FIRST_WITH_SUM = 5
_SUM = Struct("<Q")
_SECONDS = Struct("<I")
_MILLISECONDS = Struct("<q")
_MODULE_END, _MODULE_SIGNED, _MODULE_UNSIGNED, _MODULE_FLOAT, _MODULE_DOUBLE, _MODULE_STRING = range(6)


@dataclass(frozen=True, slots=True)
class Aux:
    """A fact about the file."""

    name: bytes
    value: bytes


@dataclass(frozen=True, slots=True)
class FunctionLibrary:
    """A library of functions."""

    code: bytes


@dataclass(frozen=True, slots=True)
class DatabaseSizes:
    """The number of keys of a database, and of those that expire."""

    database: int
    keys: int
    expiring: int


@dataclass(frozen=True, slots=True)
class Key(Generic[T]):
    """A key."""

    database: int
    name: bytes
    expires_ms: int
    """0: never."""
    idle_s: int | None
    frequency: int | None
    value: T | None
    """None: a module's, which is passed over."""


Item: TypeAlias = Aux | FunctionLibrary | DatabaseSizes | Key[T]


class StreamReader(PayloadReader):
    """Reads values out of a file, as it comes, and sums it up. Nothing is read from beyond the end of what is asked."""

    __slots__ = ("_read", "_sum", "taken")

    def __init__(self, read: Callable[[int], bytes]) -> None:
        """`read` answers so many bytes, and fewer only at the end."""
        super().__init__(b"")
        self._read = read
        self._sum = RunningSum()
        self.taken = 0
        """How many bytes were read."""

    def begin_value(self) -> None:
        """The next value may unpack to as much as any."""
        self._left = MAX_UNPACKED_BYTES

    def take(self, size: int) -> bytes:
        taken = self._read(size) if size <= _AT_ONCE_BYTES else self._take_long(size)
        if len(taken) < size:
            raise Malformed("a file that ends too early")
        self.taken += size
        self._sum.add(taken)
        return taken

    def _take_long(self, size: int) -> bytes:
        """Only what is there takes memory, whatever the file says that there is."""
        if size > MAX_UNPACKED_BYTES:
            raise Malformed(f"a file with a string of {size} bytes")
        pieces: list[bytes] = []
        while size:
            piece = self._read(min(size, _AT_ONCE_BYTES))
            if not piece:
                break
            pieces.append(piece)
            size -= len(piece)
        return b"".join(pieces)

    def take_sum(self) -> int:
        """Return the sum that stands behind all that was read, 0 if it is right or not given."""
        summed = self._sum.value()
        given: int = _SUM.unpack(self.take(_SUM.size))[0]
        return given and given ^ summed


# -- reading


def read_file(
    reader: StreamReader, read_value: Callable[[int, PayloadReader], T], databases: int
) -> Iterator[Item[T]]:
    """Yield the contents of the file; `read_value` is called with a value's type. Keys of other databases than the
    first so many are refused. Raises Malformed."""
    version = _read_head(reader)
    database = 0
    expires_ms, idle_s, frequency = 0, None, None
    while True:
        kind = reader.byte()
        match kind:
            case 0xFC:
                expires_ms = reader.milliseconds()
            case 0xFD:
                expires_ms = _SECONDS.unpack(reader.take(_SECONDS.size))[0] * 1000
            case 0xF8:
                idle_s = reader.length()
            case 0xF9:
                frequency = reader.byte()
            case 0xFE:
                database = reader.length()
                if database >= databases:
                    raise Malformed(f"a file with keys of database {database}, and there are {databases} (databases)")
            case 0xFB:
                yield DatabaseSizes(database, reader.length(), reader.length())
            case 0xFA:
                yield Aux(reader.string(), reader.string())
            case 0xF5 | 0xF6:
                reader.begin_value()
                yield FunctionLibrary(read_library(kind, reader))
            case 0xF4:
                for _ in range(3):
                    reader.length()
            case 0xF7:
                _pass_over_module(reader)
            case 0xFF:
                break
            case _ if kind > 0xF0:
                raise Malformed(f"a file of a newer kind: it has something marked with {kind}")
            case _:
                reader.begin_value()
                name = reader.string()
                value = None
                if kind == _MODULE:
                    raise Malformed("a key of a module, in a form that nobody can read without the module")
                if kind == _MODULE_2:
                    _pass_over_module(reader)
                else:
                    value = read_value(kind, reader)
                yield Key(database, name, expires_ms, idle_s, frequency, value)
                expires_ms, idle_s, frequency = 0, None, None
    if version >= _FIRST_WITH_SUM and reader.take_sum():
        raise Malformed("a file whose checksum is wrong: it is damaged")


def _read_head(reader: StreamReader) -> int:
    head = reader.take(_HEAD_BYTES)
    match = _HEAD.fullmatch(head)
    if match is None:
        raise Malformed("a file that is not an RDB file")
    version = int(match[1] or match[2])
    if not 1 <= version <= (_LATEST_OF_REDIS if match[1] else _LATEST_OF_VALKEY):
        raise Malformed(f"a file of version {version}, which is not known here")
    return version


def _pass_over_module(reader: StreamReader) -> None:
    """Skip what a module has written, after its number; it says where it ends."""
    reader.length()
    while (kind := reader.length()) != _MODULE_END:
        if kind in (_MODULE_SIGNED, _MODULE_UNSIGNED):
            reader.length()
        elif kind == _MODULE_FLOAT:
            reader.take(4)
        elif kind == _MODULE_DOUBLE:
            reader.take(8)
        elif kind == _MODULE_STRING:
            reader.begin_value()
            reader.string()
        else:
            raise Malformed("a module's data of an unknown kind")


# -- writing


class FileWriter:
    """Writes a file, from `begin` to `end`."""

    def __init__(self, write: Callable[[bytes], object], version: int = envelope.VERSION) -> None:
        self._write = write
        self._version = version
        self._sum = RunningSum()

    def _put(self, data: bytes) -> None:
        self._sum.add(data)
        self._write(data)

    def begin(self, about: Mapping[bytes, bytes]) -> None:
        """Write the header, with some facts about the file."""
        self._put(b"REDIS%04d" % self._version)
        for name, value in about.items():
            self._put(bytes((_AUX,)) + envelope.string(name) + envelope.string(value))

    def library(self, code: bytes) -> None:
        """A library of functions."""
        self._put(bytes((FUNCTION_2,)) + envelope.string(code))

    def database(self, number: int, keys: int, expiring: int) -> None:
        """The keys that follow are this database's."""
        self._put(bytes((_DATABASE,)) + envelope.length(number))
        self._put(bytes((_SIZES,)) + envelope.length(keys) + envelope.length(expiring))

    def key(self, name: bytes, expires_ms: int, packed: Iterable[bytes]) -> None:
        """A key; `packed` is its type and its value, in pieces of which the first begins with the type."""
        pieces = iter(packed)
        first = next(pieces)
        head = bytes((_EXPIRES_MS,)) + _MILLISECONDS.pack(expires_ms) if expires_ms else b""
        self._put(head + first[:1] + envelope.string(name) + first[1:])
        for piece in pieces:
            self._put(piece)

    def end(self) -> None:
        """Write the end of the file."""
        self._put(bytes((_END,)))
        self._write(_SUM.pack(self._sum.value()))

