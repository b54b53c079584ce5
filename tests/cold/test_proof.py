"""What is in blocks and manifests is what the store says: `doctor --deep` looks, and whoever begins to seal writes
manifests that are not so anew."""

from __future__ import annotations

import dataclasses
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from cold_server import Sealer
from patience import until

import rlite_pubsub
from rlite_pubsub.cli.doctor import proof
from rlite_pubsub.cold import manifest
from rlite_pubsub.cold import sealer as sealing
from rlite_pubsub.cold.local_place import LocalPlace
from rlite_pubsub.cold.origin import Origin
from rlite_pubsub.storage import databases
from rlite_pubsub.storage.cold import cold_blocks, cold_home
from rlite_pubsub.storage.cold.cold_blocks import BlockInfo
from rlite_pubsub.storage.environment import Txn
from rlite_pubsub.storage.keys.proof import owners
from rlite_pubsub.storage.store import Store

BLOCK_BYTES = 1 << 18
DUE_MS = 1 << 50


def found(folder: Path) -> list[str]:
    with Store.open(folder) as store:
        return list(proof.faults(store, str(folder)))


def topic_of(txn: Txn) -> int:
    (number,) = (number for number, _ in owners(txn))
    return number


@pytest.fixture(scope="module")
def _sealed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sealed") / "store"
    with rlite_pubsub.Redis(folder) as client:
        with client.pipeline() as pipe:
            for number in range(1, 4001):
                pipe.xadd("t", {"n": "x" * 300}, id=f"{number}-0")
            pipe.execute()
        sealer = Sealer(folder, BLOCK_BYTES)
        until(lambda: client.execute_command("TOPIC.INFO", "t") and blocks_of(folder) >= 3, "blocks")
        sealer.end()
        sealer.clean_up()
        client.xdel("t", "100-0", "200-0")
    return folder


@pytest.fixture
def sealed(_sealed: Path, folder: Path) -> Path:
    """A store with a topic of which the most is in blocks, with some entries deleted there."""
    shutil.copytree(_sealed, folder)
    return folder


def blocks_of(folder: Path) -> int:
    with Store.open(folder) as store:
        return store.data.read(lambda txn: len(list(cold_blocks.forward(txn, topic_of(txn)))))


def test_what_sealing_leaves_fits(sealed: Path) -> None:
    assert found(sealed) == []
    with rlite_pubsub.Redis(sealed) as client:
        client.copy("t", "copy")
        client.xtrim("t", minid="1500-0", approximate=False)
    assert found(sealed) == []
    with rlite_pubsub.Redis(sealed) as client:
        client.delete("t")
    assert found(sealed) == []


def test_topic_whose_blocks_are_all_trimmed_fits(sealed: Path) -> None:
    with rlite_pubsub.Redis(sealed) as client:
        client.xtrim("t", minid="4000-0", approximate=False)
    assert blocks_of(sealed) == 0
    assert found(sealed) == []


def test_block_that_no_topic_has_is_no_fault_though_its_manifest_is_missing(sealed: Path) -> None:
    """A sealer was killed before it had written the first manifest."""
    left = sealed / "cold" / "u" / "77" / block_file(sealed).name
    left.parent.mkdir(parents=True)
    left.write_bytes(block_file(sealed).read_bytes())
    assert found(sealed) == []


def lose(file: Path) -> None:
    file.unlink()


def damage(file: Path) -> None:
    file.write_text(file.read_text()[:-100])


def put_back(file: Path) -> None:
    """As it was one block earlier."""
    place = LocalPlace(file.parents[2])
    known = manifest.read(place, str(file.relative_to(place.folder)))
    manifest.write(place, manifest.of(known.origin, known.blocks[:-1]))


@pytest.mark.parametrize("harm", [lose, damage, put_back])
def test_manifest_that_is_not_as_the_store_has_it_is_written_anew_by_who_seals_next(
    sealed: Path, seal: Callable[..., Sealer], harm: Callable[[Path], None]
) -> None:
    harm(manifest_file(sealed))
    assert found(sealed) != []
    sealer = seal(sealed, BLOCK_BYTES)
    until(lambda: found(sealed) == [], "the manifest")
    sealer.end()


