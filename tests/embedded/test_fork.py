"""A forked child opens the store anew, and leaves its parent's sessions alone."""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from patience import PATIENCE_S
from reading import confirmations, messages

import rlite_pubsub


def in_child(work: Callable[[], None]) -> int:
    """Run `work` in a forked child; its exit code, 0 if nothing was raised."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            work()
            code = 0
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_a_parent_s_pubsub_is_refused_in_the_child_and_works_on_in_the_parent(client: rlite_pubsub.Redis) -> None:
    pubsub = client.pubsub()
    pubsub.subscribe("news")
    confirmations(pubsub, 1)

    def use() -> None:
        with pytest.raises(rlite_pubsub.UsedAfterFork, match="make a new PubSub"):
            pubsub.get_message()
        with pytest.raises(rlite_pubsub.UsedAfterFork):
            pubsub.get_message(timeout=PATIENCE_S)
        with pytest.raises(rlite_pubsub.UsedAfterFork):
            pubsub.subscribe("more")
        with pytest.raises(rlite_pubsub.UsedAfterFork):
            next(pubsub.listen())
        pubsub.close()

    assert in_child(use) == 0
    assert client.publish("news", "still here") == 1
    assert messages(pubsub, 1) == [b"still here"]
    pubsub.close()


def test_a_parent_s_client_works_in_the_child(client: rlite_pubsub.Redis) -> None:
    client.ping()
    client.publish("news", "x")

    def use() -> None:
        assert client.publish("own", "x") == 0
        assert client.ping()
        with client.pubsub() as pubsub:
            pubsub.subscribe("own")
            assert client.publish("own", "x") == 1
            assert messages(pubsub, 1) == [b"x"]
        client.close()

    assert in_child(use) == 0
    assert client.publish("own", "x") == 0
    assert client.ping()


def test_a_child_that_ends_leaves_the_parent_s_records(client: rlite_pubsub.Redis, folder: Path) -> None:
    with client.pubsub() as pubsub:
        pubsub.subscribe("news")
        confirmations(pubsub, 1)
        before = sorted(path.name for path in (folder / "subscribers").iterdir())
        assert before
        process = multiprocessing.get_context("fork").Process(target=client.publish, args=("nobody", "x"))
        process.start()
        process.join()
        assert process.exitcode == 0
        assert sorted(path.name for path in (folder / "subscribers").iterdir()) == before
        assert client.pubsub_channels() == [b"news"]


def test_a_fork_while_threads_publish_harms_neither_side(client: rlite_pubsub.Redis) -> None:
    stop = threading.Event()
    failures: list[BaseException] = []

    def publish() -> None:
        try:
            while not stop.is_set():
                client.publish("news", "x")
        except BaseException as failure:
            failures.append(failure)

    with client.pubsub() as pubsub:
        pubsub.subscribe("news")
        threads = [threading.Thread(target=publish) for _ in range(2)]
        for thread in threads:
            thread.start()

        def use() -> None:
            assert client.publish("own", "x") == 0

        codes = [in_child(use) for _ in range(10)]
        stop.set()
        for thread in threads:
            thread.join()
        assert codes == [0] * 10
        assert not failures
