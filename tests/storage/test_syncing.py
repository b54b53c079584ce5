"""The one driver of fsync: who must not wait asks, a thread does it, and is there only for that."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from patience import PATIENCE_S, until

from rlite_pubsub.storage import syncing
from rlite_pubsub.storage.errors import StoreError, StoreUnwritable
from rlite_pubsub.storage.syncing import GROWN_BYTES, MOMENT_SECONDS, MOMENTS, Syncing

FAILURE = StoreUnwritable(Path("data.mdb"), "Input/output error")


class Disk:
    """An environment of which every sync says up to which commit it went."""

    durability = "everysec"

    def __init__(self) -> None:
        self.commits = 0
        self.bytes = 0
        self.synced: list[int] = []
        self.failure: StoreError | None = None
        self.is_easy = True  # to be synced at once

    def last_commit(self) -> int:
        return self.commits

    def used_bytes(self) -> int:
        return self.bytes

    def begin_sync(self) -> int:
        return self.commits

    def finish_sync(self, pinned: int) -> None:
        if self.failure is not None:
            raise self.failure
        self.synced.append(pinned)

    def sync(self) -> None:
        self.finish_sync(self.commits)

    def sync_at_once(self) -> bool:
        if self.is_easy:
            self.sync()
        return self.is_easy


@pytest.fixture
def disk() -> Disk:
    return Disk()


@pytest.fixture
def driver(disk: Disk, monkeypatch: pytest.MonkeyPatch) -> Iterator[Syncing]:
    monkeypatch.setattr(syncing, "SYNC_SECONDS", 0.01)
    made = Syncing(disk)  # type: ignore[arg-type]
    yield made
    made.rest()


def test_who_asks_is_told_once_all_that_was_committed_is_on_the_disk(disk: Disk, driver: Syncing) -> None:
    told = queue.Queue[StoreError | None]()
    disk.commits = 3
    driver.ask(told.put)
    assert told.get(timeout=PATIENCE_S) is None
    assert disk.synced == [3]


def test_who_asks_is_told_why_it_has_failed(disk: Disk, driver: Syncing) -> None:
    told = queue.Queue[StoreError | None]()
    disk.failure = FAILURE
    driver.ask(told.put)
    assert told.get(timeout=PATIENCE_S) is FAILURE


def test_what_is_a_matter_of_a_moment_is_done_at_once(disk: Disk, driver: Syncing) -> None:
    disk.commits = 3
    assert driver.at_once()
    assert disk.synced == [3]
    disk.is_easy = False
    assert not driver.at_once()
    disk.is_easy, disk.failure = True, FAILURE
    assert not driver.at_once()
    assert driver._thread is None


def test_a_disk_that_was_slow_is_not_waited_for_until_it_has_been_quick(
    disk: Disk, driver: Syncing, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = queue.Queue[StoreError | None]()
    monkeypatch.setattr(syncing, "perf_counter", clock := Clock())
    disk.sync_at_once = lambda: clock.take(2 * MOMENT_SECONDS)  # type: ignore[method-assign]
    assert driver.at_once()
    disk.sync_at_once = lambda: clock.take(0.0)  # type: ignore[method-assign]
    for seconds in [2 * MOMENT_SECONDS] * 3 + [0.0] * MOMENTS:
        assert not driver.at_once()
        disk.finish_sync = lambda pinned, took=seconds: clock.take(took)  # type: ignore
        driver.ask(told.put)
        assert told.get(timeout=PATIENCE_S) is None
    assert driver.at_once()


class Clock:
    """Goes on where somebody says so."""

    def __init__(self) -> None:
        self._now = 0.0

    def __call__(self) -> float:
        return self._now

    def take(self, seconds: float) -> bool:
        self._now += seconds
        return True


def test_nobody_goes_before_those_who_have_asked(disk: Disk, driver: Syncing) -> None:
    begun, may_end = threading.Event(), threading.Event()
    disk.finish_sync = lambda pinned: (begun.set(), may_end.wait(PATIENCE_S))  # type: ignore
    told = queue.Queue[StoreError | None]()
    driver.ask(told.put)
    assert begun.wait(PATIENCE_S)
    assert not driver.at_once()
    may_end.set()
    assert told.get(timeout=PATIENCE_S) is None


def test_each_sync_is_told_with_the_time_it_took(disk: Disk, driver: Syncing) -> None:
    took = queue.Queue[float]()
    driver.time_syncs(took.put)
    driver.now()
    driver.ask(lambda failure: None)
    assert all(took.get(timeout=PATIENCE_S) >= 0 for _ in range(2))


def test_a_look_syncs_once_a_second_where_something_was_committed(disk: Disk, driver: Syncing) -> None:
    driver.look(100.0)
    disk.commits = 1
    driver.look(100.0)
    until(lambda: disk.synced == [1], "a sync")
    disk.commits = 2
    driver.look(100.005)
    assert disk.synced == [1]
    until(lambda: driver.look(101.0) or disk.synced == [1, 2], "the next")


def test_a_look_syncs_early_where_the_file_has_grown_much(disk: Disk, driver: Syncing) -> None:
    disk.durability = "no"
    disk.commits = 1
    driver.look(100.0)
    until(lambda: disk.synced == [1], "a sync")
    disk.commits = 2
    driver.look(101.0)
    assert disk.synced == [1]
    disk.bytes = GROWN_BYTES + 1
    until(lambda: driver.look(101.0) or disk.synced == [1, 2], "a sync")


def test_what_is_late_is_tried_again_until_the_disk_takes_it(disk: Disk, driver: Syncing) -> None:
    disk.failure = FAILURE
    disk.commits = 1
    driver.late()
    until(lambda: any(each.name == "rlite-pubsub-sync" for each in threading.enumerate()), "the thread")
    disk.failure = None
    until(lambda: disk.synced == [1], "a sync")


def test_the_thread_ends_where_nothing_is_to_be_synced(disk: Disk, driver: Syncing) -> None:
    driver.late()
    assert driver._thread is None
    driver.ask(lambda failure: None)
    until(lambda: driver._thread is None, "the thread's end")
    disk.commits = 1
    driver.late()
    until(lambda: disk.synced[1:] == [1] and driver._thread is None, "another, and its end")


def test_who_rests_has_done_what_was_asked_for_and_does_the_rest_at_once(disk: Disk, driver: Syncing) -> None:
    told: list[StoreError | None] = []
    for _ in range(3):
        driver.ask(told.append)
    driver.rest()
    assert told == [None] * 3
    driver.ask(told.append)
    assert told == [None] * 4


def test_closing_syncs_what_is_left(disk: Disk, driver: Syncing) -> None:
    disk.commits = 1
    driver.close()
    assert disk.synced == [1]
    driver.close()
    assert disk.synced == [1]
