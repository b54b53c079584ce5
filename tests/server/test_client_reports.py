"""Connections of every process of a store: each process tells the others, while somebody asks."""

from __future__ import annotations

import os
import signal
import socket
from typing import Any

import pytest
import redis
from patience import PATIENCE_S, until
from redis import ResponseError
from server_process import Serve, ServerProcess

from rlite_pubsub.storage.names import client_reports
from rlite_pubsub.storage.store import Store


def client_of(server: ServerProcess, **options: Any) -> redis.Redis:
    return redis.Redis(port=server.port, **options)


def told(server: ServerProcess) -> dict[int, dict[bytes, Any]]:
    """By process id."""
    return {each[b"pid"]: each for each in client_of(server).execute_command("SUBSCRIBER.CLIENTS")}


def names(server: ServerProcess, pid: int) -> list[bytes]:
    return [each[b"name"] for each in told(server)[pid][b"clients"]]


def test_each_process_tells_the_others_of_its_connections_while_somebody_asks(serve: Serve) -> None:
    one, other = serve(), serve()
    kept = client_of(other, client_name="far")
    pubsub = kept.pubsub()
    pubsub.subscribe("news")
    assert pubsub.get_message(timeout=PATIENCE_S)
    until(lambda: b"far" in names(one, other.pid), "the connections of the other process")
    about = told(one)
    assert list(about) == [one.pid, other.pid]
    assert about[other.pid][b"total"] == len(about[other.pid][b"clients"])
    (subscribed,) = [each for each in about[other.pid][b"clients"] if each[b"channels"] == 1]
    assert subscribed[b"kind"] == b"tcp" and subscribed[b"user"] == b"default" and subscribed[b"input_bytes"] > 0
    assert subscribed[b"buffered_bytes"] == subscribed[b"disk_bytes"] == subscribed[b"waiting_ms"] == 0


def test_reader_that_is_slow_within_the_kernels_buffers_comes_first(server: ServerProcess) -> None:
    client = client_of(server)
    busy = client_of(server).pubsub()
    busy.subscribe("other")
    with socket.socket() as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.connect(("127.0.0.1", server.port))
        slow.sendall(b"CLIENT SETNAME slow\r\nSUBSCRIBE news\r\n")
        until(lambda: client.pubsub_numsub("news")[0][1] == 1)
        client.publish("news", b"x" * 200_000)  # the kernel takes it all
        client.publish("other", "x")
        assert busy.get_message(timeout=PATIENCE_S)
        first = told(server)[server.pid][b"clients"][0]
        assert first[b"name"] == b"slow" and first[b"unsent_bytes"] > 100_000
        assert first[b"buffered_bytes"] == first[b"disk_bytes"] == 0
        until(lambda: told(server)[server.pid][b"clients"][0][b"waiting_ms"] > 50)
        sent = 0
        while sent < 200_000:
            sent += len(slow.recv(1 << 16))
        until(lambda: not any(each[b"unsent_bytes"] for each in told(server)[server.pid][b"clients"]))


def test_what_waits_is_told_with_its_age_and_comes_first(server: ServerProcess) -> None:
    with socket.socket() as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.connect(("127.0.0.1", server.port))
        slow.sendall(b"CLIENT SETNAME slow\r\nSUBSCRIBE news\r\n")
        client = client_of(server)
        until(lambda: client.pubsub_numsub("news")[0][1] == 1)
        for _ in range(300):
            client.publish("news", b"x" * 50_000)
        first = told(server)[server.pid][b"clients"][0]
        assert first[b"name"] == b"slow" and first[b"disk_bytes"] > 1_000_000 and first[b"buffered_bytes"] > 0
        until(lambda: told(server)[server.pid][b"clients"][0][b"waiting_ms"] > 50)


def test_connection_of_any_process_is_closed(serve: Serve) -> None:
    one, other = serve(), serve()
    for server in (one, other):
        kept = client_of(server, client_name="far")
        pubsub = kept.pubsub()
        pubsub.subscribe("news")
        assert pubsub.get_message(timeout=PATIENCE_S)
        until(lambda server=server: b"far" in names(one, server.pid), "its connections")  # type: ignore[misc]
        about = told(one)[server.pid]
        (id,) = [each[b"id"] for each in about[b"clients"] if each[b"channels"]]
        client = client_of(one)
        assert client.execute_command("SUBSCRIBER.KILL", about[b"process"], id) in (1, b"ASKED")
        until(lambda server=server: b"far" not in names(one, server.pid), "its end")  # type: ignore[misc]
        assert client.pubsub_numsub("news") == [(b"news", 0)]
    assert client.execute_command("SUBSCRIBER.KILL", told(one)[one.pid][b"process"], 123456) == 0
    for process, refusal in (("0" * 16, "no such process"), ("x", "16 hexadecimal digits")):
        with pytest.raises(ResponseError, match=refusal):
            client.execute_command("SUBSCRIBER.KILL", process, 1)


def test_process_that_is_stopped_is_one_that_does_not_answer_and_nobody_waits_for_it(serve: Serve) -> None:
    one, other = serve(), serve()
    os.kill(other.pid, signal.SIGSTOP)
    try:
        about = told(one)
        assert about[other.pid][b"at_ms"] == 0 and about[other.pid][b"clients"] == []
        assert about[one.pid][b"clients"]
    finally:
        os.kill(other.pid, signal.SIGCONT)
    until(lambda: told(one)[other.pid][b"at_ms"] > 0, "an answer, once it goes on")


def test_killed_process_leaves_no_report(serve: Serve) -> None:
    one, other = serve(), serve()
    until(lambda: told(one)[other.pid][b"at_ms"] > 0, "a report")
    other.end(signal.SIGKILL)
    third = serve()  # whoever comes cleans up
    until(lambda: other.pid not in told(third), "the reaper")
    assert one.end() == 0 == third.end()
    with Store.open(one.store_folder) as store:
        assert store.live.read(client_reports.every) == {}


def test_reports_go_once_nobody_asks(serve: Serve) -> None:
    one, other = serve(), serve()
    until(lambda: told(one)[other.pid][b"at_ms"] > 0, "a report")
    with Store.open(one.store_folder) as store:
        until(lambda: not store.live.read(client_reports.every), "the end of the reports")


def test_rates_are_counted_from_the_first_question_on(server: ServerProcess) -> None:
    client = client_of(server)
    pubsub = client.pubsub()
    pubsub.subscribe("news")
    pubsub.psubscribe("n*")
    for _ in range(2):
        assert pubsub.get_message(timeout=PATIENCE_S)
    assert client.execute_command("SUBSCRIBER.RATES") is None

    def rates() -> Any:
        client.publish("news", "x")
        return client.execute_command("SUBSCRIBER.RATES", "COUNT", 5)

    until(lambda: rates(), "rates")
    until(lambda: rates() and rates()[0][0] == b"news", "that of the channel")
    name, rate, subscribers = rates()[0]
    assert float(rate) > 0 and subscribers == 2
