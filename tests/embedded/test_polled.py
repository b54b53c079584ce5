"""A connection's descriptor is readable while there is something to read, for whoever polls it among others."""

from __future__ import annotations

import os
import select
from collections.abc import Iterator
from pathlib import Path

import pytest
from other_process import OtherProcess
from patience import PATIENCE_S, until
from redis.exceptions import ConnectionError

import rlite_pubsub
from rlite_pubsub.embedded.client import pool_of
from rlite_pubsub.embedded.polled import PolledConnection, PolledLine
from rlite_pubsub.wakeups.doorbell import ring


@pytest.fixture
def connection(folder: Path) -> Iterator[PolledConnection]:
    pool = pool_of(folder, 0, {"protocol": 2})
    pool.connection_class = PolledConnection
    connection = pool.get_connection()
    assert isinstance(connection, PolledConnection)
    yield connection
    pool.disconnect()


def line_of(connection: PolledConnection) -> PolledLine:
    assert isinstance(connection._sock, PolledLine)
    return connection._sock


def is_readable(connection: PolledConnection, timeout_s: float = 0) -> bool:
    poll = select.poll()
    poll.register(line_of(connection), select.POLLIN)
    return bool(poll.poll(timeout_s * 1000))


def fall_quiet(connection: PolledConnection) -> None:
    """It is not readable, but for a lie or two, and there is nothing to read."""
    until(lambda: not connection.can_read(timeout=0) and not is_readable(connection), "quiet")


def wait_to_read(connection: PolledConnection, poll: select.poll) -> None:
    """As an event loop does, for the descriptor may lie, and what waits for a writer in another process has a timer."""
    host = line_of(connection).host

    def has_come() -> bool:
        poll.poll(min(host.patience_s(), PATIENCE_S) * 1000)
        return connection.can_read(timeout=0)

    until(has_come, "something to read")


def test_it_is_readable_from_a_reply_until_that_is_read(connection: PolledConnection) -> None:
    fall_quiet(connection)
    connection.send_command("PING")
    assert is_readable(connection)
    assert connection.read_response() == b"PONG"
    fall_quiet(connection)


@pytest.mark.usefixtures("no_second_look")
def test_it_becomes_readable_when_a_blocked_pop_is_served_here(folder: Path, connection: PolledConnection) -> None:
    connection.send_command("BRPOP", "jobs", 0)
    poll = select.poll()
    fall_quiet(connection)
    poll.register(line_of(connection), select.POLLIN)
    with rlite_pubsub.Redis(folder) as client:
        client.lpush("jobs", "one")
    assert poll.poll(0)
    assert connection.read_response() == [b"jobs", b"one"]


@pytest.mark.usefixtures("no_second_look")
def test_it_becomes_readable_when_another_process_publishes_or_pushes(
    folder: Path, connection: PolledConnection
) -> None:
    poll = select.poll()
    poll.register(line_of(connection), select.POLLIN)
    with OtherProcess(folder, "r = rlite_pubsub.Redis(folder)\nfor line in sys.stdin: exec(line)") as other:
        connection.send_command("SUBSCRIBE", "news")
        connection.read_response()
        other.tell("r.publish('news', 'hello')")
        wait_to_read(connection, poll)
        assert connection.read_response() == [b"message", b"news", b"hello"]
        connection.send_command("UNSUBSCRIBE")
        connection.read_response()
        connection.send_command("BRPOP", "jobs", 0)
        other.tell("r.lpush('jobs', 'one')")
        wait_to_read(connection, poll)
        assert connection.read_response() == [b"jobs", b"one"]


def test_it_stays_readable_as_long_as_the_rest_of_much_waits_on_disk(
    folder: Path, connection: PolledConnection
) -> None:
    messages = [b"%04d" % number + b"x" * 1000 for number in range(500)]
    with rlite_pubsub.Redis(folder) as client:
        client.config_set("spill-threshold", "64kb")
        connection.send_command("SUBSCRIBE", "news")
        connection.read_response()
        poll = select.poll()
        poll.register(line_of(connection), select.POLLIN)
        for message in messages:
            client.publish("news", message)
        received = []
        while poll.poll(0):
            while connection.can_read(timeout=0):
                received.append(connection.read_response()[2])
                if not connection._parser._reader.has_data():
                    break  # the next part is read when the descriptor says so
    assert received == messages


def test_who_looks_in_time_is_told_that_a_blocked_pop_is_over(connection: PolledConnection) -> None:
    connection.send_command("BRPOP", "jobs", 0.01)
    host = line_of(connection).host

    def is_over() -> bool:
        is_readable(connection, host.patience_s())
        host.look(surely=True)
        return is_readable(connection)

    until(is_over, "the end of the pop")
    assert connection.read_response() is None


def test_it_is_readable_when_the_session_is_closed(folder: Path, connection: PolledConnection) -> None:
    connection.send_command("CLIENT", "ID")
    number = connection.read_response()
    fall_quiet(connection)
    with rlite_pubsub.Redis(folder) as client:
        client.client_kill_filter(_id=number)
    assert is_readable(connection)
    with pytest.raises(ConnectionError):
        connection.read_response()


def test_a_forked_child_leaves_it_to_its_parent(folder: Path, connection: PolledConnection) -> None:
    """And a poller that knows it sees nothing of it when it is closed here, while the child lives."""
    connection.send_command("SUBSCRIBE", "news")
    connection.read_response()
    poller = select.epoll()
    poller.register(line_of(connection), select.EPOLLIN)
    reading, writing = os.pipe()
    hearing, saying = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(saying, b"!")
        os.close(writing)
        os.read(reading, 1)
        os._exit(0)
    os.read(hearing, 1)  # until then the child may have its copies yet
    with rlite_pubsub.Redis(folder) as client, client.pubsub() as pubsub:
        pubsub.subscribe("news")
        client.publish("news", "one")
        assert poller.poll(PATIENCE_S)
        assert connection.can_read(timeout=PATIENCE_S) and connection.read_response() == [b"message", b"news", b"one"]
        membership = line_of(connection).host.membership
        assert membership.bell is not None and membership.id is not None
        connection.disconnect()
        ring(membership.bell.path.parent, membership.id)
        assert not poller.poll(0)
    os.close(writing)
    os.waitpid(child, 0)
    for descriptor in (reading, hearing, saying):
        os.close(descriptor)
    poller.close()
