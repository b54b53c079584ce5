"""Topics, strings and keys, byte by byte: what is refused is refused in Redis's words, and in Redis's order.

The requests are in cases/.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from compat_tests.servers import SocketServer
from compat_tests.topic_replies import alike
from compat_tests.transcript import frames
from compat_tests.wire import bulk, request

FILES = ("topics", "keys")
NAMES = [b"", b"\0", b"a\r\nb", b"\xff" * 511, b"n" * 512, b"n" * 70_000]
FIELDS = [b"%d" % number for number in range(20_000)]
IDS = [b"1-%d" % number for number in range(1, 150_001)]
"""More than a megabyte."""


def _cases(file: str) -> dict[str, list[str]]:
    """By name: the requests of a case, those before each of them included."""
    text = (Path(__file__).parent / "cases" / f"{file}.txt").read_text()
    blocks = [block.splitlines() for block in text.split("\n== ")[1:]]
    before = [line for line in blocks[0][1:] if line]
    return {block[0]: before + [line for line in block[1:] if line] for block in blocks[1:]}


CASES = {f"{file}: {name}": requests for file in FILES for name, requests in _cases(file).items()}


def _answers(server: SocketServer, protocol: int, requests: list[str]) -> list[bytes]:
    with server.wire(protocol) as wire:
        wire.send("".join([line + "\r\n" for line in requests]).encode())
        return [wire.read() for _ in requests]


@pytest.mark.parametrize("case", CASES)
def test_request_gets_the_answer_of_redis(ours: SocketServer, theirs: SocketServer, protocol: int, case: str) -> None:
    requests = CASES[case]
    told = [_answers(server, protocol, requests) for server in (ours, theirs)]
    for line, mine, yours in zip(requests, *told, strict=True):
        assert alike(frames(mine), frames(yours)), f"{line}: {mine!r} is not {yours!r}"


@pytest.mark.parametrize("name", NAMES, ids=["empty", "NUL", "newline", "511", "512", "70000"])
def test_names_of_any_bytes_and_any_length_are_taken(server: SocketServer, protocol: int, name: bytes) -> None:
    with server.wire(protocol) as wire:
        assert wire.ask(b"XGROUP", b"CREATE", name, name, b"0", b"MKSTREAM") == b"+OK\r\n"
        assert wire.ask(b"XADD", name, b"1-1", name, name) == bulk(b"1-1")
        assert wire.ask(b"XREADGROUP", b"GROUP", name, name, b"STREAMS", name, b">").count(bulk(name)) == 3
        assert wire.ask(b"XPENDING", name, name).count(bulk(name)) == 1
        assert wire.ask(b"XACK", name, name, b"1-1") == b":1\r\n"
        assert bulk(name) in wire.ask(b"XINFO", b"CONSUMERS", name, name)
        assert wire.ask(b"XGROUP", b"DELCONSUMER", name, name, name) == b":0\r\n"
        assert wire.ask(b"XGROUP", b"DESTROY", name, name) == b":1\r\n"
        assert wire.ask(b"KEYS", b"*") == b"*1\r\n" + bulk(name)
        assert wire.ask(b"DEL", name) == b":1\r\n"


def test_errors_that_name_what_they_were_given_are_cut_and_cleaned_as_in_redis(
    ours: SocketServer, theirs: SocketServer, protocol: int
) -> None:
    shapes: list[Callable[[bytes], list[bytes]]] = [
        lambda name: [b"XREADGROUP", b"GROUP", name, b"c", b"STREAMS", name, b">"],
        lambda name: [b"XGROUP", b"SETID", b"s", name, b"0"],
        lambda name: [b"XINFO", b"CONSUMERS", b"s", name],
        lambda name: [b"XCLAIM", b"s", b"g", b"c", b"0", b"1-1", name],
    ]
    told = []
    for server in (ours, theirs):
        with server.wire(protocol) as wire:
            wire.ask(b"XGROUP", b"CREATE", b"s", b"g", b"0", b"MKSTREAM")
            told.append([wire.ask(*shape(name)) for shape in shapes for name in NAMES])
    assert told[0] == told[1]


def test_entry_of_ten_thousand_fields_and_one_of_megabytes_are_taken(server: SocketServer, protocol: int) -> None:
    with server.wire(protocol) as wire:
        assert wire.ask(b"XADD", b"s", b"1-1", *FIELDS) == bulk(b"1-1")
        assert wire.ask(b"XADD", b"s", b"1-2", *FIELDS[1:]).startswith(b"-ERR wrong number of arguments")
        entry = b"*2\r\n" + bulk(b"1-1") + b"*20000\r\n" + b"".join(map(bulk, FIELDS))
        assert wire.ask(b"XRANGE", b"s", b"-", b"+") == b"*1\r\n" + entry
        wire.send(request(b"XADD", b"s", b"2-0", b"big", b"x" * 5_000_000) + request(b"XLEN", b"s"))
        assert wire.read(2) == bulk(b"2-0") + b":2\r\n"


def test_megabyte_of_ids_is_taken(server: SocketServer, protocol: int) -> None:
    assert sum(map(len, IDS)) > 1_000_000
    with server.wire(protocol) as wire:
        wire.ask(b"XADD", b"s", b"1-1", b"a", b"1")
        wire.ask(b"XGROUP", b"CREATE", b"s", b"g", b"0")
        wire.ask(b"XREADGROUP", b"GROUP", b"g", b"c", b"STREAMS", b"s", b">")
        assert wire.ask(b"XCLAIM", b"s", b"g", b"d", b"0", *IDS, b"JUSTID") == b"*1\r\n" + bulk(b"1-1")
        assert wire.ask(b"XACK", b"s", b"g", *IDS, b"x").startswith(b"-ERR Invalid stream ID")
        assert wire.ask(b"XACK", b"s", b"g", *IDS) == b":1\r\n"
        assert wire.ask(b"XDEL", b"s", *IDS) == b":1\r\n"
