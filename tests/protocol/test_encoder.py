"""Replies as bytes: one golden row per type and version, read back by the clients' own parsers."""

from __future__ import annotations

import math
import socket
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import hiredis
import pytest
from c_module import compiled
from hypothesis import given, settings
from hypothesis import strategies as st
from patience import PATIENCE_S
from redis._parsers import Encoder, _RESP2Parser, _RESP3Parser

from rlite_pubsub.protocol import encoder, replies
from rlite_pubsub.protocol.encoder import bulk, bulk_array, double, encode, error, integer, pure_bulk_array
from rlite_pubsub.protocol.replies import (
    NO_REPLY,
    NULL_ARRAY,
    Encoded,
    Error,
    Map,
    Push,
    Replies,
    SetReply,
    Status,
    Verbatim,
)

GOLDEN = [
    ("a bulk string", b"abc", b"$3\r\nabc\r\n", b"$3\r\nabc\r\n"),
    ("an empty bulk string", b"", b"$0\r\n\r\n", b"$0\r\n\r\n"),
    ("a binary bulk string", b"\r\n\x00\xff", b"$4\r\n\r\n\x00\xff\r\n", b"$4\r\n\r\n\x00\xff\r\n"),
    ("an integer", 42, b":42\r\n", b":42\r\n"),
    ("a negative integer", -1, b":-1\r\n", b":-1\r\n"),
    ("the largest integer", 2**63 - 1, b":9223372036854775807\r\n", b":9223372036854775807\r\n"),
    ("true", True, b":1\r\n", b"#t\r\n"),
    ("false", False, b":0\r\n", b"#f\r\n"),
    ("null", None, b"$-1\r\n", b"_\r\n"),
    ("a null array", NULL_ARRAY, b"*-1\r\n", b"_\r\n"),
    ("no reply", NO_REPLY, b"", b""),
    ("a status", Status(b"OK"), b"+OK\r\n", b"+OK\r\n"),
    ("an error", Error(b"ERR no"), b"-ERR no\r\n", b"-ERR no\r\n"),
    ("a double", 0.1, b"$19\r\n0.10000000000000001\r\n", b",0.10000000000000001\r\n"),
    ("a whole double", 3.0, b"$1\r\n3\r\n", b",3\r\n"),
    ("infinity", math.inf, b"$3\r\ninf\r\n", b",inf\r\n"),
    ("minus infinity", -math.inf, b"$4\r\n-inf\r\n", b",-inf\r\n"),
    ("a list", [b"a", 1], b"*2\r\n$1\r\na\r\n:1\r\n", b"*2\r\n$1\r\na\r\n:1\r\n"),
    ("an empty list", [], b"*0\r\n", b"*0\r\n"),
    ("a tuple", (b"a",), b"*1\r\n$1\r\na\r\n", b"*1\r\n$1\r\na\r\n"),
    ("lists in lists", [[[]], None], b"*2\r\n*1\r\n*0\r\n$-1\r\n", b"*2\r\n*1\r\n*0\r\n_\r\n"),
    (
        "a dict",
        {b"a": 1, b"b": 2},
        b"*4\r\n$1\r\na\r\n:1\r\n$1\r\nb\r\n:2\r\n",
        b"%2\r\n$1\r\na\r\n:1\r\n$1\r\nb\r\n:2\r\n",
    ),
    ("a map", Map([([], 1), ([], True)]), b"*4\r\n*0\r\n:1\r\n*0\r\n:1\r\n", b"%2\r\n*0\r\n:1\r\n*0\r\n#t\r\n"),
    ("an empty map", Map(), b"*0\r\n", b"%0\r\n"),
    ("a set", SetReply([b"a"]), b"*1\r\n$1\r\na\r\n", b"~1\r\n$1\r\na\r\n"),
    (
        "a push",
        Push([b"message", b"c", b"x"]),
        b"*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nx\r\n",
        b">3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nx\r\n",
    ),  # noqa: E501
    (
        "a push with a null",
        Push([b"unsubscribe", None, 0]),
        b"*3\r\n$11\r\nunsubscribe\r\n$-1\r\n:0\r\n",
        b">3\r\n$11\r\nunsubscribe\r\n_\r\n:0\r\n",
    ),  # noqa: E501
    ("several replies", Replies([Push([1]), Status(b"OK")]), b"*1\r\n:1\r\n+OK\r\n", b">1\r\n:1\r\n+OK\r\n"),
    ("a verbatim text", Verbatim(b"a\nb"), b"$3\r\na\nb\r\n", b"=7\r\ntxt:a\nb\r\n"),
    ("a verbatim markdown", Verbatim(b"#", b"mkd"), b"$1\r\n#\r\n", b"=5\r\nmkd:#\r\n"),
    ("bytes that are encoded already", Encoded(b"$1\r\na\r\n"), b"$1\r\na\r\n", b"$1\r\na\r\n"),
    ("encoded bytes in a list", [Encoded(b":1\r\n"), 2], b"*2\r\n:1\r\n:2\r\n", b"*2\r\n:1\r\n:2\r\n"),
]


