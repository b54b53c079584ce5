"""A power cut is played: only what was synced is sure to be on the disk; of what was written since, any page may be."""

from __future__ import annotations

import fcntl
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import lmdb
import pytest

from rlite_pubsub.storage.checkpoints import checkpoint, deltas
from rlite_pubsub.storage.checkpoints.checkpoint import Checkpoint, restore, safe_path
from rlite_pubsub.storage.checkpoints.deltas import delta_path
from rlite_pubsub.storage.databases import FORMAT
from rlite_pubsub.storage.errors import StoreDamaged, StoreUnwritable
from rlite_pubsub.storage.lmdb_environment import LmdbEnvironment
from rlite_pubsub.storage.store import Store

PAGE = 4096
STAYS = {b"stays %04d" % number: b"%d" % number * (900 if number % 9 == 0 else 10) for number in range(400)}


class Disk:
    """What is on the disk for sure of one file, beside what the kernel has."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.synced = b""

    def sync(self) -> None:
        self.synced = self.path.read_bytes()

    def after_a_power_cut(self, luck: random.Random) -> bytes:
        """Each page that was written since the last sync may have reached the disk, or not."""
        written = self.path.read_bytes()
        pages = []
        for at in range(0, len(written), PAGE):
            new, old = written[at : at + PAGE], self.synced[at : at + PAGE].ljust(PAGE, b"\0")
            pages.append(new if luck.random() < 0.5 else old[: len(new)])
        return b"".join(pages)


class Machine:
    """An environment with checkpoints on a disk that can lose power."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "data.mdb"
        self.disk = Disk(self.path)
        self.lmdb = lmdb.Environment(
            str(self.path), subdir=False, map_size=1 << 28, sync=False, metasync=False, max_spare_txns=0
        )
        with self.lmdb.begin(write=True) as txn:
            for key, value in STAYS.items():
                txn.put(key, value)
        self.checkpoint = self.process()

    def process(self, **limits: int) -> Checkpoint:
        """What one more process has of it."""
        return Checkpoint(self.path, self.lmdb.begin, self.disk.sync, **limits)

    def put(self, number: int) -> int:
        """Write some records that depend on the number, over those before; the transaction."""
        with self.lmdb.begin(write=True) as txn:
            for key in range(40):
                txn.put(b"%d" % key, b"%d" % number * 300)
            transaction = txn.id()
        return transaction


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    machine = Machine(tmp_path)
    yield machine
    machine.checkpoint.release()
    machine.lmdb.close()


