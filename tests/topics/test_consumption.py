"""`rlite_pubsub.topics.consume`: a group's entries, as many at a time as there is credit for."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
import redis
from patience import PATIENCE_S
from server_process import Serve

from rlite_pubsub import topics
from rlite_pubsub.topics.route import client_of


@pytest.fixture
def client(where: str) -> Iterator[redis.Redis]:
    with client_of(where) as client:
        client.xgroup_create("orders", "billing", mkstream=True)
        yield client


def consume(where: str, credit: int = 2, **options: Any) -> topics.Consumption:
    return topics.consume(where, "orders", "billing", "worker", credit=credit, **options)


def taken(consumption: topics.Consumption, count: int) -> list[topics.Consumed]:
    found = []
    for _ in range(count):
        entry = consumption.get(PATIENCE_S)
        assert entry is not None
        found.append(entry)
    return found


def test_no_more_come_than_there_is_credit_for_and_an_ack_makes_room(where: str, client: redis.Redis) -> None:
    ids = [topics.publish(where, "orders", {"n": number}) for number in range(3)]
    with consume(where) as consumption:
        first, second = taken(consumption, 2)
        assert ([first.id, second.id], first.topic, first["n"]) == (ids[:2], "orders", b"0")
        assert consumption.get(0.05) is None
        assert (first.ack(), first.ack()) == (True, False)
        assert [entry.id for entry in taken(consumption, 1)] == ids[2:]
    assert client.xpending("orders", "billing")["pending"] == 2


def test_what_was_not_acknowledged_comes_first_the_next_time(where: str, client: redis.Redis) -> None:
    ids = [topics.publish(where, "orders", {"n": number}) for number in range(3)]
    with consume(where) as consumption:
        taken(consumption, 2)[1].ack()
        assert [entry.id for entry in taken(consumption, 1)] == ids[2:]
    client.xdel("orders", ids[0])
    with consume(where, decode_responses=True) as consumption:
        assert [entry.id for entry in taken(consumption, 1)] == ids[2:]
        assert client.xpending("orders", "billing")["pending"] == 1


def test_all_of_a_backlog_comes_in_order_with_acks_from_another_thread(where: str, client: redis.Redis) -> None:
    ids = [topics.publish(where, "orders", {"n": number}) for number in range(200)]
    with consume(where, credit=10) as consumption:
        found = []
        for entry in consumption:
            found.append(entry.id)
            thread = threading.Thread(target=entry.ack)
            thread.start()
            thread.join()
            if len(found) == len(ids):
                break
    assert found == ids
    assert client.xpending("orders", "billing")["pending"] == 0


def test_it_raises_what_is_wrong_when_it_begins_and_when_the_group_goes(where: str, client: redis.Redis) -> None:
    with pytest.raises(redis.ResponseError, match="NOGROUP"):
        topics.consume(where, "orders", "none", "worker")
    with pytest.raises(ValueError, match="credit="):
        consume(where, credit=0)
    with consume(where) as consumption:
        client.xgroup_destroy("orders", "billing")
        with pytest.raises(redis.ResponseError, match="NOGROUP"):
            consumption.get(PATIENCE_S)


def test_it_ends_when_another_thread_closes_it(where: str, client: redis.Redis) -> None:
    consumption = consume(where)
    closing = threading.Timer(0.05, consumption.close)
    closing.start()
    assert list(consumption) == []
    closing.join()


def test_it_goes_on_at_the_next_server_and_gives_nothing_twice(serve: Serve) -> None:
    server = serve()
    where = f"redis://127.0.0.1:{server.port}"
    with client_of(where) as client:
        client.xgroup_create("orders", "billing", mkstream=True)
        ids = [topics.publish(where, "orders", {"n": number}) for number in range(4)]
        with consume(where, credit=2) as consumption:
            entries = taken(consumption, 2)
            client.client_kill_filter(_type="normal", skipme=True)
            entries[0].ack()
            assert [entry.id for entry in taken(consumption, 1)] == ids[2:3]
            assert entries[1].ack()
            assert [entry.id for entry in taken(consumption, 1)] == ids[3:]
