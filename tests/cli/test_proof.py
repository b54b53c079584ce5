"""`doctor --deep` finds nothing in a store that our transactions have made, and whatever is missing from it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from redis.exceptions import AskError, MovedError

import rlite_pubsub
from rlite_pubsub.cli.doctor import proof
from rlite_pubsub.engine.shards.directory import Member, founded
from rlite_pubsub.engine.shards.slots import slot_of
from rlite_pubsub.storage import databases as kinds
from rlite_pubsub.storage.commons import shard_rows
from rlite_pubsub.storage.environment import Txn
from rlite_pubsub.storage.keys import garbage, key_records
from rlite_pubsub.storage.keys.proof import owners
from rlite_pubsub.storage.store import Store
from rlite_pubsub.storage.topics import entry_ids, stages, type_index

HOUR_MS = 3_600_000
NEXT_YEAR_MS = 2**42


def fill(client: Any) -> None:
    """Of every kind of record that stands in data.mdb, at least one."""
    do = client.execute_command
    do("SET", "text", "x", "PX", HOUR_MS)
    do("SET", "other", "x")
    for number in range(3):
        do("RPUSH", "small list", number)
        do("HSET", "small hash", f"f{number}", number)
    do("HPEXPIRE", "small hash", HOUR_MS, "FIELDS", 1, "f0")
    with client.pipeline() as pipe:
        for number in range(1500):
            pipe.rpush("list", "x" * 50)
            pipe.sadd("set", f"member {number}")
            pipe.hset("hash", f"field {number}", number)
            pipe.zadd("sorted", {f"member {number}": number % 100})
        pipe.execute()
    do("ZADD", "sorted", 5, "long" * 200, 5, "long" * 200 + "er")
    do("HPEXPIRE", "hash", HOUR_MS, "FIELDS", 2, "field 1", "field 2")
    for number in range(2500):
        do("XADD", "topic", "MAXLEN", "=", "1000", f"{number + 1}-0", "f", "x" * 20)
    do("XGROUP", "CREATE", "topic", "g", "0")
    do("XREADGROUP", "GROUP", "g", "c" * 300, "COUNT", 20, "STREAMS", "topic", ">")
    do("TOPIC.CONFIG", "topic", "SET", "RETAIN-AGE", "1000d")
    do("XGROUP", "CREATE", "topic", "jobs", "0")
    do("TOPIC.GROUP", "topic", "jobs", "TIMEOUT", HOUR_MS)
    (((_, taken),),) = [do("XREADGROUP", "GROUP", "jobs", "a", "COUNT", 5, "STREAMS", "topic", ">")]
    do("TOPIC.REQUEUE", "topic", "jobs", taken[0][0])
    do("TOPIC.REQUEUE", "topic", "jobs", taken[1][0], "DELAY", HOUR_MS)
    do("TOPIC.DEFER", "topic", NEXT_YEAR_MS, "f", "v")
    do("XADD", "topic", "IDMP", "producer", "publication", "*", "f", "v")


def fill_directly(txn: Txn) -> None:
    """What a pipeline and the gateway write."""
    type_index.extend(txn, topic_of(txn), {b"made": [entry_ids.pack((2000, 0))]}, (2000, 0))
    piece = stages.StagedRows(NEXT_YEAR_MS, 2, 0, False, b"", b"", b"topic")
    stages.put(txn, stages.Writer(b"application", 1, 0, 0), 1, piece, [b"*0\r\n", b"*0\r\n"], [])


def topic_of(txn: Txn) -> int:
    (number,) = (number for number, owner in owners(txn) if owner.record.name == b"topic")
    return number


def found(folder: Path) -> list[str]:
    with Store.open(folder) as store:
        return list(proof.faults(store, str(folder)))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with records of every kind."""
    folder = tmp_path_factory.mktemp("whole") / "store"
    with rlite_pubsub.Redis(folder) as client:
        fill(client)
    with Store.open(folder) as store:
        store.data.write(fill_directly)
    return folder