def boot(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    monkeypatch.setattr(checkpoint, "boot_id", lambda: b"boot-%031d" % number)


def contents(path: Path) -> set[bytes]:
    """Every value there is."""
    environment = lmdb.Environment(str(path), subdir=False, map_size=1 << 28, sync=False, lock=False)
    with environment.begin() as txn:
        found = {bytes(key): bytes(value) for key, value in txn.cursor()}
    environment.close()
    assert {key: found.pop(key) for key in STAYS} == STAYS
    assert len(found) == 40
    return set(found.values())


def after_a_power_cut(machine: Machine, folder: Path, luck: random.Random) -> Path:
    """A copy of what is on the disk then."""
    folder.mkdir()
    path = folder / "data.mdb"
    path.write_bytes(machine.disk.after_a_power_cut(luck))
    for name in (safe_path, delta_path):
        name(path).write_bytes(name(machine.path).read_bytes())
    return path


@pytest.mark.parametrize("seed", range(30))
def test_after_a_power_cut_the_store_is_as_it_was_at_its_last_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Two that write take turns, as two processes do; each holds its own pin."""
    luck = random.Random(seed)
    delta_bytes = luck.choice([0, 100, 300, 4000]) * PAGE
    boot(monkeypatch, 1)
    machine = Machine(tmp_path)
    machine.checkpoint, other = (machine.process(delta_bytes=delta_bytes) for _ in range(2))
    number, safe = 0, -1
    for one in (machine.checkpoint, other):
        one.take()
    for _ in range(luck.randrange(2, 12)):
        for _ in range(luck.randrange(1, 12)):
            number += 1
            machine.put(number)
        luck.choice([machine.checkpoint, other]).take()
        safe = number
    for _ in range(luck.randrange(0, 25)):
        number += 1
        machine.put(number)
    lost = after_a_power_cut(machine, tmp_path / "after", luck)
    boot(monkeypatch, 2)
    restore(lost)
    assert contents(lost) == {b"%d" % safe * 300}
    other.release()
    machine.checkpoint.release()
    machine.lmdb.close()


@pytest.mark.parametrize("seed", range(10))
def test_a_power_cut_in_the_midst_of_a_delta_leaves_the_checkpoint_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    luck = random.Random(seed)
    boot(monkeypatch, 1)
    machine = Machine(tmp_path)
    for number in range(1, luck.randrange(3, 9)):
        machine.put(number)
        machine.checkpoint.take()
    safe, before = number, delta_path(machine.path).read_bytes()
    for _ in range(20):
        number += 1
        machine.put(number)
    lost = after_a_power_cut(machine, tmp_path / "after", luck)
    machine.checkpoint.take()
    torn, whole = bytearray(before), delta_path(machine.path).read_bytes()
    sectors = [at for at in range(0, len(before), 512) if before[at : at + 512] != whole[at : at + 512]]
    for at in luck.sample(sectors, luck.randrange(len(sectors))):
        torn[at : at + 512] = whole[at : at + 512]
    delta_path(lost).write_bytes(torn)
    boot(monkeypatch, 2)
    restore(lost)
    assert contents(lost) == {b"%d" % safe * 300}
    machine.checkpoint.release()
    machine.lmdb.close()


def test_going_back_that_is_cut_off_is_done_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, machine: Machine
) -> None:
    boot(monkeypatch, 1)
    machine.checkpoint = machine.process()
    for number in range(1, 6):
        machine.put(number)
        machine.checkpoint.take()
    machine.put(6)
    for writes in range(40):
        lost = after_a_power_cut(machine, tmp_path / f"after {writes}", random.Random(writes))
        boot(monkeypatch, 2)
        with monkeypatch.context() as cut:
            cut.setattr(os, "pwrite", PowerFails(writes))
            try:
                restore(lost)
                is_over = True
            except PowerFailed:
                is_over = False
        boot(monkeypatch, 3)
        restore(lost)
        assert contents(lost) == {b"5" * 300}
        boot(monkeypatch, 1)
    assert is_over  # and was cut off at each of its steps


class PowerFailed(Exception):
    """It is dark."""


class PowerFails:
    """After so many writes, in the middle of one."""

    def __init__(self, writes: int) -> None:
        self._left = writes
        self._pwrite = os.pwrite

    def __call__(self, descriptor: int, data: bytes, at: int) -> int:
        if not self._left:
            self._pwrite(descriptor, data[: len(data) // 2], at)
            raise PowerFailed
        self._left -= 1
        return self._pwrite(descriptor, data, at)


def test_a_store_that_was_new_at_its_checkpoint_is_new_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Transaction 0 has none before it."""
    boot(monkeypatch, 1)
    path = tmp_path / "data.mdb"
    environment = lmdb.Environment(str(path), subdir=False, sync=False, metasync=False, max_spare_txns=0)
    taken = Checkpoint(path, environment.begin, lambda: environment.sync(True))
    assert taken.take() == 0
    for number in range(3):
        with environment.begin(write=True) as txn:
            txn.put(b"a", b"%d" % number)
    taken.release()
    environment.close()
    boot(monkeypatch, 2)
    assert restore(path) == 3
    environment = lmdb.Environment(str(path), subdir=False, sync=False)
    with environment.begin(write=True) as txn:
        assert txn.get(b"a") is None
        assert txn.put(b"b", b"c")
    environment.close()


def test_little_that_was_changed_is_saved_without_a_sync(machine: Machine) -> None:
    machine.checkpoint.take()
    synced = machine.disk.synced
    assert synced
    machine.put(1)
    number = machine.checkpoint.take()
    assert machine.disk.synced is synced
    assert machine.checkpoint.safe == number


def test_what_is_one_short_write_is_done_at_once(machine: Machine) -> None:
    machine.checkpoint.take()
    number = machine.put(1)
    assert machine.checkpoint.take_at_once()
    assert machine.checkpoint.safe == number
    machine.checkpoint.release()
    assert not machine.checkpoint.take_at_once()
    assert "no active readers" in machine.lmdb.readers()


def test_what_is_more_than_one_short_write_is_not_done_at_once(machine: Machine) -> None:
    machine.checkpoint = machine.process(most_pages=3)
    number = machine.checkpoint.take()
    machine.put(2)
    synced = machine.disk.synced
    assert not machine.checkpoint.take_at_once()
    assert (machine.checkpoint.safe, machine.disk.synced) == (number, synced)
    machine.checkpoint.release()
    assert "no active readers" in machine.lmdb.readers()


def test_what_is_done_at_once_waits_for_nobody(machine: Machine) -> None:
    machine.checkpoint.take()
    machine.put(1)
    holder = os.open(safe_path(machine.path), os.O_RDWR)
    fcntl.flock(holder, fcntl.LOCK_EX)
    assert not machine.checkpoint.take_at_once()
    os.close(holder)
    with machine.checkpoint._lock:
        assert not machine.checkpoint.take_at_once()
    assert machine.checkpoint.take_at_once()


def test_much_that_was_changed_is_synced_where_it_is(machine: Machine) -> None:
    machine.checkpoint = machine.process(most_pages=3)
    machine.checkpoint.take()
    synced = machine.disk.synced
    machine.put(1)
    machine.checkpoint.take()
    assert machine.disk.synced is not synced


def test_after_one_with_much_only_every_so_many_are_looked_at(machine: Machine) -> None:
    machine.checkpoint = machine.process(most_pages=3)
    machine.checkpoint.take()
    left = []
    for number in range(2 * (deltas.MUCH_AGAIN + 1)):
        machine.put(number)
        machine.checkpoint.take()
        left.append(machine.checkpoint._much)
    assert left == 2 * [*range(deltas.MUCH_AGAIN, -1, -1)]


def test_without_a_pin_that_protects_the_last_checkpoint_there_is_no_delta(machine: Machine) -> None:
    """Its pages may have been used again since."""
    machine.checkpoint.take()
    machine.put(1)
    machine.checkpoint.release()
    synced = machine.disk.synced
    machine.checkpoint.take()
    assert machine.disk.synced is not synced


def test_a_delta_that_cannot_be_written_is_no_obstacle(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.checkpoint.take()
    synced = machine.disk.synced
    number = machine.put(1)
    pwrite = os.pwrite

    def into_a_full_disk(to: int, data: bytes, at: int) -> int:
        return _no_space() if os.readlink(f"/proc/self/fd/{to}").endswith(".delta") else pwrite(to, data, at)

    monkeypatch.setattr(os, "pwrite", into_a_full_disk)
    assert machine.checkpoint.take() == number
    assert machine.disk.synced is not synced


_LOOK = """
import sys, lmdb
txn = lmdb.Environment(sys.argv[1], subdir=False, map_size=1 << 28, sync=False, lock=False).begin()
values = [bytes(value) for key, value in txn.cursor() if not bytes(key).startswith(b"stays")]
sys.exit(len(set(values)) != 1 or len(values) != 40)
"""


def test_without_a_checkpoint_the_same_power_cut_can_destroy_the_store(tmp_path: Path) -> None:
    """Why all this: the test above can fail."""
    destroyed = 0
    for seed in range(8):
        luck = random.Random(seed)
        folder = tmp_path / str(seed)
        folder.mkdir()
        machine = Machine(folder)
        for number in range(5):
            machine.put(number)
        machine.disk.sync()
        for number in range(5, 20):
            machine.put(number)
        after = folder / "after.mdb"
        after.write_bytes(machine.disk.after_a_power_cut(luck))
        machine.lmdb.close()
        look = [sys.executable, "-c", _LOOK, str(after)]
        destroyed += subprocess.run(look, capture_output=True, check=False).returncode != 0  # LMDB may abort there
    assert destroyed


def test_a_killed_process_takes_nothing_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, machine: Machine) -> None:
    machine.checkpoint.take()
    machine.put(1)
    assert restore(machine.path) == 0
    with machine.lmdb.begin() as txn:
        assert txn.get(b"1") == b"1" * 300


def test_the_second_start_after_a_power_cut_takes_nothing_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    boot(monkeypatch, 1)
    with Store.open(tmp_path) as store:
        store.data.write(lambda txn: txn.put(b"zz1", b"x"))
        store.data.sync()
        path = tmp_path / "data.mdb"
        saved, safe = path.read_bytes(), safe_path(path).read_bytes()
    path.write_bytes(saved)
    safe_path(path).write_bytes(safe)
    boot(monkeypatch, 2)
    with Store.open(tmp_path) as store:
        store.data.write(lambda txn: txn.put(b"zz2", b"y"))
    with Store.open(tmp_path) as store:
        assert store.data.read(lambda txn: (txn.get(b"zz1"), txn.get(b"zz2"))) == (b"x", b"y")


def test_a_torn_slot_is_not_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, machine: Machine) -> None:
    boot(monkeypatch, 1)
    machine.checkpoint = machine.process(most_pages=0)
    machine.put(1)
    first = machine.checkpoint.take()
    machine.put(2)
    assert machine.checkpoint.take() == first + 1
    path = safe_path(machine.path)
    slots = bytearray(path.read_bytes())
    read = checkpoint._read_slots(os.open(path, os.O_RDONLY))
    newer = max((0, 1), key=lambda place: (read[place] or (0,))[0])
    slots[newer * checkpoint.SLOT_BYTES + 100] ^= 1
    path.write_bytes(slots)
    boot(monkeypatch, 2)
    assert restore(machine.path) == 1