@pytest.mark.parametrize(("reply", "resp2", "resp3"), [row[1:] for row in GOLDEN], ids=[row[0] for row in GOLDEN])
def test_each_type_has_its_bytes_in_both_versions(reply: Any, resp2: bytes, resp3: bytes) -> None:
    assert encode(reply, 2) == resp2
    assert encode(reply, 3) == resp3
    assert type(encode(reply, 2)) is bytes


def test_every_type_of_reply_has_a_row() -> None:
    rows = {type(row[1]) for row in GOLDEN}
    ours = {kind for kind in vars(replies).values() if isinstance(kind, type) and kind.__module__ == replies.__name__}
    assert ours | {bytes, int, bool, float, list, tuple, dict, type(None)} <= rows


@pytest.mark.parametrize("reply", ["text", bytearray(b"a"), {1, 2}, object(), 1j, [b"a", "b"], {b"a": "b"}])
def test_what_is_no_reply_is_our_fault(reply: Any) -> None:
    for protocol in (2, 3):
        with pytest.raises(TypeError):
            encode(reply, protocol)


def test_small_pieces_have_their_bytes() -> None:
    assert bulk(b"a\r\n") == b"$3\r\na\r\n\r\n"
    assert integer(-5) == b":-5\r\n"


@settings(deadline=None)
@given(st.lists(st.binary(max_size=12) | st.binary(min_size=1020, max_size=1030), max_size=12), st.none() | st.binary())
def test_c_writes_arrays_as_python_does(texts: list[bytes], header: bytes | None) -> None:
    in_c = compiled(Path(encoder.__file__).with_name("_bulk_array.c")).bulk_array
    expected = pure_bulk_array(texts, header)
    assert in_c(texts, header) == in_c(tuple(texts), header) == expected
    assert header is not None or expected == hiredis.pack_command(tuple(texts))
    for others in ([*texts, "text"], [Encoded(b"+a\r\n"), *texts], [None]):
        assert in_c(others, header) is pure_bulk_array(others, header) is None
    for wrong in ({b"a": b"b"}, iter(texts)):
        with pytest.raises(TypeError):
            in_c(wrong, header)


def test_an_array_of_bulk_strings_is_of_bytes() -> None:
    with pytest.raises(TypeError):
        bulk_array([b"a", "b"])  # type: ignore[list-item]


@given(st.binary())
def test_an_error_cannot_forge_a_reply(text: bytes) -> None:
    for line in (error(text), encode(Error(text), 2), encode(Error(text), 3)):
        assert line.startswith(b"-") and line.endswith(b"\r\n")
        assert b"\r" not in line[:-2] and b"\n" not in line[:-2]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (b"ERR a\r\nb", b"-ERR a  b\r\n"),
        (b"\r\nERR a\n\n", b"-ERR a\r\n"),
        (b"ERR '\r'", b"-ERR ' '\r\n"),
        (b"", b"-\r\n"),
    ],
)
def test_newlines_in_an_error_become_spaces(text: bytes, line: bytes) -> None:
    assert error(text) == line


