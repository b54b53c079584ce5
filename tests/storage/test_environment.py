"""One environment: it grows, it fills, its disk fills, others grow it, kill -9; and nothing committed is lost."""

from __future__ import annotations

import itertools
import os
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from patience import PATIENCE_S, until

from rlite_pubsub.storage.checkpoints import safety
from rlite_pubsub.storage.environment import Environment, Txn
from rlite_pubsub.storage.errors import StoreClosed, StoreFull, StoreUnwritable
from rlite_pubsub.storage.lmdb_environment import FIRST_MAP_BYTES, LmdbEnvironment
from rlite_pubsub.storage.locks.gate import NestedTransaction

MB = 1 << 20


@pytest.fixture
def environment(tmp_path: Path) -> Iterator[Environment]:
    opened = LmdbEnvironment(tmp_path / "x.mdb", "no", quota_bytes=1 << 30)
    yield opened
    opened.close()


def put(environment: Environment, key: bytes, value: bytes) -> None:
    environment.write(lambda txn: txn.put(key, value))


def get(environment: Environment, key: bytes) -> bytes | None:
    return environment.read(lambda txn: txn.get(key))


def fill(environment: Environment) -> int:
    """Put values until there is no room; how many there were."""
    for number in range(1_000_000):
        try:
            put(environment, b"%09d" % number, b"x" * 500)
        except StoreFull:
            return number
    raise AssertionError("it never fills")


def remove_every_seventh(txn: Txn, first: int) -> None:
    for key in list(txn.cursor().iternext(values=False)):
        if int(key) % 7 == first:
            txn.delete(key)


def test_a_full_map_grows_and_the_work_is_run_again_from_the_start(environment: Environment) -> None:
    runs: list[int] = []

    def work(txn: Txn) -> int:
        runs.append(1)
        for number in range(3):
            txn.put(b"%d" % number, b"x" * FIRST_MAP_BYTES)
        return int(txn.stat()["entries"])

    assert environment.write(work) == 3
    assert len(runs) > 1


def test_a_large_value_comes_back_whole(environment: Environment) -> None:
    value = os.urandom(MB) * 40
    put(environment, b"large", value)
    assert get(environment, b"large") == value


def test_work_that_raises_leaves_nothing(environment: Environment) -> None:
    def work(txn: Txn) -> None:
        txn.put(b"half", b"done")
        raise LookupError

    with pytest.raises(LookupError):
        environment.write(work)
    assert get(environment, b"half") is None


def test_a_full_store_says_so_and_keeps_what_was_committed(tmp_path: Path) -> None:
    environment = LmdbEnvironment(tmp_path / "x.mdb", "no", quota_bytes=2 * MB)
    count = fill(environment)
    with pytest.raises(StoreFull, match=f"{tmp_path}/x.mdb is full: its quota is {2 * MB} bytes"):
        put(environment, b"z", b"x" * 10_000)
    assert count > 1000
    assert environment.read(lambda txn: txn.stat()["entries"]) == count
    environment.close()


def test_a_full_store_can_be_emptied_again_and_again_and_keeps_to_its_quota(tmp_path: Path) -> None:
    environment = LmdbEnvironment(tmp_path / "x.mdb", "no", quota_bytes=2 * MB)
    counts = []
    for _ in range(5):
        counts.append(fill(environment))
        for first in range(7):  # all over the file, so that nearly every page has to be copied first
            environment.write(lambda txn, first=first: remove_every_seventh(txn, first), freeing=True)
        assert environment.read(lambda txn: txn.stat()["entries"]) == 0
    assert max(counts) < min(counts) * 1.2  # the reserve is not for filling, not even once it has been opened
    environment.close()


def test_a_reserve_that_another_process_has_opened_is_not_for_filling_either(tmp_path: Path, start) -> None:  # type: ignore[no-untyped-def]
    environment = LmdbEnvironment(tmp_path / "x.mdb", "no", quota_bytes=2 * MB)
    count = fill(environment)
    other = start(
        """
        import sys
        from pathlib import Path
        from rlite_pubsub.storage.lmdb_environment import LmdbEnvironment
        environment = LmdbEnvironment(Path(sys.argv[1]), "no", quota_bytes=2 << 20)
        for first in range(7):
            environment.write(
                lambda txn: [txn.delete(key) for key, _ in list(txn.cursor()) if int(key) % 7 == first], freeing=True
            )
        environment.close()
        """,
        environment.path,
    )
    assert other.end() == 0
    assert environment.used_bytes() > 3 * MB
    assert count * 0.8 < fill(environment) < count * 1.2
    environment.close()