def test_nothing_is_written_before_there_is_a_pin(tmp_path: Path) -> None:
    environment = LmdbEnvironment(tmp_path / "data.mdb", "no", quota_bytes=1 << 24, checkpointed=True)
    assert not safe_path(tmp_path / "data.mdb").exists()
    environment.write(lambda txn: txn.put(b"a", b"b"))
    assert safe_path(tmp_path / "data.mdb").exists()
    assert environment.safety.is_pinned
    environment.close()


def test_pages_that_a_checkpoint_needs_are_not_used_again_until_the_next(machine: Machine) -> None:
    machine.put(0)
    machine.checkpoint.take()
    for number in range(50):
        machine.put(number)
    grown = machine.lmdb.info()["last_pgno"]
    for _ in range(10):
        machine.checkpoint.take()
        for number in range(20):
            machine.put(number)
    assert machine.lmdb.info()["last_pgno"] <= grown


def test_a_checkpoint_that_cannot_be_saved_is_an_error_and_protects_the_one_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = LmdbEnvironment(tmp_path / "data.mdb", "everysec", quota_bytes=1 << 24, checkpointed=True)
    environment.write(lambda txn: txn.put(b"a", b"b"))
    assert environment.safety.checkpoint is not None
    pin = environment.safety.checkpoint.pin
    monkeypatch.setattr(os, "pwrite", _no_space)
    environment.write(lambda txn: txn.put(b"a", b"c"))
    with pytest.raises(StoreUnwritable):
        environment.sync()
    assert environment.safety.checkpoint.pin is pin
    monkeypatch.undo()
    environment.sync()
    environment.close()


