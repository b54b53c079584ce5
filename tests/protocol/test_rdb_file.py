"""RDB files: what is written is read, what is damaged is refused, and what nobody here needs is passed over."""

from __future__ import annotations

import io
from collections.abc import Callable

import pytest

from rlite_pubsub.protocol.rdb import envelope
from rlite_pubsub.protocol.rdb.crc64 import RunningSum, crc64
from rlite_pubsub.protocol.rdb.envelope import PayloadReader
from rlite_pubsub.protocol.rdb.file import (
    Aux,
    DatabaseSizes,
    FileWriter,
    FunctionLibrary,
    Item,
    Key,
    StreamReader,
    read_file,
)
from rlite_pubsub.protocol.rdb.malformed import Malformed


def _value(kind: int, reader: PayloadReader) -> tuple[int, bytes]:
    return kind, reader.string()


def read(data: bytes) -> list[Item[tuple[int, bytes]]]:
    return list(read_file(StreamReader(io.BytesIO(data).read), _value, 16))


def written(fill: Callable[[FileWriter], None]) -> bytes:
    file = io.BytesIO()
    writer = FileWriter(file.write)
    writer.begin({b"redis-ver": b"7.0.15"})
    fill(writer)
    writer.end()
    return file.getvalue()


def _two_keys(writer: FileWriter) -> None:
    writer.library(b"#!lua name=l\n")
    writer.database(3, 2, 1)
    writer.key(b"one", 0, [b"\x00", envelope.string(b"value")])
    writer.key(b"two", 1_700_000_000_123, [b"\x00" + envelope.string(b"7")])


def sealed(body: bytes, head: bytes = b"REDIS0010") -> bytes:
    data = head + body + b"\xff"
    return data + crc64(data).to_bytes(8, "little")


def test_what_is_written_is_read() -> None:
    assert read(written(_two_keys)) == [
        Aux(b"redis-ver", b"7.0.15"),
        FunctionLibrary(b"#!lua name=l\n"),
        DatabaseSizes(3, 2, 1),
        Key(3, b"one", 0, None, None, (0, b"value")),
        Key(3, b"two", 1_700_000_000_123, None, None, (0, b"7")),
    ]


def test_times_in_seconds_idle_times_and_frequencies_are_the_next_key_s_alone() -> None:
    body = b"\xfd\x10\x00\x00\x00\xf8\x05\x00\x01a\x01x" + b"\xf9\x07\x00\x01b\x01y" + b"\x00\x01c\x01z"
    assert read(sealed(body)) == [
        Key(0, b"a", 16_000, 5, None, (0, b"x")),
        Key(0, b"b", 0, None, 7, (0, b"y")),
        Key(0, b"c", 0, None, None, (0, b"z")),
    ]


def test_what_modules_have_written_is_passed_over() -> None:
    module = b"\x81" + bytes(8)
    data = b"\x02\x05\x01\x05\x03" + bytes(4) + b"\x04" + bytes(8) + b"\x05\x03abc\x00"
    body = b"\xf7" + module + data + b"\x07\x01m" + module + data + b"\xf4\x01\x02\x03" + b"\x00\x01a\x01x"
    assert read(sealed(body)) == [Key(0, b"m", 0, None, None, None), Key(0, b"a", 0, None, None, (0, b"x"))]


@pytest.mark.parametrize("head", [b"REDIS0013", b"VALKEY080"])
def test_files_of_later_redis_and_of_valkey_are_read(head: bytes) -> None:
    assert read(sealed(b"\x00\x01a\x01x", head)) == [Key(0, b"a", 0, None, None, (0, b"x"))]


def test_a_file_without_a_sum_is_believed() -> None:
    assert read(b"REDIS0010\x00\x01a\x01x\xff" + bytes(8)) == [Key(0, b"a", 0, None, None, (0, b"x"))]
    assert read(b"REDIS0004\x00\x01a\x01x\xff") == [Key(0, b"a", 0, None, None, (0, b"x"))]


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "too early"),
        (b"*1\r\n$4\r\nPI", "not an RDB file"),
        (sealed(b"", b"REDIS0099"), "version 99"),
        (sealed(b"\xf3"), "newer kind"),
        (sealed(b"\x06\x01m"), "module"),
        (sealed(b"\x00\x01a\x01x")[:-1], "too early"),
        (sealed(b"\x00\x01a\x01x")[:-1] + b"\x00", "damaged"),
    ],
)
def test_what_cannot_be_read_is_said(data: bytes, why: str) -> None:
    with pytest.raises(Malformed, match=why):
        read(data)


def test_every_changed_byte_is_noticed() -> None:
    data = written(_two_keys)
    for place in range(len(data)):
        with pytest.raises(Malformed):
            read(data[:place] + bytes((data[place] ^ 0x10,)) + data[place + 1 :])


@pytest.mark.parametrize("size", [1, 7, 8, 100, 300_000])
def test_a_sum_of_pieces_is_that_of_the_whole(size: int) -> None:
    data = bytes(range(256)) * 2500
    running = RunningSum()
    for place in range(0, len(data) if size > 8 else 2000, size):
        running.add(data[place : place + size])
    summed = data if size > 8 else data[: -(-2000 // size) * size]
    assert running.value() == crc64(summed)
