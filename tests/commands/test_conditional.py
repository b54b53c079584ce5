"""What Redis 8.4 has of strings: conditions on values and their digests. No redis-server here knows it: the digests are
those of the library xxhash."""

from __future__ import annotations

import pytest
from parsed_session import ParsedSession
from recorded_session import House

from rlite_pubsub.keyspace import xxh3

DIGESTS = [
    (0, 0x2D06800538D394C2),
    (1, 0xC44BDFF4074EECDB),
    (3, 0xC3489259E968AD9E),
    (4, 0xD3D60C1519014E89),
    (8, 0xB88DEE77F6BF6980),
    (9, 0x03688DCAD730D826),
    (16, 0x9DA23836ADF2BE1E),
    (17, 0xF34C3C9CF5A112D1),
    (33, 0xC077B45492D29CDE),
    (128, 0x4C659B745F435148),
    (129, 0xB85222B83902B6E5),
    (240, 0xD6DFBF67B0675B54),
    (241, 0xC614C8C3575348C1),
    (1024, 0xF22EF3DC84FF47EA),
    (1025, 0x43F869A83769A435),
    (2049, 0x4583128AFA3A2985),
]


@pytest.mark.parametrize(("size", "digest"), DIGESTS)
def test_digests_are_those_of_xxhash(size: int, digest: int) -> None:
    assert xxh3.digest(bytes(place * 7 % 251 for place in range(size))) == digest


def test_set_depends_on_the_value(client: ParsedSession) -> None:
    client.do("SET", "k", "one")
    assert client.do("SET", "k", "two", "IFEQ", "other") is None
    assert client.do("SET", "k", "two", "IFEQ", "one") == b"OK"
    assert client.do("SET", "k", "three", "IFNE", "two") is None
    assert client.do("SET", "k", "three", "IFNE", "one", "GET") == b"two"
    digest = client.do("DIGEST", "k")
    assert len(digest) == 16
    assert client.do("SET", "k", "four", "IFDNE", digest) is None
    assert client.do("SET", "k", "four", "IFDEQ", digest.upper(), "EX", "100") == b"OK"
    assert client.do("TTL", "k") == 100
    assert client.do("GET", "k") == b"four"


def test_what_is_not_there_equals_nothing(client: ParsedSession) -> None:
    assert client.do("DIGEST", "k") is None
    assert client.do("SET", "k", "one", "IFEQ", "") is None
    assert client.do("SET", "k", "one", "IFDEQ", "0" * 16) is None
    assert client.do("EXISTS", "k") == 0
    assert client.do("SET", "k", "one", "IFNE", "x") == b"OK"


def test_delex_removes_what_is_as_expected(client: ParsedSession) -> None:
    client.do("MSET", "a", "1", "b", "2", "c", "3")
    assert client.do("DELEX", "a", "IFEQ", "2") == 0
    assert client.do("DELEX", "a", "IFEQ", "1") == 1
    assert client.do("DELEX", "b", "IFDNE", client.do("DIGEST", "b")) == 0
    assert client.do("DELEX", "b", "IFDEQ", client.do("DIGEST", "b")) == 1
    assert client.do("DELEX", "c") == 1
    assert client.do("DELEX", "c", "IFNE", "x") == 0
    assert client.do("DBSIZE") == 0


def test_msetex_sets_all_or_nothing(client: ParsedSession, house: House) -> None:
    assert client.do("MSETEX", "2", "a", "1", "b", "2", "NX", "PX", "5000") == 1
    assert client.do("PTTL", "a") == client.do("PTTL", "b") == 5000
    assert client.do("MSETEX", "2", "b", "9", "c", "9", "NX") == 0
    assert client.do("MSETEX", "2", "b", "9", "c", "9", "XX") == 0
    assert client.do("MGET", "a", "b", "c") == [b"1", b"2", None]
    assert client.do("MSETEX", "2", "a", "3", "b", "4", "XX", "KEEPTTL") == 1
    assert client.do("PTTL", "a") == 5000
    assert client.do("MSETEX", "1", "a", "5") == 1
    assert client.do("PTTL", "a") == -1
    assert client.do("COMMAND", "GETKEYS", "MSETEX", "2", "a", "1", "b", "2", "NX") == [b"a", b"b"]


@pytest.mark.parametrize(
    ("words", "refusal"),
    [
        ("SET k v IFEQ", "syntax error"),
        ("SET k v NX IFEQ x", "syntax error"),
        ("SET k v IFEQ x XX", "syntax error"),
        ("SET k v IFEQ x IFNE y", "syntax error"),
        ("SET k v IFDEQ x", "must be exactly 16 hexadecimal characters"),
        ("SET l v IFEQ x", "WRONGTYPE"),
        ("DELEX l IFEQ x", "Key should be of string type if conditions are specified"),
        ("DELEX k what x", "syntax error"),
        ("DELEX k IFEQ", "wrong number of arguments for 'delex' command"),
        ("DIGEST l", "WRONGTYPE"),
        ("MSETEX 0 a b", "invalid numkeys value"),
        ("MSETEX 2 a b", "wrong number of arguments for 'msetex' command"),
        ("MSETEX 1 a b NX XX", "syntax error"),
    ],
)
def test_what_is_wrong_is_refused(client: ParsedSession, words: str, refusal: str) -> None:
    client.do("SET", "k", "v")
    client.do("RPUSH", "l", "x")
    assert str(client.do(*words.split())).removeprefix("ERR ").startswith(refusal)


def test_whoever_waits_for_replicas_waits_in_vain(client: ParsedSession, house: House) -> None:
    assert client.do("WAIT", "0", "0") == 0
    assert client.do("WAIT", "1", "500") is False
    house.timers.advance(0.6)
    assert client.heard() == 0
    assert str(client.do("WAIT", "1", "-1")) == "ERR timeout is negative"
