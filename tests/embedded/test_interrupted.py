"""A Ctrl-C, or whatever a signal handler of the program raises, in the middle of a command: nothing of it was done, and
the store can be used."""

from __future__ import annotations

import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from patience import until

import rlite_pubsub
from rlite_pubsub.commands.collections import lists
from rlite_pubsub.keyspace.times import Times
from rlite_pubsub.storage import lmdb_environment
from rlite_pubsub.storage.keys.order import Order
from rlite_pubsub.storage.keys.rows import Rows

MEMBERS = {b"member %05d" % number: float(number % 100) for number in range(1000)}
STRESS_S = 2.0


class Interruption(BaseException):
    """As KeyboardInterrupt is."""


def assert_is_whole(client: rlite_pubsub.Redis, key: str, least: int = 0) -> dict[bytes, float]:
    """Check that a sorted set has the members that it counts, in order, with their scores; return them."""
    members = client.zrange(key, 0, -1, withscores=True)
    assert least <= client.zcard(key) == len(members)
    assert members == sorted(members, key=lambda one: (one[1], one[0]))
    for rank, (member, score) in enumerate(members):
        if rank % 50 == 0:
            assert (client.zrank(key, member), client.zscore(key, member)) == (rank, score)
    return dict(members)


def interrupting(times: int, place: Callable[..., Any], *, behind: bool = False) -> Callable[..., Any]:
    """A function that works, and whose nth call is interrupted, before its work or `behind` it."""
    left = [times]

    def work(*args: Any, **options: Any) -> Any:
        left[0] -= 1
        if not left[0] and not behind:
            raise Interruption
        done = place(*args, **options)
        if not left[0]:
            raise Interruption
        return done

    return work


@pytest.mark.sources("replaces a method of a compiled class")
@pytest.mark.parametrize(
    ("owner", "name", "times", "behind"),
    [
        (Order, "add", 30, False),
        (Order, "add", 30, True),
        (Order, "remove", 5, True),
        (Order, "_split", 1, False),
        (Order, "_split", 1, True),
        (Rows, "put", 30, False),
        (lmdb_environment, "get_ident", 2, False),
    ],
)
def test_an_interrupted_command_leaves_nothing_and_the_next_one_is_executed(
    folder: Path, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, times: int, behind: bool
) -> None:
    with rlite_pubsub.Redis(folder) as client, rlite_pubsub.Redis(folder) as other:
        other.zadd("key", MEMBERS)
        place = getattr(owner, name)
        kept: list[BaseException] = []  # a program may keep the exception, and so what its frames have
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, interrupting(times, place, behind=behind))
            try:
                client.zadd("key", {b"other %05d" % number: float(number) for number in range(-500, 500)} | {
                    member: score + 1 for member, score in MEMBERS.items()
                })  # fmt: skip
            except Interruption as interruption:
                kept.append(interruption)
        is_done = not kept  # that place was not passed
        found = assert_is_whole(client, "key", 1000)
        assert found == MEMBERS or is_done or len(found) == 2000
        assert client.zadd("key", {"more": 7}) == 1
        assert client.zincrby("key", 3, b"member 00001") == found[b"member 00001"] + 3
        assert_is_whole(other, "key")
        before = client.zcard("key")
    with rlite_pubsub.Redis(folder) as client:
        assert_is_whole(client, "key", before)


@pytest.mark.sources("replaces a method of a compiled class")
def test_an_event_of_an_interrupted_command_is_not_told(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with rlite_pubsub.Redis(folder) as client:
        client.config_set("notify-keyspace-events", "KEA")
        client.rpush("list", "a")
        heard = client.pubsub(ignore_subscribe_messages=True)
        heard.psubscribe("__keyevent*")
        assert heard.get_message() is None
        with monkeypatch.context() as patch:
            patch.setattr(lists, "drop_if_empty", interrupting(1, lists.drop_if_empty))
            with pytest.raises(Interruption):
                client.lpop("list")
        assert client.llen("list") == 1
        assert heard.get_message() is None
        heard.close()


@pytest.fixture
def alarm() -> Iterator[Callable[[float], None]]:
    """Raises an Interruption in the main thread, so many seconds later; 0: not at all."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise Interruption

    before = signal.signal(signal.SIGALRM, interrupt)
    yield lambda seconds: signal.setitimer(signal.ITIMER_REAL, seconds)
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("seed", range(2))
def test_interruptions_at_any_moment_damage_nothing(folder: Path, alarm: Callable[[float], None], seed: int) -> None:
    chance = random.Random(seed)
    interruptions = 0
    end = time.monotonic() + STRESS_S
    with rlite_pubsub.Redis(folder) as client, rlite_pubsub.Redis(folder) as other:
        other.ping()  # the store stays open, whatever becomes of the other connection
        while time.monotonic() < end:
            key = f"key {chance.randrange(2)}"
            client.ping()  # redis-py does not survive an interruption while it connects
            try:
                try:
                    alarm(chance.uniform(0.0001, 0.004))
                    pipeline = client.pipeline(transaction=False)
                    pipeline.zadd(key, {b"m%d" % chance.randrange(3000): chance.randrange(1000) for _ in range(50)})
                    pipeline.zrem(key, *[b"m%d" % chance.randrange(3000) for _ in range(40)])
                    pipeline.zpopmin(key, chance.randrange(5))
                    pipeline.execute()
                finally:
                    alarm(0)
            except Interruption:
                interruptions += 1
            assert_is_whole(chance.choice((client, other)), key)
    assert interruptions > 10
    with rlite_pubsub.Redis(folder) as client:
        for key in ("key 0", "key 1"):
            assert_is_whole(client, key)


@pytest.mark.sources("replaces a method of a compiled class")
def test_time_goes_on_after_a_transaction_that_was_interrupted_at_its_end(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with rlite_pubsub.Redis(folder) as client, rlite_pubsub.Redis(folder) as other:
        other.set("key", "a", px=50)
        with monkeypatch.context() as patch:
            patch.setattr(Times, "end_whole", interrupting(1, Times.end_whole))
            with pytest.raises(Interruption):
                client.pipeline().incr("count").execute()
        until(lambda: not other.exists("key"), "the end of the key's time")
        assert other.get("count") is None


def sync_threads() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name == "rlite-pubsub-sync"}


@pytest.mark.parametrize("behind", [False, True], ids=["before it runs", "when it runs"])
def test_there_is_one_sync_thread_even_if_its_start_was_interrupted(
    folder: Path, monkeypatch: pytest.MonkeyPatch, behind: bool
) -> None:
    others = sync_threads()  # of stores that were closed just now
    with rlite_pubsub.Redis(folder) as client, rlite_pubsub.Redis(folder) as other:
        other.ping()  # the store stays open, whatever becomes of the other connection
        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", interrupting(1, threading.Thread.start, behind=behind))
            with pytest.raises(Interruption):
                client.set("key", "a")
        assert client.set("key", "b")
        assert len(sync_threads() - others) == 1
    with rlite_pubsub.Redis(folder) as client:
        assert client.get("key") == b"b"
