"""Error texts are an interface: what ours say is what redis-server 7.0.15 says, to the byte."""

from __future__ import annotations

import random
from typing import Any

import pytest
from reference_parser import by_next, by_take, cut, written
from request_cases import CASES, Case
from test_parser import PIECES

from rlite_pubsub.protocol import errors, inline
from rlite_pubsub.protocol.encoder import bulk, error
from rlite_pubsub.protocol.errors import CommandError, ProtocolError


def test_a_protocol_error_says_so() -> None:
    failure = ProtocolError(errors.INVALID_BULK_LENGTH)
    assert failure.text == b"ERR Protocol error: invalid bulk length"
    assert str(failure) == "invalid bulk length"
    assert CommandError(errors.SYNTAX).text == b"ERR syntax error"


@pytest.mark.parametrize(
    ("args", "text"),
    [
        ([b"nope"], b"ERR unknown command 'nope', with args beginning with: "),
        ([b"nope", b"a", b"b"], b"ERR unknown command 'nope', with args beginning with: 'a' 'b' "),
        ([b"no\0pe", b"a\0b"], b"ERR unknown command 'no', with args beginning with: 'a' "),
        ([b"n" * 200], b"ERR unknown command '%b', with args beginning with: " % (b"n" * 128)),
        ([b"n", b"a" * 200], b"ERR unknown command 'n', with args beginning with: '%b' " % (b"a" * 128)),
        (
            [b"n", b"a" * 124, b"b", b"c"],
            b"ERR unknown command 'n', with args beginning with: '%b' 'b' " % (b"a" * 124),
        ),
        (
            [b"n", b"a" * 100, b"b" * 100],
            b"ERR unknown command 'n', with args beginning with: '%b' '%b' " % (b"a" * 100, b"b" * 25),
        ),
        ([b"n", b"a" * 125, b"b"], b"ERR unknown command 'n', with args beginning with: '%b' " % (b"a" * 125)),
    ],
)
def test_an_unknown_command_is_quoted_back_up_to_128_bytes(args: list[bytes], text: bytes) -> None:
    assert errors.unknown_command(args).text == text


def test_subcommands_and_arity() -> None:
    assert errors.unknown_subcommand([b"client", b"no\0pe"]).text == b"ERR unknown subcommand 'no'. Try CLIENT HELP."
    assert errors.wrong_arity(b"client|id").text == b"ERR wrong number of arguments for 'client|id' command"
    assert (
        errors.subcommand_syntax([b"client", b"KILL"]).text
        == b"ERR unknown subcommand or wrong number of arguments for 'KILL'. Try CLIENT HELP."
    )


# -- against the real server


def reply(request: list[bytes]) -> bytes:
    """What a server without keys replies to a request of these tests."""
    name, size = request[0].lower(), len(request)
    if name == b"ping" and size <= 2:
        return bulk(request[1]) if size == 2 else b"+PONG\r\n"
    if name == b"echo" and size == 2:
        return bulk(request[1])
    if name in (b"ping", b"echo", b"set", b"publish"):
        arity = {b"ping": size <= 2, b"echo": size == 2, b"set": size >= 3, b"publish": size == 3}[name]
        if not arity:
            return error(errors.wrong_arity(name).text)
        return b":0\r\n" if name == b"publish" else b"-ERR syntax error\r\n" if size > 3 else b"+OK\r\n"
    if name == b"subscribe":
        replies = [
            b"*3\r\n$9\r\nsubscribe\r\n%b:%d\r\n" % (bulk(channel), at + 1) for at, channel in enumerate(request[1:])
        ]
        return b"".join(replies) if replies else error(errors.wrong_arity(name).text)
    return error(errors.unknown_command(request).text)


def replies(data: bytes) -> bytes:
    requests, refused = by_take([data])
    assert by_next([data]) == (requests, refused)
    return b"".join(map(reply, requests)) + (b"" if refused is None else error(refused))


@pytest.mark.parametrize("case", [case for case in CASES if case.trusted], ids=lambda case: case.name)
def test_redis_answers_the_same_to_each_case(reference: Any, case: Case) -> None:
    assert reference.answer(case.data) == replies(case.data)
    assert reference.answer(b"*1\r\n$4\r\nPING\r\n" + case.data) == replies(b"*1\r\n$4\r\nPING\r\n" + case.data)


@pytest.mark.parametrize("start", [b"", b"\x00", b"*", b"*\x00", b"$\x00", b"*1\r\n", b"*1\r\n$", b"*1\r\n\x00"])
def test_redis_answers_the_same_to_a_line_without_end(reference: Any, start: bytes) -> None:
    data = start + b"1" * 70_000
    assert reference.answer(data) == replies(data)
    assert reference.answer(start + b"1" * 1000) == b"" == replies(start + b"1" * 1000)


