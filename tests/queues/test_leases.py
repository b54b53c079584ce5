"""`pop(ack=True)` and `popping()`: at least once, whoever is killed, with and without an event loop."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from other_process import OtherProcess
from patience import until

from rlite_pubsub import queues, topics
from rlite_pubsub.queues import LeasedItem, Queue

COUNT = 200
LEASE_S = 0.2

WORKS = """
from rlite_pubsub import queues
worker = queues.get_subscriber(folder, "jobs:worker")
say("ready")
while True:
    with worker.popping(timeout=None) as item:
        say("begun", item.value.decode(), item.deliveries)
        say("done", item.value.decode())
"""


def test_what_a_killed_worker_had_comes_again_and_nothing_is_lost(tmp_path: Path) -> None:
    with Queue(tmp_path, "jobs") as jobs:
        worker = jobs.create_subscriber("worker", lease=LEASE_S)
        jobs.push(*map(str, range(COUNT)))
        done: set[int] = set()
        for round in range(10):
            with OtherProcess(tmp_path, WORKS) as other:
                assert other.hear() == "ready"
                lines = [other.hear() for _ in range(2 * (5 + round))]
                other.kill()
                said = map(str.split, [*lines, *other.rest()])
                done.update(int(value) for word, value, *_ in said if word == "done")
        left = jobs.list()[0]
        assert (left.behind or 0) + left.leased + len(done) >= COUNT

        def is_all_done() -> bool:
            for item in worker.pop_many(50, timeout=LEASE_S, ack=True):
                assert item.ack()
                done.add(int(item.value))
            return (jobs.list()[0].leased, jobs.list()[0].behind) == (0, 0)

        until(is_all_done, "the end of the last lease")
        assert done == set(range(COUNT))


def test_an_item_is_acknowledged_at_the_end_of_its_with_and_given_back_by_an_exception(where: str) -> None:
    with Queue(where, "jobs") as jobs:
        jobs.push("a", "b")
        worker = jobs.create_subscriber("worker", lease=60, max_deliveries=2, dead_letters="{jobs}dead")
        with worker.popping() as item:
            assert item is not None
            assert (item.value, item.deliveries) == (b"a", 1)
        with pytest.raises(ZeroDivisionError), worker.popping() as item:
            raise ZeroDivisionError
        with worker.popping() as item:
            assert item is not None
            assert (item.value, item.deliveries) == (b"b", 2)
            assert item.give_back() is True
        assert worker.pop(ack=True) is None, "it was popped as often as it may be"
        assert (jobs.list()[0].leased, jobs.list()[0].behind) == (0, 0)
        with topics.subscribe(where, "{jobs}dead", since=topics.BEGINNING) as dead:
            letter = dead.get(timeout=10)
            assert isinstance(letter, topics.Entry)
            assert (letter["value"], letter["dead-letter-deliveries"]) == (b"b", b"2")
        with worker.popping() as item:
            assert item is None


def test_an_item_whose_lease_is_over_can_be_acknowledged_by_who_has_it_then(where: str) -> None:
    with Queue(where, "jobs") as jobs:
        jobs.push("a")
        worker = jobs.create_subscriber("worker", lease=0.01)
        first = worker.pop(ack=True)
        second = worker.pop(timeout=10, ack=True)
        assert isinstance(first, LeasedItem) and isinstance(second, LeasedItem)
        assert (first.id, second.deliveries) == (second.id, 2)
        assert second.ack() is True
        assert first.ack() is False
        assert first.give_back() is True, "it was popped"
        assert worker.pop() == queues.Item(first.id, first.pairs)


def test_keywords_that_make_no_sense_are_refused_before_anything_is_made(tmp_path: Path) -> None:
    with Queue(tmp_path, "jobs") as jobs:
        for options in ({"lease": 0}, {"max_deliveries": 0}):
            with pytest.raises(ValueError):
                jobs.create_subscriber("worker", **options)  # type: ignore[arg-type]
        assert jobs.list() == []
        jobs.push("a")
        with pytest.raises(ValueError, match="delay="), jobs.create_subscriber("worker").popping() as item:
            assert item is not None
            item.give_back(-1)


async def test_asyncio_has_the_same(where: str) -> None:
    async with queues.aio.Queue(where, "jobs", codec="text") as jobs:
        await jobs.push("a", "b", "c")
        worker = await jobs.create_subscriber("worker", lease=60)
        async with worker.popping() as item:
            assert item is not None and item.value == "a"
        with pytest.raises(ZeroDivisionError):
            async with worker.popping() as item:
                raise ZeroDivisionError
        again = await worker.pop(ack=True)
        assert again is not None and (again.value, again.deliveries) == ("b", 2)
        assert await again.give_back(delay=1000)
        [last] = await worker.pop_many(5, ack=True)
        assert await last.ack() and not await last.ack()
        assert (await jobs.list())[0].leased == 0
        async with worker.popping() as item:
            assert item is None


def test_a_worker_that_is_interrupted_gives_its_item_back(tmp_path: Path) -> None:
    with Queue(tmp_path, "jobs") as jobs:
        jobs.create_subscriber("worker", lease=3600)
        jobs.push("a")
        sleeps = WORKS.replace('say("done"', 'import time; time.sleep(1000); say("done"')
        with OtherProcess(tmp_path, sleeps, quiet=True) as other:
            assert [other.hear(), other.hear()] == ["ready", "begun a 1"]
            other.send_signal(signal.SIGINT)
            other.end()
        with jobs.subscriber("worker").popping() as item:
            assert item is not None and item.deliveries == 2
