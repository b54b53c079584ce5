"""The first PUBLISH after a subscriber's kill -9 answers without it."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import redis
from server_process import ServerProcess

import rlite_pubsub
from rlite_pubsub.pubsub.post import LOOK_AGAIN_NS

SUBSCRIBER = """
import sys, rlite_pubsub
pubsub = rlite_pubsub.Redis(sys.argv[1]).pubsub()
pubsub.subscribe("c")
pubsub.get_message(timeout=100)
print("subscribed", flush=True)
while True:
    pubsub.get_message(timeout=100)
"""
Subscribe = Callable[[Path], "subprocess.Popen[bytes]"]


@pytest.fixture
def subscribe() -> Iterator[Subscribe]:
    processes: list[subprocess.Popen[bytes]] = []

    def begin(folder: Path) -> subprocess.Popen[bytes]:
        process = subprocess.Popen([sys.executable, "-c", SUBSCRIBER, str(folder)], stdout=subprocess.PIPE)
        processes.append(process)
        assert process.stdout is not None and process.stdout.readline()
        return process

    yield begin
    for process in processes:
        process.kill()
        process.communicate()


def kill(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    time.sleep(2 * LOOK_AGAIN_NS / 1e9)  # since the last look


def test_a_program_does_not_count_it(tmp_path: Path, subscribe: Subscribe) -> None:
    with rlite_pubsub.Redis(tmp_path) as client:
        first, _ = subscribe(tmp_path), subscribe(tmp_path)
        assert client.publish("c", "x") == 2
        kill(first)
        assert client.publish("c", "x") == 1
        assert client.pubsub_numsub("c") == [(b"c", 1)]


@pytest.mark.parametrize("is_pipeline", [False, True])
def test_a_server_does_not_count_it(tmp_path: Path, subscribe: Subscribe, is_pipeline: bool) -> None:
    server = ServerProcess(tmp_path)
    try:
        client = redis.Redis(port=server.port)
        first, _ = subscribe(server.store_folder), subscribe(server.store_folder)
        assert client.publish("c", "x") == 2
        kill(first)
        if is_pipeline:
            pipeline = client.pipeline(transaction=False)
            for _ in range(5):
                pipeline.publish("c", "x")
            assert pipeline.execute() == [1] * 5
        else:
            assert client.publish("c", "x") == 1
    finally:
        server.clean_up()


def test_a_process_that_never_rang_it_does_not_count_it_either(tmp_path: Path, subscribe: Subscribe) -> None:
    kill(subscribe(tmp_path))
    with rlite_pubsub.Redis(tmp_path) as client:
        assert client.publish("c", "x") == 0


def test_who_is_only_stopped_is_counted(tmp_path: Path, subscribe: Subscribe) -> None:
    with rlite_pubsub.Redis(tmp_path) as client:
        process = subscribe(tmp_path)
        assert client.publish("c", "x") == 1
        while True:
            process.send_signal(signal.SIGSTOP)
            try:
                assert client.publish("c", "x") == 1
                break
            except redis.ResponseError as refusal:  # it was in the midst of taking the first one
                assert str(refusal).startswith("BUSY"), refusal
                process.send_signal(signal.SIGCONT)