def test_a_map_that_another_process_has_grown_is_adopted(environment: Environment, start) -> None:  # type: ignore[no-untyped-def]
    put(environment, b"ours", b"1")
    other = start(
        """
        import sys
        from pathlib import Path
        from rlite_pubsub.storage.lmdb_environment import LmdbEnvironment
        environment = LmdbEnvironment(Path(sys.argv[1]), "no", quota_bytes=1 << 30)
        for number in range(4):
            environment.write(lambda txn: txn.put(b"theirs%d" % number, b"x" * (20 << 20)))
            print("grown", flush=True)
            sys.stdin.readline()
        environment.close()
        """,
        environment.path,
    )
    for number in range(4):
        assert other.line() == "grown"
        assert len(get(environment, b"theirs%d" % number) or b"") == 20 * MB
        put(environment, b"ours", b"%d" % number)
        other.tell()
    assert other.end() == 0
    assert get(environment, b"ours") == b"3"


def test_a_map_is_not_replaced_under_an_open_transaction(environment: Environment) -> None:
    put(environment, b"key", b"value")
    inside, leave = threading.Event(), threading.Event()
    seen: list[bytes | None] = []

    def look(txn: Txn) -> None:
        inside.set()
        leave.wait(PATIENCE_S)
        seen.append(txn.get(b"key"))

    def large(txn: Txn) -> None:
        txn.put(b"large", b"x" * 2 * FIRST_MAP_BYTES)

    reader = threading.Thread(target=environment.read, args=(look,))
    writer = threading.Thread(target=environment.write, args=(large,))
    reader.start()
    inside.wait(PATIENCE_S)
    writer.start()
    gate = environment.handle.gate
    until(lambda: gate.owner == writer.ident or not writer.is_alive(), "the writer's wish to be alone")
    assert environment.handle.lmdb.info()["map_size"] == FIRST_MAP_BYTES
    leave.set()
    reader.join()
    writer.join()
    assert seen == [b"value"]
    assert len(get(environment, b"large") or b"") == 2 * FIRST_MAP_BYTES


def test_a_transaction_inside_another_is_refused(environment: Environment) -> None:
    with pytest.raises(NestedTransaction):
        environment.read(lambda _: put(environment, b"a", b"b"))
    with pytest.raises(NestedTransaction):
        environment.write(lambda _: put(environment, b"a", b"b"))
    put(environment, b"a", b"c")
    assert get(environment, b"a") == b"c"


def test_more_readers_than_lmdb_has_by_default(environment: Environment) -> None:
    together = threading.Barrier(200)
    threads = [
        threading.Thread(target=environment.read, args=(lambda _: together.wait(PATIENCE_S),), daemon=True)
        for _ in range(200)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert not together.broken
    assert environment.handle.lmdb.info()["num_readers"] >= 200


def test_a_reader_killed_in_mid_read_does_not_keep_pages_forever(tmp_path: Path, start) -> None:  # type: ignore[no-untyped-def]
    environment = LmdbEnvironment(tmp_path / "x.mdb", "no", quota_bytes=4 * MB)
    put(environment, b"key", b"x" * MB)
    reader = start(
        """
        import sys
        from pathlib import Path
        from rlite_pubsub.storage.lmdb_environment import LmdbEnvironment
        environment = LmdbEnvironment(Path(sys.argv[1]), "no", quota_bytes=4 << 20)
        environment.read(lambda txn: (print("inside", flush=True), sys.stdin.read()))
        """,
        environment.path,
    )
    assert reader.line() == "inside"
    reader.kill()
    for number in range(20):
        put(environment, b"key", bytes([number]) * MB)
    assert environment.used_bytes() <= 4 * MB
    environment.close()


def test_a_writer_killed_in_mid_transaction_leaves_nothing_and_frees_the_others(
    environment: Environment, start  # type: ignore[no-untyped-def]
) -> None:
    writer = start(
        """
        import sys
        from pathlib import Path
        from rlite_pubsub.storage.lmdb_environment import LmdbEnvironment
        environment = LmdbEnvironment(Path(sys.argv[1]), "no", quota_bytes=1 << 30)
        environment.write(lambda txn: txn.put(b"whole", b"1"))
        environment.write(lambda txn: (txn.put(b"half", b"1"), print("inside", flush=True), sys.stdin.read()))
        """,
        environment.path,
    )
    assert writer.line() == "inside"
    writer.kill()
    put(environment, b"ours", b"2")
    assert [get(environment, key) for key in (b"whole", b"half", b"ours")] == [b"1", None, b"2"]


@pytest.mark.parametrize("page_comes_free", [False, True], ids=["full", "a page has come free when it is asked why"])
def test_a_full_disk_is_an_error_and_nothing_is_half_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, page_comes_free: bool
) -> None:
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", tmp_path], capture_output=True)
    if mounted.returncode != 0:
        pytest.skip(f"no file system of 2 MB can be mounted here: {mounted.stderr!r}")
    try:
        environment = LmdbEnvironment(tmp_path / "x.mdb", "always", quota_bytes=64 * MB)
        put(environment, b"before", b"x" * 1000)
        if page_comes_free:
            monkeypatch.setattr(os, "posix_fallocate", lambda descriptor, at, size: None)
        for _ in range(3):
            with pytest.raises(StoreUnwritable, match="No space left on device"):
                environment.write(lambda txn: (txn.put(b"small", b"y"), txn.put(b"large", b"x" * 4 * MB)))
        assert get(environment, b"before") == b"x" * 1000
        assert get(environment, b"small") is None
        put(environment, b"after", b"z")
        environment.close()
    finally:
        subprocess.run(["umount", "-l", tmp_path], check=True)


