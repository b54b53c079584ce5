"""What a queue's values are to a program."""

from __future__ import annotations

from typing import Any

import pytest

from rlite_pubsub import queues
from rlite_pubsub.queues import Codec, NoSuchQueue, NoSuchSubscriber, Queue, Undecodable

VALUES: dict[str, list[Any]] = {
    "bytes": [b"", b"\x00\xff", b"x" * 5000],
    "text": ["", "grüße", "1"],
    "json": [None, 1, 2.5, "grüße", [1, {"a": [True]}], {}],
    "msgpack": [None, 1, 2.5, "grüße", b"\xff", [1, {"a": [True]}], {}],
}


@pytest.mark.parametrize("codec", VALUES)
def test_what_was_pushed_is_popped(where: str, codec: str) -> None:
    values = VALUES[codec]
    with Queue(where, "jobs", codec=codec) as jobs:
        worker = jobs.create_subscriber("worker")
        jobs.push(*values)
        assert [item.value for item in worker.peek_many(10)] == values
        assert [item.value for item in worker.pop_many(10)] == values
    with queues.get_subscriber(where, worker.id, codec=codec) as again:
        assert again.pop() is None


def test_a_codec_of_one_s_own_is_taken(where: str) -> None:
    reversed_text = Codec("reversed", lambda value: str(value)[::-1].encode(), lambda data: data.decode()[::-1])
    with Queue(where, "jobs", codec=reversed_text) as jobs:
        jobs.push("abc")
        item = jobs.create_subscriber("worker").pop()
        assert item is not None and item.value == "abc" and item.pairs == ((b"value", b"cba"),)


@pytest.mark.parametrize("codec", ["text", "json", "msgpack"])
def test_what_another_codec_has_written_is_said_with_its_id_and_is_passed(where: str, codec: str) -> None:
    with Queue(where, "jobs") as jobs, Queue(where, "jobs", codec=codec) as typed:
        (first,) = jobs.push(b"\xc1\xff")
        typed.push("good")
        worker = typed.create_subscriber("worker")
        item = worker.pop()
        assert item is not None
        with pytest.raises(Undecodable, match=f"{first} is not {codec}"):
            _ = item.value
        following = worker.pop()
        assert following is not None and following.value == "good"


@pytest.mark.parametrize(("codec", "value"), [("bytes", 1), ("text", b"x"), ("json", {1, 2}), ("json", float("nan"))])
def test_what_a_codec_cannot_write_is_refused_and_nothing_is_pushed(where: str, codec: str, value: object) -> None:
    with Queue(where, "jobs", codec=codec) as jobs:
        with pytest.raises((TypeError, ValueError)):
            jobs.push(VALUES[codec][-1], value)
        assert len(jobs) == 0


def test_an_unknown_codec_is_refused(where: str) -> None:
    with pytest.raises(ValueError, match="not a codec"):
        Queue(where, "jobs", codec="yaml")


def test_a_subscriber_is_found_by_its_id_and_so_is_its_queue(where: str) -> None:
    names = ["orders", "a:b/c%d", "grüße"]
    for name in names:
        with Queue(where, name) as queue:
            queue.push(name)
            worker = queue.create_subscriber(f"worker of {name}")
            with queues.get_subscriber(where, worker.id) as found:
                item = found.peek()
                assert item is not None and item.value == name.encode()
                assert found.id == worker.id
            with queues.get_queue(where, subscriber=worker.id) as again:
                assert [status.name for status in again.list()] == [f"worker of {name}"]
    with pytest.raises(NoSuchSubscriber):
        queues.get_subscriber(where, "orders:nobody")
    with pytest.raises(NoSuchQueue):
        queues.get_queue(where, subscriber="nothing:nobody")
    with pytest.raises(ValueError, match="not a subscriber's id"):
        queues.get_queue(where, subscriber="orders")
    with pytest.raises(TypeError):
        queues.get_queue(where)
