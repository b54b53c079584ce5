"""PUBLISH to retained channels: what is answered, who receives, what is kept, and what happens where it can't be."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from recorded_session import House

from rlite_pubsub.engine.turn import end_turn
from rlite_pubsub.keyspace.topic.topic import Topic
from rlite_pubsub.storage.errors import StoreFull
from rlite_pubsub.storage.turn import Turn

pytestmark = pytest.mark.settings(retain="orders.* 7d")


def entries(house: House, name: bytes = b"orders.1", database: int = 0) -> list[bytes]:
    """The payloads of a topic."""
    keyspace = house.engine.keyspace
    assert keyspace is not None
    topic = keyspace.find(database, name)
    found = []
    if isinstance(topic, Topic):
        for part in topic.between():
            found += [entry.split(b"\r\n")[-2] for entry in part.chunk.entries()[part.start : part.stop]]
    house.engine.commit()
    return found


def test_subscribers_and_the_reply_are_what_they_were_and_the_message_is_an_entry(house: House) -> None:
    subscriber, publisher = house.session(), house.session()
    subscriber.do("SUBSCRIBE", "orders.1")
    assert publisher.do("PUBLISH", "orders.1", "a") == b":1\r\n"
    assert publisher.do("PUBLISH", "orders.2", "b") == b":0\r\n"
    assert publisher.do("PUBLISH", "other", "c") == b":0\r\n"
    assert subscriber.heard() == b"*3\r\n$7\r\nmessage\r\n$8\r\norders.1\r\n$1\r\na\r\n"
    assert entries(house) == [b"a"]
    assert entries(house, b"orders.2") == [b"b"]
    assert entries(house, b"other") == []


def test_entry_is_in_database_0_whatever_the_publisher_has_selected(house: House) -> None:
    publisher = house.session()
    publisher.do("SELECT", "5")
    publisher.do("PUBLISH", "orders.1", "a")
    assert entries(house) == [b"a"] and entries(house, database=5) == []


def test_shard_channels_and_keyspace_events_are_not_retained() -> None:
    house = House(retain="* 7d", notify_keyspace_events="KEA")
    session = house.session()
    session.do("SPUBLISH", "orders.1", "a")
    session.do("PUBLISH", "orders.2", "b")
    assert entries(house) == []
    assert session.do("TOPIC.LIST") == b"*1\r\n$8\r\norders.2\r\n"


def test_transaction_publishes_as_ever(house: House) -> None:
    session = house.session()
    for words in (("MULTI",), ("PUBLISH", "orders.1", "a"), ("PUBLISH", "orders.1", "b")):
        session.do(*words)
    assert session.do("EXEC") == b"*2\r\n:0\r\n:0\r\n"
    assert entries(house) == [b"a", b"b"]


def test_key_that_is_no_topic_takes_nothing_from_subscribers(house: House) -> None:
    keyspace = house.engine.keyspace
    assert keyspace is not None
    keyspace.put_string(0, b"orders.1", b"x")
    house.engine.commit()
    subscriber, publisher = house.session(), house.session()
    subscriber.do("SUBSCRIBE", "orders.1")
    assert publisher.do("PUBLISH", "orders.1", "a") == b":1\r\n"
    assert subscriber.heard()
    assert b"retained_messages_refused:1\r\n" in publisher.do("INFO", "topics")


def failing_commit(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commits fail from now on, as on a full disk."""

    end = house.data.end

    def refuse(turn: Turn, *, commit: bool) -> None:
        end(turn, commit=False)
        if commit:
            raise StoreFull(house.data.path, 1)

    monkeypatch.setattr(house.data, "end", refuse)


def test_publisher_gets_the_error_where_the_entry_cannot_be_committed(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = house.session()
    session.do("PUBLISH", "orders.1", "a")
    with monkeypatch.context() as patches:
        failing_commit(house, patches)
        assert session.do("PUBLISH", "orders.1", "b").startswith(b"-OOM command not allowed")
        assert session.do("PUBLISH", "other", "b") == b":0\r\n"
    assert session.do("PUBLISH", "orders.1", "c") == b":0\r\n"
    assert entries(house) == [b"a", b"c"]


def test_publish_is_not_delivered_where_the_entry_cannot_even_be_begun(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    subscriber, publisher = house.session(), house.session()
    subscriber.do("SUBSCRIBE", "orders.1")

    def refuse(*_: object, **__: object) -> Callable[[], None]:
        raise StoreFull(house.data.path, 1)

    with monkeypatch.context() as patches:
        patches.setattr(house.data, "begin", refuse)
        assert publisher.do("PUBLISH", "orders.1", "b").startswith(b"-OOM command not allowed")
        end_turn(subscriber.hub.agenda)
        assert subscriber.recorded == b""
    assert publisher.do("PUBLISH", "orders.1", "c") == b":1\r\n"


def test_blocked_and_following_sessions_see_what_is_published(house: House) -> None:
    follower, publisher = house.session(), house.session()
    follower.do("TOPIC.SUBSCRIBE", "orders.1", "$")
    publisher.do("PUBLISH", "orders.1", "a")
    assert b"message" in follower.heard()