def test_manifest_of_a_topic_that_was_renamed_is_written_under_its_new_name(
    sealed: Path, seal: Callable[..., Sealer]
) -> None:
    with rlite_pubsub.Redis(sealed) as client:
        client.rename("t", "renamed")
    manifest_file(sealed).unlink()
    sealer = seal(sealed, BLOCK_BYTES)
    until(lambda: found(sealed) == [], "the manifest")
    sealer.end()
    assert manifest_file(sealed).parts[-3] == "renamed"


class Watched(LocalPlace):
    """Whether all that is committed is safe, whenever a block goes from a manifest."""

    def __init__(self, folder: Path, store: Store) -> None:
        super().__init__(folder)
        self._data = store.data
        self.was_safe: list[bool] = []

    def write(self, path: str, data: bytes | memoryview) -> None:
        before = self._blocks(path)
        super().write(path, data)
        if before - self._blocks(path):
            self.was_safe.append(self._data.safety.safe_commit() == self._data.last_commit())

    def _blocks(self, path: str) -> set[BlockInfo]:
        is_there = path.endswith("_manifest.json") and (self.folder / path).exists()
        return set(manifest.read(self, path).blocks) if is_there else set()


@pytest.mark.parametrize("more", [0, 3000], ids=["by itself", "with what is sealed then"])
def test_what_goes_from_a_manifest_is_surely_gone_from_the_store(sealed: Path, more: int) -> None:
    with Store.open(sealed, durability="no") as store, rlite_pubsub.Redis(sealed) as client:
        place = Watched(sealed / "cold", store)
        plan = sealing.SealingPlan(BLOCK_BYTES, 0, 3_600_000)
        sealer = sealing.Sealer(store, place, "", plan, lambda: int(time.time() * 1000))
        client.xtrim("t", minid="3000-0", approximate=False)
        with client.pipeline() as pipe:
            for number in range(4001, 4001 + more):
                pipe.xadd("t", {"n": "x" * 300}, id=f"{number}-0")
            pipe.execute()
        assert not place.was_safe and store.data.safety.safe_commit() != store.data.last_commit()
        sealer.seal_due()
        assert place.was_safe == [True]


def test_a_manifest_that_another_writes_while_it_is_read_has_what_the_store_has(sealed: Path) -> None:
    """As a compaction does when it has swapped blocks: the sealer takes those that were dropped out at that moment."""
    with Store.open(sealed, durability="no") as store, rlite_pubsub.Redis(sealed) as client:

        class Place(LocalPlace):
            swapped: BlockInfo | None = None

            def read(self, path: str, start: int = 0, length: int | None = None) -> bytes:
                text = super().read(path, start, length)
                if path.endswith("_manifest.json") and self.swapped is None:
                    self.swapped = swap_first_block(store, self)
                return text

        place = Place(sealed / "cold")
        plan = sealing.SealingPlan(BLOCK_BYTES, 0, 3_600_000)
        sealer = sealing.Sealer(store, place, "", plan, lambda: int(time.time() * 1000))
        client.xtrim("t", minid="3000-0", approximate=False)
        sealer.sweep()
        assert place.swapped is not None
        there = manifest.read(place, str(manifest_file(sealed).relative_to(sealed / "cold"))).blocks
        assert place.swapped.path in {block.path for block in there}


def swap_first_block(store: Store, place: LocalPlace) -> BlockInfo:
    """Do as a compaction does: another file for the first block, in the store and then in the manifest."""
    [(number, owner)] = store.data.read(lambda txn: list(owners(txn)))
    home = store.data.read(cold_home.get)
    assert home is not None
    old = store.data.read(lambda txn: next(cold_blocks.forward(txn, number)))
    new = dataclasses.replace(old, path=old.path.replace(".parquet", "-1.parquet"))
    LocalPlace.write(place, new.path, (place.folder / old.path).read_bytes())
    assert store.data.write(lambda txn: cold_blocks.swap(txn, number, [old.first], new, DUE_MS))
    now = store.data.read(lambda txn: list(cold_blocks.forward(txn, number)))
    manifest.write(LocalPlace(place.folder), manifest.of(Origin(home.store, owner.record.name, number), now))
    return new


