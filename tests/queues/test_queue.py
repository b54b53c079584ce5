"""`rlite_pubsub.Queue`: places in a queue's history outlive whoever reads from them."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from other_process import OtherProcess
from patience import PATIENCE_S, until

import rlite_pubsub
from rlite_pubsub import queues
from rlite_pubsub.queues import Item, NoSuchQueue, NoSuchSubscriber, Queue, SubscriberAsleep


def values(items: list[Item]) -> list[bytes]:
    return [item.value for item in items]


def test_queue_of_the_package_is_this_one() -> None:
    assert rlite_pubsub.Queue is Queue


def test_each_subscriber_reads_the_whole_history_from_where_it_began(where: str) -> None:
    begun = datetime.now(UTC) - timedelta(seconds=1)
    with Queue(where, "jobs") as jobs:
        ids = jobs.push("1", b"2", "3")
        first = jobs.create_subscriber("first")
        assert [first.pop(), first.peek(), first.pop()] == [
            Item(ids[0], ((b"value", b"1"),)),
            Item(ids[1], ((b"value", b"2"),)),
            Item(ids[1], ((b"value", b"2"),)),
        ]
        starts = {"beginning": 3, "end": 0, ids[1]: 1, begun: 3, 0: 3, b"end": 0}
        for number, (start, count) in enumerate(starts.items()):
            found = jobs.create_subscriber(f"s{number}", start)
            assert len(found.peek_many(10)) == count
            assert len(found.pop_many(10)) == count
            assert found.pop() is None and found.pop_many(10) == []
        assert len(jobs) == 3
        assert [(status.name, status.behind) for status in jobs.list()][0] == ("first", 1)


def test_queues_are_listed_found_and_deleted(where: str) -> None:
    with pytest.raises(NoSuchQueue):
        queues.get_queue(where, "jobs")
    with queues.create_queue(where, "jobs") as jobs, queues.create_queue(where, "mail"):
        assert queues.list_queues(where) == ["jobs", "mail"]
        with queues.get_queue(where, "mail") as mail:
            assert mail.delete() is True
            assert mail.delete() is False
            with pytest.raises(NoSuchQueue):
                mail.push("x")
        with pytest.raises(NoSuchSubscriber):
            jobs.subscriber("nobody").pop()
        someone = jobs.create_subscriber("someone")
        assert someone.delete() is True
        assert someone.delete() is False
        assert jobs.list() == []


def test_sleeping_subscriber_keeps_its_place(where: str) -> None:
    with Queue(where, "jobs") as jobs:
        worker = jobs.create_subscriber("worker")
        jobs.push("1", "2")
        worker.pop()
        assert worker.sleep() is True
        assert jobs.list()[0].is_asleep
        with pytest.raises(SubscriberAsleep):
            worker.pop()
        assert worker.wakeup() is True
        item = worker.pop()
        assert item is not None and item.value == b"2"


def test_pop_waits_for_what_is_pushed(where: str) -> None:
    with Queue(where, "jobs") as jobs, Queue(where, "jobs") as other:
        worker = jobs.create_subscriber("worker")
        assert worker.pop(0.01) is None
        assert worker.pop_many(5, 0.01) == []
        found: list[Item | None] = []
        waiting = threading.Thread(target=lambda: found.append(worker.pop(None)))
        waiting.start()
        other.push("x")
        waiting.join(PATIENCE_S)
        assert [item and item.value for item in found] == [b"x"]


def test_clients_that_decode_get_bytes_too(where: str) -> None:
    with Queue(where, "jobs", decode_responses=True) as jobs:
        jobs.push("ä")
        item = jobs.create_subscriber("worker").pop()
        assert item is not None and item.value == "ä".encode()
        assert jobs.list()[0].name == "worker"


def test_client_that_is_given_is_left_open(tmp_path: Path) -> None:
    client = rlite_pubsub.Redis(str(tmp_path))
    with Queue(client, "jobs") as jobs:
        jobs.push("x")
    assert client.xlen("jobs") == 1
    client.close()


def test_to_push_nothing_is_nothing(where: str) -> None:
    with Queue(where, "jobs") as jobs:
        assert jobs.push(*[]) == [] and len(jobs) == 0


def test_a_start_that_is_none_is_refused(tmp_path: Path) -> None:
    with Queue(str(tmp_path), "jobs") as jobs:
        with pytest.raises(TypeError):
            jobs.create_subscriber("s", None)  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="time zone"):
            jobs.create_subscriber("s", datetime(2024, 1, 1))  # noqa: DTZ001
        for start in ("middle", "last"):
            with pytest.raises(ValueError, match="start="):
                jobs.create_subscriber("s", start)
        assert jobs.list() == []


POPS = """
worker = rlite_pubsub.Queue(folder, "jobs").subscriber("worker")
while True:
    item = worker.pop(None)
    if item is not None:
        say(item.value.decode())
"""


def test_subscriber_that_is_killed_loses_at_most_what_it_had_popped_and_others_go_on_behind_it(tmp_path: Path) -> None:
    with Queue(str(tmp_path), "jobs") as jobs:
        jobs.create_subscriber("worker")
        jobs.push(*map(str, range(1000)))
        seen: list[int] = []
        for _ in range(3):
            with OtherProcess(tmp_path, POPS) as worker:
                seen += [int(worker.hear()) for _ in range(20)]
                worker.kill()
                seen += [int(line) for line in worker.rest() if line.isdigit()]
        rest = [int(item.value) for item in jobs.subscriber("worker").pop_many(2000)]
        assert seen == sorted(set(seen))
        assert rest == list(range(rest[0], 1000))
        assert len(set(range(rest[0])) - set(seen)) <= 3  # one popped by each, and not said any more


def test_processes_that_share_a_subscriber_share_its_values(tmp_path: Path) -> None:
    with Queue(str(tmp_path), "jobs") as jobs:
        jobs.create_subscriber("worker")
        workers = [OtherProcess(tmp_path, "say('ready')", POPS, quiet=True) for _ in range(3)]
        for worker in workers:
            assert worker.hear() == "ready"
        for number in range(0, 300, 10):
            jobs.push(*map(str, range(number, number + 10)))
        until(lambda: jobs.list()[0].behind == 0, "the last value")
        jobs.subscriber("worker").delete()  # which ends them
        seen = [int(line) for worker in workers for line in worker.rest()]
        assert sorted(seen) == list(range(300))
        for worker in workers:
            worker.__exit__()