@pytest.mark.parametrize("case", [case for case in CASES if not case.trusted], ids=lambda case: case.name)
def test_redis_refuses_the_same_while_a_password_is_due(reference: Any, case: Case) -> None:
    with reference.connect() as keeper:
        keeper.sendall(b"CONFIG SET requirepass secret\r\n")
        assert keeper.recv(100) == b"+OK\r\n"
        try:
            answer = reference.answer(case.data)
        finally:
            keeper.sendall(b"AUTH secret\r\nCONFIG SET requirepass ''\r\n")
            received = b""
            while len(received) < 10:
                received += keeper.recv(100)
            assert received == b"+OK\r\n+OK\r\n"
    requests, refused = by_next([case.data], trusted=False)
    refusals = [
        error(errors.unknown_command(request).text) if request[0][:1] == b"a" else error(errors.NO_AUTH)
        for request in requests
    ]
    assert answer == b"".join(refusals) + (b"" if refused is None else error(refused))


def test_redis_answers_the_same_to_random_streams(reference: Any) -> None:
    chance = random.Random(7)
    pieces = [piece for piece in PIECES if len(piece) < 100 and b"SUBSCRIBE" not in piece]
    pieces += [written([[b"ECHO", bytes([byte])]]) for byte in b"\r\n\0'\"ab"]
    streams = 0
    while streams < 1500:
        data = bytearray(b"".join(chance.choices(pieces, k=chance.randrange(1, 9))))
        for _ in range(chance.randrange(3)):
            data[chance.randrange(len(data))] = chance.choice(b"\r\n\0$*19'\"x")
        requests, _ = by_next([bytes(data)])
        if any(request[0].lower() in (b"set", b"hello") for request in requests):
            continue
        streams += 1
        assert (reference.answer(bytes(data)), data) == (replies(bytes(data)), data)


def test_redis_answers_the_same_to_large_arguments(reference: Any) -> None:
    data = written([[b"PUBLISH", b"news", b"a" * 100_000], [b"ECHO", b"b"]] * 3)
    chunks = cut(data, range(9_000, len(data), 9_000))
    assert reference.answer(*chunks) == replies(b"".join(chunks))


@pytest.mark.parametrize(
    ("request_line", "text"),
    [
        (b"SET a b c", errors.SYNTAX),
        (b"SELECT x", errors.NOT_AN_INTEGER),
        (b"SELECT 99", errors.DB_OUT_OF_RANGE),
        (b"BLPOP a -1", errors.NEGATIVE_TIMEOUT),
        (b"XREAD BLOCK x STREAMS a 0", errors.BAD_TIMEOUT),
        (b"INCRBYFLOAT float x", errors.NOT_A_FLOAT),
        (b"HELLO 9", errors.NO_PROTOCOL),
        (b"AUTH nobody wrong", errors.WRONG_PASSWORD),
        (b"CLIENT KILL 1.1.1.1:1", errors.NO_SUCH_CLIENT),
        (b"CLUSTER INFO", errors.CLUSTER_DISABLED),
        (b"CLIENT NOPE", errors.unknown_subcommand([b"client", b"NOPE"]).text),
        (b"CLIENT ID x", errors.wrong_arity(b"client|id").text),
        (b"COPY a b DB x", errors.NOT_AN_INTEGER),
        (b"OBJECT HELP x", errors.wrong_arity(b"object|help").text),
        (b"PUBSUB CHANNELS a b", errors.subcommand_syntax([b"pubsub", b"CHANNELS"]).text),
    ],
)
def test_redis_says_the_same(reference: Any, request_line: bytes, text: bytes) -> None:
    assert inline.split(request_line) is not None
    assert reference.answer(request_line + b"\r\n") == error(text)


def test_redis_says_the_same_within_a_transaction(reference: Any) -> None:
    answer = reference.answer(b"MULTI\r\nWATCH a\r\nNOPE\r\nEXEC\r\n").split(b"\r\n")
    assert answer[0] == b"+OK"
    assert answer[2:] == [error(errors.unknown_command([b"NOPE"]).text)[:-2], error(errors.EXEC_ABORTED)[:-2], b""]
    wrong_type = reference.answer(b"MULTI\r\nRPUSH list a\r\nGET list\r\nDEL list\r\nEXEC\r\n")
    assert error(errors.WRONG_TYPE) in wrong_type