@given(st.floats(allow_nan=False))
def test_a_double_reads_back_as_itself(number: float) -> None:
    assert float(double(number)) == number


def test_redis_writes_the_same_doubles(reference: Any) -> None:
    for number in (0.1, 3.141, 1.0, -0.0, 1e15, 1e16, 1e17, 1e18, 1e-5, -2.5, 1 / 3, 5e-324, 1.7976931348623157e308):
        script = f"redis.setresp(3) return {{double={number!r}}}".encode()
        for protocol in (2, 3):
            answer = reference.answer(b"HELLO %d\r\n" % protocol, b"*3\r\n$4\r\nEVAL\r\n%b$1\r\n0\r\n" % bulk(script))
            assert answer.endswith(encode(number, protocol)), (number, answer)


# -- the clients' parsers

BULKS = st.binary(max_size=30)
SCALARS = (
    BULKS
    | st.integers(-(2**63), 2**63 - 1)
    | st.booleans()
    | st.none()
    | st.floats(allow_nan=False)
    | st.sampled_from([Status(b"OK"), Status(b""), NULL_ARRAY])
    | BULKS.map(Verbatim)
)
TREES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(BULKS, inner, max_size=3)
        | st.lists(st.tuples(BULKS, inner), max_size=3, unique_by=lambda pair: pair[0]).map(Map)
        | st.lists(BULKS, max_size=1).map(SetReply)
    ),
    max_leaves=12,
)


def shown(reply: Any, protocol: int) -> Any:
    """What a client makes of it."""
    if reply is NULL_ARRAY:
        return None
    if isinstance(reply, bytes):
        return bytes(reply)
    if isinstance(reply, bool):
        return reply if protocol == 3 else int(reply)
    if isinstance(reply, float):
        return reply if protocol == 3 else double(reply)
    if isinstance(reply, (dict, Map)):
        pairs = [(key, shown(value, protocol)) for key, value in (reply.items() if isinstance(reply, dict) else reply)]
        return dict(pairs) if protocol == 3 else [element for pair in pairs for element in pair]
    if isinstance(reply, (list, tuple)):
        return [shown(element, protocol) for element in reply]
    return reply


def ordered(value: Any) -> Any:
    """The value with its sets as lists, whichever of the two a parser makes."""
    if isinstance(value, set):
        return list(value)
    if isinstance(value, dict):
        return {key: ordered(element) for key, element in value.items()}
    return [ordered(element) for element in value] if isinstance(value, list) else value


@settings(max_examples=400, deadline=None)
@given(TREES, st.sampled_from([2, 3]))
def test_hiredis_reads_back_what_we_write(reply: Any, protocol: int) -> None:
    reader = hiredis.Reader()
    reader.feed(encode(reply, protocol))
    found = reader.gets()
    assert not reader.has_data()
    assert repr(ordered(found)) == repr(shown(reply, protocol))  # repr, because True is 1


@settings(max_examples=200, deadline=None)
@given(TREES, st.sampled_from([2, 3]))
def test_redis_py_reads_back_what_we_write(reply: Any, protocol: int) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.settimeout(PATIENCE_S)
        parser: Any = (_RESP2Parser if protocol == 2 else _RESP3Parser)(65536)
        encoder = Encoder("utf-8", "strict", False)
        parser.on_connect(SimpleNamespace(_sock=theirs, socket_timeout=PATIENCE_S, encoder=encoder))
        ours.sendall(encode(reply, protocol))
        found = parser.read_response(disable_decoding=True)
        assert repr(ordered(found)) == repr(shown(reply, protocol))


def test_hiredis_knows_a_push_from_a_reply() -> None:
    reader = hiredis.Reader()
    reader.feed(encode(Push([b"message", b"c", b"x"]), 3) + encode([b"message"], 3))
    assert isinstance(reader.gets(), hiredis.PushNotification)
    assert type(reader.gets()) is list