def _no_space(*_: object) -> NoReturn:
    raise OSError(28, "No space left on device")


def test_of_checkpoints_that_end_in_another_order_the_latest_stays(machine: Machine) -> None:
    machine.put(1)
    first = machine.checkpoint.begin()
    machine.put(2)
    second = machine.checkpoint.begin()
    assert machine.checkpoint.finish(second) == second.number
    assert machine.checkpoint.finish(first) == first.number
    assert machine.checkpoint.safe == second.number
    saved = [slot[0] for slot in checkpoint._read_slots(os.open(safe_path(machine.path), os.O_RDONLY)) if slot]
    assert max(saved) == second.number
    assert machine.checkpoint.pin is second.pin


def test_a_checkpoint_that_was_released_under_way_is_taken_anew(machine: Machine) -> None:
    machine.put(1)
    begun = machine.checkpoint.begin()
    machine.checkpoint.release()
    later = machine.put(2)
    assert machine.checkpoint.finish(begun) == later
    assert machine.checkpoint.pin is not None


def test_what_was_begun_and_is_never_finished_holds_nothing_once_released(machine: Machine) -> None:
    machine.checkpoint.begin()
    machine.checkpoint.take()
    machine.checkpoint.release()
    assert "no active readers" in machine.lmdb.readers()


