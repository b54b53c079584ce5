"""client-output-buffer-limit, where the client is a program's own PubSub."""

from __future__ import annotations

import pytest
from patience import PATIENCE_S
from redis.exceptions import ConnectionError

import rlite_pubsub

PAYLOAD = "x" * 100_000


def disconnections(client: rlite_pubsub.Redis) -> int:
    return int(client.info("subscribers")["slow_subscribers_disconnected"])


def read_to_its_end(pubsub: rlite_pubsub.Redis) -> int:
    """How many messages come before the connection is closed."""
    found = 0
    connection = pubsub.connection
    assert connection is not None
    with pytest.raises(ConnectionError):
        while True:
            found += connection.read_response(timeout=PATIENCE_S, push_request=True)[0] == b"message"
    return found


@pytest.mark.parametrize("in_one_turn", [False, True], ids=["one by one", "in one turn"])
def test_a_subscriber_that_leaves_more_than_the_limit_is_disconnected(
    client: rlite_pubsub.Redis, in_one_turn: bool
) -> None:
    client.config_set("client-output-buffer-limit", "pubsub 1000000 0 0")
    with client.pubsub() as pubsub:
        pubsub.subscribe("news")
        pubsub.get_message(timeout=PATIENCE_S)
        with client.pipeline(transaction=False) as pipe:
            for _ in range(50):
                (pipe if in_one_turn else client).publish("news", PAYLOAD)
            pipe.execute()
        assert disconnections(client) == 1
        assert read_to_its_end(pubsub) < 20
        assert client.publish("news", "x") == 0


def test_a_subscriber_within_the_limit_is_not_disconnected(client: rlite_pubsub.Redis) -> None:
    client.config_set("client-output-buffer-limit", "pubsub 10000000 0 0")
    with client.pubsub() as pubsub:
        pubsub.subscribe("news")
        with client.pipeline(transaction=False) as pipe:
            for _ in range(50):
                pipe.publish("news", PAYLOAD)
            pipe.execute()
        assert disconnections(client) == 0
        assert client.publish("news", "x") == 1


def test_under_drop_oldest_it_is_told_how_many_messages_it_has_lost(client: rlite_pubsub.Redis) -> None:
    client.config_set("client-output-buffer-limit", "pubsub 1000000 0 0")
    client.config_set("slow-subscriber-policy", "drop-oldest")
    with client.pubsub() as pubsub:
        pubsub.subscribe("news")
        for number in range(50):
            client.publish("news", f"{number:02} {PAYLOAD}")
        found: list[int] = []
        lost = 0
        while not found or found[-1] != 49:
            message = pubsub.parse_response(block=False, timeout=PATIENCE_S)
            if message[0] == b"gap":
                lost += message[2]
            elif message[0] == b"message":
                found.append(int(message[2][:2]))
        assert found == sorted(found)
        assert lost > 0
        assert lost + len(found) == 50
        assert disconnections(client) == 0
