"""`rediss://` wherever a URL is taken: the command line, topics, queues, and Spark's side."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from certificates import Authority
from cold_logs import NEWS, log_of, seal
from patience import PATIENCE_S
from ports import free_port
from server_process import Serve

from rlite_pubsub import queues, topics
from rlite_pubsub.cold import manifest
from rlite_pubsub.cold.places import open_place
from rlite_pubsub.pipeline.connection import ask, connect
from rlite_pubsub.pipeline.options import SourceOptions


@pytest.fixture
def url(serve: Serve, tmp_path: Path) -> Iterator[str]:
    """Of a server that speaks nothing but TLS and wants a password."""
    authority, port = Authority(tmp_path / "certificates"), free_port()
    certificate, key = authority.issue("server")
    words = ["--tls-port", str(port), "--tls-cert-file", str(certificate), "--tls-key-file", str(key)]
    server = serve(*words, "--tls-auth-clients", "no", "--requirepass", "secret", "--port", "0")
    yield f"rediss://:secret@localhost:{port}/0?ssl_ca_certs={authority.file}"
    assert "Traceback" not in server.log()


def run(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "rlite_pubsub", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)


def test_topics_take_it(url: str) -> None:
    first = topics.publish(url, "orders", {"item": "tea"})
    with topics.subscribe(url, "orders", since="0") as entries:
        assert next(iter(entries)).id == first


async def test_topics_take_it_in_a_loop(url: str) -> None:
    first = topics.publish(url, "orders", {"item": "tea"})
    async with topics.aio.subscribe(url, "orders", since="0") as entries:
        assert (await anext(aiter(entries))).id == first


def test_queues_take_it(url: str) -> None:
    with queues.create_queue(url, "work") as queue:
        subscriber = queue.create_subscriber("worker")
        queue.push("item")
        popped = subscriber.pop()
        assert popped is not None and popped.value == b"item"
    assert queues.list_queues(url) == ["work"]


def test_spark_s_side_takes_it(url: str) -> None:
    client = connect(SourceOptions.of({"url": url}))
    assert ask(client, "PING")
    client.close()


@pytest.mark.parametrize("words", [["channels"], ["subscribers"], ["publish", "news", "hello"], ["top", "--once"]])
def test_command_line_takes_it(url: str, words: list[str]) -> None:
    done = run(words[0], "-s", url, *words[1:])
    assert done.returncode == 0, done.stderr
    assert "secret" not in done.stdout + done.stderr


def test_tail_takes_it(url: str) -> None:
    topics.publish(url, "orders", {"item": "tea"})
    command = [sys.executable, "-m", "rlite_pubsub", "tail", "-s", url, "orders", "--from", "start"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert "tea" in process.stdout.readline()
        process.kill()


def test_blocks_are_restored_over_it(url: str, tmp_path: Path) -> None:
    place = open_place("", tmp_path / "away")
    manifest.write(place, manifest.of(NEWS, [seal(place, log_of(60))]))
    done = run("cold", "restore", "--store", str(tmp_path / "away"), "--to", url)
    assert done.returncode == 0, done.stdout + done.stderr
    with redis.from_url(url) as client:
        assert client.xlen("news") == 60


def test_authority_that_is_not_named_is_not_believed(url: str) -> None:
    done = run("channels", "-s", url.partition("?")[0])
    assert done.returncode == 1
    assert "certificate verify failed" in done.stdout + done.stderr
