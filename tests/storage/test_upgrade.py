"""What becomes of the sorted sets of format 3: nothing is lost, also where the upgrade is broken off."""

from __future__ import annotations

import math
import random
from pathlib import Path

import pytest

import rlite_pubsub
from rlite_pubsub.storage import databases, format, upgrade
from rlite_pubsub.storage.environment import Environment, Txn
from rlite_pubsub.storage.keys import garbage, key_records, proof, ranks, scores
from rlite_pubsub.storage.lmdb_environment import LmdbEnvironment
from rlite_pubsub.storage.store import Store

GOLDEN = Path(__file__).parent / "golden" / "format_3_sorted_sets.txt"
OLD_ORDER = b"q"
MEMBERS = 181


def fill(txn: Txn) -> None:
    for line in GOLDEN.read_text().splitlines():
        if line.startswith("data"):
            _, key, value = line.split(" ")
            txn.put(bytes.fromhex(key), bytes.fromhex(value))


def expected() -> dict[bytes, float]:
    """What the program that wrote the golden file had put in."""
    luck = random.Random(3)
    made = {b"m%d" % number: float(luck.choice((0, 1, -2.5, number))) for number in range(180)}
    return {**made, b"long" * 120: 1.0, b"m7": -0.0}


def of_format_3(folder: Path) -> None:
    with Store.open(folder) as store:
        store.data.write(fill)


def old_rows(environment: Environment) -> int:
    return environment.read(lambda txn: sum(1 for _ in databases.items(txn, OLD_ORDER)))


def check(folder: Path) -> None:
    """Everything is there, in the present format."""
    in_order = sorted(expected().items(), key=lambda scored: (scored[1], scored[0]))
    with rlite_pubsub.Redis(folder) as client:
        assert client.zcard("order") == MEMBERS
        assert client.zrange("order", 0, -1, withscores=True) == in_order
        assert [client.zrank("order", member) for member, _ in in_order] == [*range(MEMBERS)]
        assert math.copysign(1, client.zrange("order", client.zrank("order", "m7"), -1, withscores=True)[0][1]) < 0
        assert client.zrange("small", 0, -1, withscores=True) == [(b"a", 1.5)]
        client.zadd("order", {"new": 0.5, "m1": 9.0})
        assert client.zcount("order", 0.5, 0.5) == 1
    with Store.open(folder) as store:
        assert format.version(store.data) == format.VERSION
        assert store.data.read(lambda txn: list(proof.faults(txn))) == []
        assert old_rows(store.data) == 0
        assert store.data.read(lambda txn: txn.get(databases.UPGRADE)) is None


def test_sorted_sets_of_format_3_are_kept(tmp_path: Path) -> None:
    of_format_3(tmp_path)
    check(tmp_path)


class BrokenOff(BaseException):
    """The process is no more."""


@pytest.mark.sources("replaces a method of a compiled class")
@pytest.mark.parametrize("at_once", [1, 7, 60, MEMBERS])
def test_upgrade_that_is_broken_off_is_gone_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    """After each of its transactions, one after the other."""
    of_format_3(tmp_path)
    monkeypatch.setattr(upgrade, "_MEMBERS_AT_ONCE", at_once)
    plainly = LmdbEnvironment.write

    def write_once(environment: Environment, *args: object, **options: object) -> object:
        if is_done and environment.path.name == "data.mdb":
            raise BrokenOff
        if environment.path.name == "data.mdb":
            is_done.append(True)
        return plainly(environment, *args, **options)  # type: ignore[arg-type]

    broken_off = 0
    for _ in range(2 * MEMBERS):
        is_done: list[bool] = []
        with monkeypatch.context() as patch:
            patch.setattr(LmdbEnvironment, "write", write_once)
            try:
                store = Store.open(tmp_path)
            except BrokenOff:
                broken_off += 1
                continue
        store.close()
        break
    assert broken_off >= 2 + MEMBERS // at_once
    check(tmp_path)


def test_order_that_no_key_has_any_more_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upgrade, "_MEMBERS_AT_ONCE", 50)

    def fill_without_key(txn: Txn) -> None:
        fill(txn)
        for key, value in list(databases.items(txn, databases.KEYS)):
            if b"order" in value:
                txn.delete(key)
        number = next(databases.heads(txn, OLD_ORDER, 8))
        garbage.add(txn, garbage.TOPIC, int.from_bytes(number, "big"))

    with Store.open(tmp_path) as store:
        store.data.write(fill_without_key)
    with Store.open(tmp_path) as store:
        assert old_rows(store.data) == 0
        assert store.data.read(lambda txn: next(databases.items(txn, databases.ORDERS), None)) is None
    with rlite_pubsub.Redis(tmp_path) as client:
        assert client.zrange("small", 0, -1) == [b"a"]


def test_large_order_is_moved_into_several_levels(tmp_path: Path) -> None:
    """More members than a piece has, and more nodes than one above them counts."""
    count = 12_000
    score = upgrade._SCORE
    with Store.open(tmp_path) as store:
        store.data.write(fill)

        def add_many(txn: Txn) -> None:
            (number,) = (int.from_bytes(head, "big") for head in databases.heads(txn, OLD_ORDER, 8))
            old = upgrade._ROW_3.pack(OLD_ORDER, number, 0)
            for at in range(count):
                member = b"more%06d" % at
                txn.put(old + ranks.sortable(1000.0 + at) + member, score.pack(1000.0 + at))
                txn.put(scores.key(number, member), scores.pack(1000.0 + at, member))
            for key, value in list(databases.items(txn, databases.KEYS)):
                record = key_records.unpack(value)
                if record.name == b"order":
                    body = upgrade._LARGE.pack(number, MEMBERS + count, 2)
                    txn.put(key, key_records.pack(*record._replace(body=body)))

        store.data.write(add_many)
    with rlite_pubsub.Redis(tmp_path) as client:
        assert client.zcard("order") == MEMBERS + count
        assert client.zrange("order", -2, -1) == [b"more011998", b"more011999"]
        assert client.zrank("order", "more005000") == MEMBERS + 5000
        client.zremrangebyrank("order", 200, -100)
        assert client.zcard("order") == 299
    with Store.open(tmp_path) as store:
        assert store.data.read(lambda txn: list(proof.faults(txn))) == []
