"""The one driver of fsync: who must not wait asks, a thread does it, and is there only for that."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from patience import PATIENCE_S, until

from rlite_pubsub.storage.checkpoints import syncing
from rlite_pubsub.storage.checkpoints.syncing import OTHERS_SECONDS, SELDOM_SECONDS, SYNC_SECONDS, Syncing
from rlite_pubsub.storage.errors import StoreError, StoreUnwritable

FAILURE = StoreUnwritable(Path("data.mdb"), "Input/output error")


class Disk:
    """An environment of which every sync says up to which commit it went."""

    durability = "everysec"
    is_brief = False

    def __init__(self) -> None:
        self.safety = self
        self.commits = 0
        self.others_commits = 0
        self.synced: list[int] = []
        self.failure: Exception | None = None
        self.tries = 0
        self.path = Path("data.mdb")
        self.is_pinned = False
        self.is_easy = True  # to be synced at once
        self.grown: list[Callable[[], None]] = []

    @property
    def writes(self) -> int:
        return self.commits

    @property
    def is_behind(self) -> bool:
        return bool(self.commits) and self.commits not in self.synced

    def last_commit(self) -> int:
        return self.commits + self.others_commits

    def safe_commit(self) -> int:
        return max((commit for commit in self.synced), default=-1)

    def call_when_grown(self, grown: Callable[[], None]) -> None:
        self.grown.append(grown)

    def look_at_readers(self) -> None:
        """Nobody reads."""

    def let_go(self) -> bool:
        if not self.is_behind:
            self.is_pinned = False
        return not self.is_behind

    def begin_sync(self) -> int:
        return self.last_commit()

    def finish_sync(self, pinned: int | None) -> None:
        self.tries += 1
        if self.failure is not None:
            raise self.failure
        self.synced.append(self.last_commit() if pinned is None else pinned)

    def sync(self) -> None:
        self.finish_sync(None)

    def sync_at_once(self) -> bool:
        if self.is_easy:
            self.sync()
        return self.is_easy


@pytest.fixture
def disk() -> Disk:
    return Disk()


@pytest.fixture
def driver(disk: Disk, monkeypatch: pytest.MonkeyPatch) -> Iterator[Syncing]:
    monkeypatch.setattr(syncing, "SYNC_SECONDS", SYNC_SECONDS / 100)
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


def test_who_asks_is_told_and_the_thread_goes_on_whatever_has_gone_wrong(disk: Disk, driver: Syncing) -> None:
    told = queue.Queue[StoreError | None]()
    disk.failure = RuntimeError("nobody has thought of it")
    driver.ask(told.put)
    assert "nobody has thought of it" in str(told.get(timeout=PATIENCE_S))
    disk.failure = None
    driver.ask(told.put)
    assert told.get(timeout=PATIENCE_S) is None


def test_what_nobody_has_thought_of_does_not_end_the_thread_of_a_program(disk: Disk, driver: Syncing) -> None:
    disk.failure = RuntimeError("nobody has thought of it")
    disk.commits = 1
    driver.late()
    until(lambda: disk.tries > 1, "another try")
    disk.failure = None
    until(lambda: disk.synced == [1], "a sync")


def test_what_is_a_matter_of_a_moment_is_done_at_once(disk: Disk, driver: Syncing) -> None:
    disk.commits = 3
    assert driver.at_once()
    assert disk.synced == [3]
    disk.is_easy = False
    assert not driver.at_once()
    disk.is_easy, disk.failure = True, FAILURE
    assert not driver.at_once()
    assert driver._thread is None


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
    driver.cron(100.0)
    disk.commits = 1
    driver.cron(100.0)
    until(lambda: disk.synced == [1], "a sync")
    disk.commits = 2
    driver.cron(100.005)
    assert disk.synced == [1]
    until(lambda: driver.cron(101.0) or disk.synced == [1, 2], "the next")


def test_a_file_that_has_grown_much_is_synced_at_once(disk: Disk, driver: Syncing) -> None:
    disk.commits = 1
    disk.grown[0]()
    until(lambda: disk.synced == [1], "a sync")


def test_appendfsync_no_syncs_seldom_while_something_is_written_and_once_when_nothing_is(
    disk: Disk, driver: Syncing
) -> None:
    disk.durability, disk.is_pinned, disk.commits = "no", True, 1
    driver.cron(100.0)
    until(lambda: disk.synced == [1] and not driver._under_way, "a sync")
    for tenth in range(1, int(SELDOM_SECONDS * 10)):
        disk.commits += 1
        driver.cron(100.0 + tenth / 10)
    assert disk.synced == [1]
    last = 100.0 + SELDOM_SECONDS - 0.1
    driver.cron(last + SYNC_SECONDS)
    until(lambda: disk.synced == [1, disk.commits], "a sync")


@pytest.mark.parametrize("policy", ["always", "everysec", "no"])
def test_who_is_idle_lets_go_of_its_pin(disk: Disk, driver: Syncing, policy: str) -> None:
    disk.durability, disk.is_pinned, disk.commits = policy, True, 1
    driver.cron(100.0)
    until(lambda: disk.synced == [1] and not driver._under_way, "a sync")
    driver.cron(100.0)
    assert disk.is_pinned
    driver.cron(100.0 + SYNC_SECONDS)
    assert not disk.is_pinned


@pytest.mark.parametrize("policy", ["always", "everysec", "no"])
def test_the_thread_of_a_program_lets_go_once_it_is_idle_and_ends(disk: Disk, driver: Syncing, policy: str) -> None:
    disk.durability, disk.is_pinned, disk.commits = policy, True, 1
    driver.late()
    until(lambda: driver._thread is None, "its end")
    assert disk.synced == [1]
    assert not disk.is_pinned


def test_what_others_have_committed_is_synced_where_they_do_not(disk: Disk, driver: Syncing) -> None:
    disk.others_commits = 5
    driver.cron(100.0)
    driver.cron(101.0)
    disk.synced.append(3)  # they are at it
    driver.cron(102.0)
    driver.cron(102.0 + OTHERS_SECONDS / 2)
    assert disk.synced == [3]
    driver.cron(102.0 + OTHERS_SECONDS)
    until(lambda: disk.synced == [3, 5], "a sync")
    until(lambda: not driver._under_way)
    driver.cron(102.0 + 3 * OTHERS_SECONDS)
    assert disk.synced == [3, 5]


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
