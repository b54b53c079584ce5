"""Commands, transactions and scripts that read and then write, while another process writes in between."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from parsed_session import ParsedSession
from recorded_session import House

from rlite_pubsub.keyspace.hashes import Hash
from rlite_pubsub.keyspace.keyspace import Keyspace
from rlite_pubsub.keyspace.sets import Set
from rlite_pubsub.storage.environment import Txn
from rlite_pubsub.storage.errors import StoreHeld
from rlite_pubsub.storage.turn import Turn

Meanwhile = Callable[[Callable[[Keyspace], object]], None]
"""Lets another process do something once this one begins to write."""


@pytest.fixture
def meanwhile(house: House, monkeypatch: pytest.MonkeyPatch) -> Meanwhile:
    elsewhere = Keyspace(house.data, lambda: 0)
    begin = house.data.begin

    def arrange(work: Callable[[Keyspace], object]) -> None:
        def begin_behind_the_other(turn: Turn, *, write: bool) -> Txn:
            if write:
                monkeypatch.setattr(house.data, "begin", begin)
                work(elsewhere)
                assert elsewhere.end_turn() is None
            return begin(turn, write=write)

        monkeypatch.setattr(house.data, "begin", begin_behind_the_other)

    return arrange


def sets(keyspace: Keyspace, *names: bytes, value: bytes = b"new") -> None:
    for name in names:
        keyspace.put_string(0, name, value)


def expired(client: ParsedSession, house: House) -> None:
    """Three keys, the second of which has expired."""
    client.do("MSET", "first", "old", "last", "old")
    client.do("SET", "expired", "v", "PX", "10")
    client.do("HSET", "hash", "a", "1", "b", "2")
    client.do("HPEXPIRE", "hash", "10", "FIELDS", "1", "a")
    house.clock.now += 1


@pytest.mark.parametrize("between", [("GET", "expired"), ("HLEN", "hash"), ("PFCOUNT", "hll")])
def test_transaction_that_only_reads_reads_one_state(
    house: House, client: ParsedSession, meanwhile: Meanwhile, between: tuple[str, ...]
) -> None:
    client.do("PFADD", "hll", "a")
    expired(client, house)
    meanwhile(lambda keyspace: sets(keyspace, b"first", b"last"))
    for words in (("WATCH", "last"), ("MULTI",), ("GET", "first"), between, ("GET", "last")):
        client.do(*words)
    first, _, last = client.do("EXEC")
    assert (first, last) == (b"old", b"old")


def test_script_that_only_reads_reads_one_state(house: House, client: ParsedSession, meanwhile: Meanwhile) -> None:
    expired(client, house)
    meanwhile(lambda keyspace: sets(keyspace, b"first", b"last"))
    script = "return {redis.call('GET', 'first'), redis.call('GET', 'expired'), redis.call('GET', 'last')}"
    assert client.do("EVAL", script, "0") == [b"old", None, b"old"]


def test_script_that_met_an_expired_key_writes_by_what_it_has_read(
    house: House, client: ParsedSession, meanwhile: Meanwhile
) -> None:
    expired(client, house)
    client.do("SET", "count", "1")
    meanwhile(lambda keyspace: sets(keyspace, b"count", value=b"10"))
    script = "local n = redis.call('GET', 'count'); redis.call('GET', 'expired'); redis.call('SET', 'count', n + 1)"
    client.do("EVAL", script, "0")
    assert client.do("GET", "count") == b"11"


def test_expired_key_is_removed_by_a_transaction_that_writes(house: House, client: ParsedSession) -> None:
    expired(client, house)
    for words in (("MULTI",), ("SET", "first", "new"), ("GET", "expired")):
        client.do(*words)
    client.do("EXEC")
    assert client.do("DBSIZE") == 3


def test_pfcount_keeps_what_another_process_has_added(
    client: ParsedSession, house: House, meanwhile: Meanwhile
) -> None:
    other = ParsedSession(house)
    client.do("PFADD", "two", "a", "b")
    client.do("PFADD", "hll", "a")
    two = client.do("GET", "two")
    meanwhile(lambda keyspace: sets(keyspace, b"hll", value=two))
    assert client.do("PFCOUNT", "hll") == 1
    assert other.do("PFCOUNT", "hll") == 2


def test_pfcount_does_not_bring_back_what_another_process_has_removed(
    client: ParsedSession, meanwhile: Meanwhile
) -> None:
    client.do("PFADD", "hll", "a")
    meanwhile(lambda keyspace: keyspace.delete(0, b"hll"))
    assert client.do("PFCOUNT", "hll") == 1
    assert client.do("EXISTS", "hll") == 0


@pytest.mark.parametrize(
    "words, expected",
    [
        (("SUNIONSTORE", "s", "s", "other"), {b"old", b"new", b"of the other"}),
        (("SINTERSTORE", "s", "s", "s"), {b"old", b"new"}),
        (("SDIFFSTORE", "s", "s", "other"), {b"old", b"new"}),
    ],
)
def test_set_that_is_stored_has_what_another_process_has_added(
    client: ParsedSession, meanwhile: Meanwhile, words: tuple[str, ...], expected: set[bytes]
) -> None:
    def add(keyspace: Keyspace) -> None:
        found = keyspace.for_change(0, b"s")
        assert isinstance(found, Set)
        found.add([b"new"])

    client.do("SADD", "s", "old")
    client.do("SADD", "other", "of the other")
    meanwhile(add)
    assert client.do(*words) == len(expected)
    assert set(client.do("SMEMBERS", "s")) == expected


def test_bitop_takes_what_another_process_has_set(client: ParsedSession, meanwhile: Meanwhile) -> None:
    client.do("SET", "bits", "\x01")
    meanwhile(lambda keyspace: sets(keyspace, b"bits", value=b"\x02"))
    client.do("BITOP", "OR", "bits", "bits", "bits")
    assert client.do("GET", "bits") == b"\x02"


def test_hash_with_an_expired_field_is_read_while_another_process_writes(
    house: House, client: ParsedSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    expired(client, house)
    begin = house.data.begin
    elsewhere = Keyspace(house.data, lambda: 0)

    def refuse(turn: Turn, *, write: bool) -> Txn:
        if write and turn is not elsewhere.turn:
            found = elsewhere.for_change(0, b"hash")
            assert isinstance(found, Hash)
            found.put([b"c", b"3"])
            assert elsewhere.end_turn() is None
            raise StoreHeld(house.data.path, lambda: "by another process")
        return begin(turn, write=write)

    monkeypatch.setattr(house.data, "begin", refuse)
    assert client.do("HMGET", "hash", "a", "b", "c") == [None, b"2", b"3"]
