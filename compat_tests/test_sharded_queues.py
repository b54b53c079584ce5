"""`rlite_pubsub.Queue` on a sharded store: it is opened at any member, and finds the one that has it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from compat_tests.wholes import Ours
from rlite_pubsub import queues

NAMES = [f"queue-{number}" for number in range(12)]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ours]:
    members = Ours(tmp_path_factory.mktemp("whole"))
    yield members
    members.stop()


@pytest.fixture
def urls(whole: Ours) -> Iterator[list[str]]:
    yield [f"redis://127.0.0.1:{port}/0" for port in whole.ports]
    for server in whole.servers:
        with server.client() as client:
            client.flushall()


def test_a_queue_is_found_from_every_member(whole: Ours, urls: list[str]) -> None:
    for number, name in enumerate(NAMES):
        with queues.Queue(urls[number % 3], name) as queue:
            queue.push(name, "second")
            queue.create_subscriber("worker")
    for server in whole.servers:
        with server.client() as client:
            assert 0 < client.dbsize() < len(NAMES)
    assert queues.list_queues(urls[0]) == sorted(NAMES)
    for url in urls:
        for name in NAMES:
            with queues.get_subscriber(url, f"{name}:worker") as worker:
                item = worker.peek()
                assert item is not None and item.value == name.encode()


def test_a_queue_is_found_by_the_id_of_its_subscriber(urls: list[str]) -> None:
    with queues.Queue(urls[0], "{a:b}") as queue:
        queue.push("first")
        id = queue.create_subscriber("my:worker").id
    for url in urls:
        with queues.get_queue(url, subscriber=id) as found:
            assert len(found) == 1
            item = found.subscriber("my:worker").peek()
            assert item is not None and item.value == b"first"
        with pytest.raises(queues.NoSuchSubscriber):
            queues.get_queue(url, subscriber="%7Ba%3Ab%7D:nobody")
        with pytest.raises(queues.NoSuchQueue):
            queues.get_queue(url, subscriber="nothing:nobody")


def test_a_program_on_a_member_s_folder_finds_it_too(whole: Ours, urls: list[str]) -> None:
    with queues.Queue(urls[0], "jobs", codec="json") as queue:
        queue.push({"to": "ada"})
    for folder in whole.folders:
        with queues.get_queue(folder, "jobs", codec="json") as found:
            found.create_subscriber("worker")
            item = found.subscriber("worker").peek()
            assert item is not None and item.value == {"to": "ada"}


async def test_the_asynchronous_queue_finds_it_too(urls: list[str]) -> None:
    for number, name in enumerate(NAMES):
        async with queues.aio.Queue(urls[number % 3], name) as queue:
            await queue.push(name)
            worker = await queue.create_subscriber("worker")
            item = await worker.pop()
            assert item is not None and item.value == name.encode()
            assert await worker.pop(0.01) is None
        with pytest.raises(queues.NoSuchSubscriber):
            async with queues.aio.Queue(urls[0], name) as queue:
                await queue.subscriber("nobody").pop()