def test_a_block_that_was_written_while_its_topic_went_does_not_stay(sealed: Path) -> None:
    """As a queue goes that is moved to another member."""
    with Store.open(sealed, durability="no") as store, rlite_pubsub.Redis(sealed) as client:

        class Place(LocalPlace):
            def write(self, path: str, data: bytes | memoryview) -> None:
                super().write(path, data)
                if path.endswith(".parquet"):
                    client.delete("u")

        plan = sealing.SealingPlan(BLOCK_BYTES, 0, 3_600_000)
        sealer = sealing.Sealer(store, Place(sealed / "cold"), "", plan, lambda: int(time.time() * 1000))
        before = sorted((sealed / "cold").rglob("*.parquet"))
        with client.pipeline() as pipe:
            for number in range(1, 4001):
                pipe.xadd("u", {"n": "x" * 300}, id=f"{number}-0")
            pipe.execute()
        sealer.seal_due()
        assert not client.exists("u")
        assert sorted((sealed / "cold").rglob("*.parquet")) == before
        assert [path for path in (sealed / "cold" / "u").rglob("*") if path.is_file()] == []


def test_topic_that_was_trimmed_within_a_chunk_fits_while_it_is_sealed(
    folder: Path, seal: Callable[..., Sealer]
) -> None:
    with rlite_pubsub.Redis(folder) as client:
        with client.pipeline() as pipe:
            for number in range(1, 2001):
                pipe.xadd("t", {"n": "x" * 300}, id=f"{number}-0")
            pipe.execute()
        client.xtrim("t", minid="6-0", approximate=False)
    assert seal(folder, BLOCK_BYTES, failpoint="cold-begun").exit_code() == -signal.SIGKILL
    assert blocks_of(folder) == 1
    assert found(folder) == []


def block_file(folder: Path) -> Path:
    return next(iter(sorted((folder / "cold").rglob("*.parquet"))))


def manifest_file(folder: Path) -> Path:
    return next((folder / "cold").rglob("_manifest.json"))


def test_block_that_is_missing_is_found(sealed: Path) -> None:
    block_file(sealed).unlink()
    assert any("cold store: " in fault for fault in found(sealed))


def test_block_that_is_damaged_is_found(sealed: Path) -> None:
    file = block_file(sealed)
    written = bytearray(file.read_bytes())
    written[len(written) // 2] ^= 1
    file.write_bytes(written)
    assert any("cold store: " in fault and ".parquet" in fault for fault in found(sealed)), found(sealed)


def test_manifest_that_is_missing_is_found(sealed: Path) -> None:
    manifest_file(sealed).unlink()
    assert any("is in no manifest as the store has it" in fault for fault in found(sealed))


def test_manifest_that_is_damaged_is_found(sealed: Path) -> None:
    file = manifest_file(sealed)
    file.write_text(file.read_text().replace('"count": ', '"count": 1', 1))
    assert any("cold store: " in fault and "is not what was written" in fault for fault in found(sealed))


@pytest.mark.parametrize(
    ("database", "at", "told"),
    [
        (databases.COLD, 0, "says that it has 3998 entries"),
        (databases.COLD, 1, "entries in its blocks, and has"),
        (databases.TOMBSTONES, 0, "entries in its blocks, and has"),
    ],
    ids=["how far it is sealed", "a block", "what is deleted in a block"],
)
def test_record_that_is_missing_is_found(sealed: Path, database: bytes, at: int, told: str) -> None:
    with Store.open(sealed) as store:
        store.data.write(lambda txn: txn.delete(list(databases.items(txn, database))[at][0]))
    assert any(told in fault for fault in found(sealed)), found(sealed)


def test_block_of_several_topics_that_does_not_say_so_is_found(sealed: Path) -> None:
    with rlite_pubsub.Redis(sealed) as client:
        client.copy("t", "copy")
    with Store.open(sealed) as store:
        store.data.write(lambda txn: txn.delete(next(databases.items(txn, databases.COLD + bytes(8)))[0]))
    assert any("are said to be of several topics" in fault for fault in found(sealed))


def test_block_that_is_to_be_removed_and_is_needed_is_found(sealed: Path) -> None:
    def drop(txn: Txn) -> None:
        path = next(cold_blocks.forward(txn, topic_of(txn))).path.encode()
        txn.put(databases.DROPPED_BLOCKS + (2**60).to_bytes(8, "big") + path, b"")

    with Store.open(sealed) as store:
        store.data.write(drop)
    assert any("is to be removed, and a topic has it" in fault for fault in found(sealed))
