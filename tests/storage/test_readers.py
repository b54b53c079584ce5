"""Who has been reading for long: those who keep pages, and nobody else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from patience import until

from rlite_pubsub.storage.checkpoints.syncing import Syncing
from rlite_pubsub.storage.environment import Durability, Environment
from rlite_pubsub.storage.lmdb_environment import LmdbEnvironment
from rlite_pubsub.storage.pages.readers import OLD_SECONDS, ReaderWatch

LINES = "    pid     thread     txnid\n"


class Table:
    """LMDB's, and the last commit."""

    def __init__(self) -> None:
        self.readers: list[str] = []
        self.last_commit = 7
        self.watch = ReaderWatch(lambda: LINES + "\n".join(self.readers), lambda: self.last_commit, lambda _: 0)

    def looked_at(self, *seconds: float) -> list[float]:
        """The ages of the old ones, at the last of these looks."""
        return [[old.age_s for old in self.watch.old_ones(now)] for now in seconds][-1]


def test_one_thread_that_reads_again_and_again_while_nobody_writes_is_not_old() -> None:
    """At each look it is another transaction, which has the same number as the one before."""
    table = Table()
    table.readers = ["12 abc 7"]
    assert table.looked_at(0.0, OLD_SECONDS, 10 * OLD_SECONDS) == []


def test_who_reads_what_others_have_written_over_is_old_after_its_time() -> None:
    table = Table()
    table.readers = ["12 abc 7", "13 abc 8", "14 abc -"]
    table.last_commit = 8
    assert table.looked_at(100.0, 100.0 + OLD_SECONDS / 2) == []
    assert table.looked_at(100.0 + OLD_SECONDS) == [OLD_SECONDS]
    table.last_commit = 9
    assert table.looked_at(101.0 + OLD_SECONDS) == [OLD_SECONDS + 1.0]


@pytest.fixture(params=["always", "everysec", "no"])
def data(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Environment]:
    policy: Durability = request.param
    environment = LmdbEnvironment(tmp_path / "data.mdb", policy, quota_bytes=64 << 20, checkpointed=True)
    yield environment
    environment.close()


def test_the_pin_of_one_who_writes_a_little_all_the_time_never_becomes_old(data: Environment) -> None:
    driver = Syncing(data)
    for tenth in range(1, 601):
        now = 100.0 + tenth / 10
        data.write(lambda txn, number=tenth: txn.put(b"key", b"%d" % number))  # type: ignore[misc]
        driver.cron(now)
        until(lambda: not driver._under_way, "a sync")
        if tenth % 10 == 0:
            assert data.account.watch.old_ones(now) == []
    driver.close()