@pytest.fixture
def folder(whole: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    shutil.copytree(whole, tmp_path / "store")
    return tmp_path / "store"


def test_what_our_transactions_leave_fits(folder: Path) -> None:
    assert found(folder) == []
    with rlite_pubsub.Redis(folder, db=3) as client:
        assert client.keys() == []
        client.flushall()
    assert found(folder) == []


def test_what_removing_leaves_fits(folder: Path) -> None:
    with rlite_pubsub.Redis(folder) as client:
        client.delete("sorted", "hash", "list", "set", "topic")
        client.flushdb()
        client.set("again", "x")
    assert found(folder) == []


def row(database: bytes, more: bytes = b"", *, last: bool = False) -> Callable[[Txn], tuple[bytes, bytes]]:
    """The first record of a database whose key goes on so, or the last."""

    def pick(txn: Txn) -> tuple[bytes, bytes]:
        rows = list(kinds.items(txn, database + more))
        return rows[-1 if last else 0]

    return pick


def key(name: bytes) -> Callable[[Txn], tuple[bytes, bytes]]:
    """The record of a key."""

    def pick(txn: Txn) -> tuple[bytes, bytes]:
        return next(row for row in kinds.items(txn, kinds.KEYS) if key_records.unpack(row[1]).name == name)

    return pick


def of_topic(database: bytes, more: bytes = b"", *, last: bool = False) -> Callable[[Txn], tuple[bytes, bytes]]:
    return lambda txn: row(database, topic_of(txn).to_bytes(8, "big") + more, last=last)(txn)


MISSING: dict[str, tuple[Callable[[Txn], tuple[bytes, bytes]], str]] = {
    "a database's space": (row(kinds.SPACES), "no database has space"),
    "a key": (key(b"other"), "keys, 1 that expire"),
    "a key of a large list": (key(b"list"), "no key of that kind has it"),
    "when a key expires": (row(kinds.EXPIRIES), "is not in the order of expiries"),
    "an element": (row(kinds.ELEMENTS), "elements from index"),
    "an element in the middle": (lambda txn: list(kinds.items(txn, kinds.ELEMENTS))[700], "elements from index"),
    "a member": (row(kinds.MEMBERS), "counts 1500 members, and has 1499"),
    "a field": (row(kinds.FIELDS), "counts 1500 members, and has 1499"),
    "when a field expires": (row(kinds.FIELD_EXPIRIES), "their order has others"),
    "when a hash has a field that expires": (row(kinds.EXPIRING), "has fields that expire, and is not in their order"),
    "a score": (row(kinds.SCORES), "counts 1502 members, and has 1501"),
    "a node of ranks": (row(kinds.ORDERS), "ranks are those of others"),
    "a node of a level above": (row(kinds.ORDERS, last=True), "level 1 of its ranks wrong"),
    "a chunk of entries": (of_topic(kinds.ENTRIES), "says that it has 1001 entries"),
    "a trim mark": (of_topic(kinds.TRIM_MARKS), "has no mark of it"),
    "a group": (of_topic(kinds.GROUPS), "counts 2 groups, and has 1"),
    "a consumer": (of_topic(kinds.CONSUMERS, b"\0\0\0\1\0\0\0\1"), "not found by their names"),
    "a consumer's name": (of_topic(kinds.CONSUMERS, b"\0\0\0\1\0\0\0\0"), "not found by their names"),
    "pending entries": (of_topic(kinds.PENDING), "pending entries, and has"),
    "a released entry": (of_topic(kinds.RELEASED), "not found by both of their orders"),
    "when a released entry is due": (of_topic(kinds.RELEASED, last=True), "not found by both of their orders"),
    "what is in flight": (of_topic(kinds.IN_FLIGHT), "will not look for it when its time is over"),
    "a deferred entry": (of_topic(kinds.DEFERRED), "counts 1 deferred entries, and has 0"),
    "a topic's deadline": (of_topic(kinds.DEADLINES), "counts 0 deferred entries, and has 1"),
    "a group's deadline": (of_topic(kinds.DEADLINES, last=True), "no deadline for them"),
    "the order of deadlines": (row(kinds.DEADLINES, bytes(8)), "not in their order"),
    "a topic's settings": (of_topic(kinds.TOPIC_SETTINGS), "and not by its settings"),
    "when a topic is to be trimmed": (row(kinds.TOPIC_SETTINGS, bytes(8) + b"d"), "is not in that order"),
    "a type of events": (of_topic(kinds.EVENT_TYPES, b"\1"), "has types of events with 0 entries"),
    "events of a type": (of_topic(kinds.EVENT_TYPES, b"\2"), "and 0 in their rows"),
    "how far events are known": (of_topic(kinds.EVENT_TYPES, b"\0"), "has types of events up to"),
    "what is known of publications": (of_topic(kinds.PUBLICATIONS, b"\0"), "says that it has 0 publications"),
    "a producer": (of_topic(kinds.PUBLICATIONS, b"\1"), "publications of 1 producers"),
    "a publication": (of_topic(kinds.PUBLICATIONS, b"\2"), "not found by each of their orders"),
    "how old a publication is": (of_topic(kinds.PUBLICATIONS, b"\3"), "not found by each of their orders"),
    "the turn of a publication": (of_topic(kinds.PUBLICATIONS, b"\4"), "not found by each of their orders"),
    "a staged piece": (row(kinds.STAGES), "says that it has 0 rows, and has 2"),
    "staged rows": (row(kinds.STAGES, last=True), "says that it has 2 rows, and has 0"),
    "the last number": (lambda txn: (kinds.LAST_TOPIC, b""), "is said to be the last"),
}


@pytest.mark.parametrize("what", MISSING)
def test_record_that_is_missing_is_found(folder: Path, what: str) -> None:
    pick, told = MISSING[what]
    with Store.open(folder) as store:
        store.data.write(lambda txn: txn.delete(pick(txn)[0]))
    assert any(told in fault for fault in found(folder)), found(folder)


def flipped(value: bytes, at: int) -> bytes:
    return value[:at] + bytes([value[at] ^ 1]) + value[at + 1 :]


WRONG: dict[str, tuple[Callable[[Txn], tuple[bytes, bytes]], int, str]] = {
    "how many keys there are": (row(kinds.SPACES), 11, "keys"),
    "a member": (row(kinds.MEMBERS), 0, "under the digest of another one"),
    "the name of a field": (row(kinds.FIELDS), 12, "under the digest of another one"),
    "when a field expires": (row(kinds.FIELDS), 6, "their order has others"),
    "a score": (row(kinds.SCORES), 5, "ranks are those of others"),
    "the score of a rank": (row(kinds.ORDERS), -15, "ranks are those of others"),
    "the bound of a node of ranks": (row(kinds.ORDERS, last=True), -1, "of its ranks wrong"),
    "the count of a node of ranks": (row(kinds.ORDERS, last=True), -14, "of its ranks wrong"),
    "the name of a key": (key(b"other"), 22, "does not stand under its name's digest"),
    "how long a list is": (key(b"list"), -1, "elements from index"),
    "how many fields a hash has": (key(b"hash"), -1, "members, and has"),
    "when the first field of a hash expires": (key(b"hash"), -9, "is not in their order"),
    "when the first field of a small hash expires": (key(b"small hash"), -1, "says that its first field expires"),
    "how long a topic is": (key(b"topic"), 22 + 5 + 15, "says that it has"),
    "how many groups a topic has": (key(b"topic"), 22 + 5 + 8 * 8 + 3, "groups, and has"),
    "the id of an entry": (of_topic(kinds.ENTRIES), 4 + 7, "of another one"),
    "the order of entries": (of_topic(kinds.ENTRIES), 4 + 6, "out of order"),
    "how much is pending": (of_topic(kinds.GROUPS), 35, "pending entries, and has"),
    "whose pending entries are": (of_topic(kinds.PENDING), 3, "pending entries, and they have"),
    "where a topic stands": (of_topic(kinds.TOPIC_SETTINGS), 5, "stands elsewhere than its settings say"),
    "where a topic with deadlines stands": (of_topic(kinds.DEADLINES), 20, "stands elsewhere than its deadlines say"),
    "a deadline": (of_topic(kinds.DEADLINES), 3, "not in their order"),
    "when a topic is to be trimmed": (of_topic(kinds.TOPIC_SETTINGS), 25, "and not by its settings"),
    "a trim mark": (of_topic(kinds.TRIM_MARKS), 2, "and is marked with"),
}


@pytest.mark.parametrize("what", WRONG)
def test_record_that_is_wrong_is_found(folder: Path, what: str) -> None:
    pick, at, told = WRONG[what]

    def damage(txn: Txn) -> None:
        place, value = pick(txn)
        txn.put(place, flipped(value, at % len(value)))

    with Store.open(folder) as store:
        store.data.write(damage)
    assert any(told in fault for fault in found(folder)), found(folder)


def test_rows_that_belong_to_nobody_are_found(folder: Path) -> None:
    with Store.open(folder) as store:
        for database in garbage.OF_A_TOPIC:
            store.data.write(lambda txn: txn.put(database + (10**9).to_bytes(8, "big") + bytes(28), bytes(40)))  # noqa: B023
    told = [fault for fault in found(folder) if "of number 1000000000, and no key of that kind has it" in fault]
    assert len(told) == len(garbage.OF_A_TOPIC)


def test_keys_that_a_member_serves_no_longer_or_not_yet_are_read_like_all_others(tmp_path: Path) -> None:
    """It was killed between giving slots and dropping their keys, or between taking keys and their slots."""
    folder = tmp_path / "store"
    with rlite_pubsub.Redis(folder) as client:
        client.mset({"own": 1, "given": 2, "taken": 3})
        client.rpush("{given}damaged", *range(2000))

    def shard(txn: Txn) -> None:
        me = Member(shard_rows.settle_member(txn) and (shard_rows.member(txn) or b""), b"127.0.0.1", 7000)
        other = Member(b"f" * 40, b"127.0.0.1", 7001)
        owners = {slot_of(b"own"): me, slot_of(b"given"): me, slot_of(b"taken"): other}
        shard_rows.put_directory(txn, founded([me, other], owners).text)
        shard_rows.put_leaving(txn, b'[[[%d],"%b"]]' % (slot_of(b"given"), other.id))

    with Store.open(folder) as store:
        store.data.write(shard)
    with rlite_pubsub.Redis(folder) as client:
        for key, redirect in (("given", AskError), ("taken", MovedError)):
            with pytest.raises(redirect):
                client.get(key)
    assert found(folder) == []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(proof, "payload_of", lambda record: 1 // (record.name != b"{given}damaged"))
        (fault,) = found(folder)
    assert "{given}damaged" in fault and "division" in fault