def test_a_file_that_may_not_grow_is_an_error_and_nothing_is_half_written(tmp_path: Path, start) -> None:  # type: ignore[no-untyped-def]
    program = start(
        """
        import resource, sys
        from pathlib import Path
        from rlite_pubsub.storage.lmdb_environment import LmdbEnvironment
        from rlite_pubsub.storage.errors import StoreUnwritable
        environment = LmdbEnvironment(Path(sys.argv[1]), "no", quota_bytes=1 << 30)
        environment.write(lambda txn: txn.put(b"before", b"1"))
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
        try:
            environment.write(lambda txn: (txn.put(b"half", b"1"), txn.put(b"large", b"x" * (2 << 20))))
        except StoreUnwritable as error:
            print(error.reason)
        print(*environment.read(lambda txn: [key.decode() for key, _ in txn.cursor()]))
        """,
        tmp_path / "x.mdb",
    )
    assert program.line() == "File too large"
    assert program.line() == "before"
    assert program.end() == 0


@pytest.mark.parametrize(("durability", "syncs"), [("always", 3), ("everysec", 0), ("no", 0)])
def test_durability_decides_whether_a_commit_is_synced(
    tmp_path: Path, durability: str, syncs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = LmdbEnvironment(tmp_path / "x.mdb", durability, quota_bytes=MB)  # type: ignore[arg-type]
    made: list[None] = []
    monkeypatch.setattr(environment.handle, "to_disk", lambda: made.append(None))
    for key in (b"a", b"b", b"c"):
        put(environment, key, b"d")
    assert len(made) == syncs
    environment.close()


def test_a_closed_environment_says_so(environment: Environment) -> None:
    environment.close()
    for use in (lambda: put(environment, b"a", b"b"), lambda: get(environment, b"a"), environment.sync):
        with pytest.raises(StoreClosed):
            use()


def test_who_has_a_smaller_quota_than_a_store_has_taken_can_still_remove(tmp_path: Path) -> None:
    larger = LmdbEnvironment(tmp_path / "x.mdb", "no", quota_bytes=1 << 30)
    for number in range(80):
        put(larger, b"%09d" % number, b"x" * MB)
    larger.close()
    environment = LmdbEnvironment(tmp_path / "x.mdb", "no", quota_bytes=2 * MB)
    with pytest.raises(StoreFull):
        put(environment, b"more", b"x" * MB)
    for number in range(79):
        environment.write(lambda txn, number=number: txn.delete(b"%09d" % number), freeing=True)
    put(environment, b"more", b"x" * 1000)
    environment.close()


class SlowDisk:
    """Each write of a delta takes as long as it is told to, by the clock that it is asked for."""

    def __init__(self) -> None:
        self.takes_s = 0.0
        self._now = 0.0
        self._pwrite = os.pwrite

    def perf_counter(self) -> float:
        return self._now

    def pwrite(self, to: int, data: bytes, at: int) -> int:
        self._now += self.takes_s
        return self._pwrite(to, data, at)


def test_a_disk_that_was_slow_is_not_waited_for_until_it_has_been_quick(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow_s, disk = 2 * safety.MOMENT_SECONDS, SlowDisk()
    data = LmdbEnvironment(tmp_path / "data.mdb", "everysec", quota_bytes=1 << 24, checkpointed=True)
    numbers = itertools.count()

    def is_synced_at_once(takes_s: float) -> bool:
        put(data, b"a", b"%d" % next(numbers))
        disk.takes_s = takes_s
        return data.safety.sync_at_once()

    monkeypatch.setattr(safety, "perf_counter", disk.perf_counter)
    monkeypatch.setattr(os, "pwrite", disk.pwrite)
    put(data, b"a", b"")
    data.sync()
    for takes_s in [0.0] + [slow_s] * (safety.DELAYS - 1) + [0.0] + [slow_s] * safety.DELAYS:
        assert is_synced_at_once(takes_s)
    for takes_s in [slow_s] * 3 + [0.0] * safety.MOMENTS:
        assert not is_synced_at_once(0.0)
        disk.takes_s = takes_s
        data.sync()
    assert is_synced_at_once(0.0)
    monkeypatch.undo()
    data.close()


@pytest.mark.sources("raises a limit that is compiled in")
def test_after_many_writes_there_is_a_checkpoint_so_that_the_file_stays_small(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(safety, "MOMENT_SECONDS", PATIENCE_S)  # or nobody is there to sync it later
    data = LmdbEnvironment(tmp_path / "data.mdb", "no", quota_bytes=1 << 30, checkpointed=True)
    for _ in range(20 * safety.UNSAFE_WRITES):
        data.write(lambda txn: txn.put(b"a", b"b"))
    assert data.used_bytes() < 4 * safety.UNSAFE_WRITES * 5 * 4096
    data.close()
