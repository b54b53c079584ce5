"""A server's care for its store's files."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlite_pubsub.server.upkeep import QUIET_SECONDS, WASTED_BYTES, Upkeep
from rlite_pubsub.storage.store import Store

MB = 1 << 20
VALUES = WASTED_BYTES // MB + 16


class Seconds:
    """A server's cron, in time that passes when the test says so."""

    def __init__(self, store: Store) -> None:
        self.upkeep = Upkeep(store, lambda: 0, 0.0)
        self.now = 1.0

    def pass_by(self, seconds: float) -> None:
        for _ in range(int(seconds * 10)):
            self.now += 0.1
            self.upkeep.cron(self.now)


def disk_bytes(store: Store) -> int:
    return (store.folder / "data.mdb").stat().st_blocks * 512


def fill(store: Store, first: int, last: int) -> None:
    for number in range(first, last):
        store.data.write(lambda txn, key=b"~%d" % number: txn.put(key, bytes(MB)))


def empty(store: Store, first: int, last: int) -> None:
    for number in range(first, last):
        store.data.write(lambda txn, key=b"~%d" % number: txn.delete(key))
    store.data.sync()
    assert store.data.safety.let_go()


def test_when_nobody_writes_any_more_a_file_that_is_mostly_free_is_given_back(tmp_path: Path) -> None:
    with Store.open(tmp_path / "store") as store:
        fill(store, 0, VALUES)
        empty(store, 2, VALUES)
        seconds = Seconds(store)
        before = disk_bytes(store)
        assert before > WASTED_BYTES
        seconds.pass_by(QUIET_SECONDS - 1)
        assert disk_bytes(store) == before, "whoever goes on soon uses the pages again"
        for _ in range(100):
            seconds.pass_by(QUIET_SECONDS)
        assert disk_bytes(store) < before / 4
        assert store.data.read(lambda txn: txn.get(b"~1")) == bytes(MB)


@pytest.mark.parametrize("kept", [2, VALUES // 2])
def test_pages_that_are_used_again_or_that_are_few_stay(tmp_path: Path, kept: int) -> None:
    with Store.open(tmp_path / "store") as store:
        fill(store, 0, VALUES)
        empty(store, kept, VALUES)
        seconds = Seconds(store)
        before = disk_bytes(store)
        for _ in range(20):
            if kept == 2:
                store.data.write(lambda txn: txn.put(b"~0", b"written"))
            seconds.pass_by(QUIET_SECONDS / 2)
        assert disk_bytes(store) >= before