def test_a_new_file_goes_back_to_its_first_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is of transaction 0, and there is none before."""
    path = tmp_path / "data.mdb"

    def opened() -> lmdb.Environment[bytes]:
        return lmdb.Environment(str(path), subdir=False, map_size=1 << 28, sync=False, max_spare_txns=0)

    boot(monkeypatch, 1)
    with opened() as environment:
        first = Checkpoint(path, environment.begin, lambda: None)
        assert first.take() == 0
        with environment.begin(write=True) as txn:
            txn.put(b"key", b"value")
        first.release()
    boot(monkeypatch, 2)
    assert restore(path) == 1
    with opened() as environment:
        assert environment.stat()["entries"] == 0


@pytest.mark.parametrize("left", [b"", b"\0" * PAGE, b"\0" * 2 * PAGE])
def test_a_new_store_of_which_nothing_was_ever_safe_is_begun_anew(tmp_path: Path, left: bytes) -> None:
    (tmp_path / "data.mdb").write_bytes(left)
    with Store.open(tmp_path) as store:
        assert store.data.last_commit() == 1


def test_a_larger_file_of_no_checkpoint_is_not_taken_for_a_new_one(tmp_path: Path) -> None:
    (tmp_path / "data.mdb").write_bytes(b"x" * 3 * PAGE)
    with pytest.raises(StoreDamaged):
        Store.open(tmp_path)
    assert (tmp_path / "data.mdb").read_bytes() == b"x" * 3 * PAGE


def test_a_store_whose_mark_is_missing_is_damaged_and_not_another_programs(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        store.data.write(lambda txn: txn.put(b"kkey", b"value"))
        store.data.write(lambda txn: txn.delete(FORMAT))
    with pytest.raises(StoreDamaged, match="its mark is missing"):
        Store.open(tmp_path)


def test_what_another_start_of_the_machine_left_of_the_live_half_is_not_even_opened(tmp_path: Path) -> None:
    """LMDB reads torn pages as they are, and may find whatever it likes there, or crash."""
    with Store.open(tmp_path) as store:
        store.live.write(lambda txn: txn.delete(FORMAT))
        store.live.write(lambda txn: txn.put(b"of", b"the dead"))
    (tmp_path / "store.lock").write_bytes(b"another start of the machine")
    with Store.open(tmp_path) as store:
        assert store.live.read(lambda txn: txn.get(b"of")) is None
